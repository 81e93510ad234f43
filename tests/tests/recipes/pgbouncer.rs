//! The recipe for PgBouncer: clients share server connections, and ids stay theirs.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::thread;

use anyhow::{Context, bail};
use keywright_testkit::recipes::{Page, replace_all};
use keywright_testkit::{Account, PgServer, Result, WAIT_MAX, free_port, query_i64, wait_until};
use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use tempfile::TempDir;

use crate::{database, server};

const PAGE: &str = "pgbouncer";
const CLIENTS: usize = 8;
const ROWS: usize = 40;

/// PgBouncer before a server, ended when dropped.
struct Bouncer {
    process: Child,
    port: u16,
    // Dropped last: the directory that configuration and log lie in.
    dir: TempDir,
}

impl Bouncer {
    /// Starts it with the page's configuration in that pool mode, fewer server connections than there are clients, and
    /// accounts: `app` in the page's database, the superuser in the database `managed`.
    fn start(server: &PgServer, database: &str, mode: &str) -> Result<Bouncer> {
        let dir = tempfile::tempdir()?;
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755))?;
        let port = free_port()?;
        let managed = format!("managed = host=127.0.0.1 port=5432 user=postgres dbname={database}");
        let line = format!("{database} = host=127.0.0.1 port=5432");
        let config = Page::read(PAGE)?.file("postgres", "pgbouncer.ini")?;
        let config = replace_all(
            &config,
            &[
                ("shop_1", database),
                (&line, &format!("{line} user=app\n{managed}")),
                ("5432", &server.port().to_string()),
                ("6432", &port.to_string()),
                ("transaction", mode),
                // Whoever comes is the user of the database's line.
                ("scram-sha-256", "any"),
                ("auth_file = /etc/pgbouncer/userlist.txt\n", ""),
            ],
        );
        let rest = "unix_socket_dir =\ndefault_pool_size = 3\n";
        let file = dir.path().join("pgbouncer.ini");
        fs::write(&file, config + rest)?;
        let log = fs::File::create(dir.path().join("log"))?;
        let account = Account::for_servers(&["postgres", "nobody"])?;
        let process = account
            .command("/usr/sbin/pgbouncer")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting PgBouncer")?;
        let mut bouncer = Bouncer { process, port, dir };
        wait_until("PgBouncer", WAIT_MAX, || {
            if let Some(status) = bouncer.process.try_wait()? {
                let log = fs::read_to_string(bouncer.dir.path().join("log"))?;
                bail!("PgBouncer ended with {status}:\n{log}");
            }
            Ok(bouncer.client(database).is_ok())
        })?;
        Ok(bouncer)
    }

    fn client(&self, database: &str) -> Result<Client> {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user("anybody");
        Ok(config.dbname(database).connect(NoTls)?)
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        if let Err(error) = ended {
            eprintln!("PgBouncer could not be ended: {error}");
        }
    }
}

/// The id that a statement without parameters returns.
fn id_of(client: &mut Client, sql: &str) -> Result<u64> {
    let messages = client.simple_query(sql)?;
    let id = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(id.context("no row")?.parse()?)
}

/// Inserts by turns in both protocols, in transactions of several statements where the mode has them.
fn insert(mut client: Client, has_transactions: bool) -> Result<Vec<u64>> {
    let mut ids = Vec::new();
    for _ in 0..ROWS {
        if has_transactions {
            client.simple_query("BEGIN")?;
            client.simple_query("SET LOCAL keywright.refill_wait_ms_max = 5000")?;
        }
        let event = "INSERT INTO event (body) VALUES ('a') RETURNING id";
        ids.push(id_of(&mut client, event)?);
        let order =
            client.query_typed_one("INSERT INTO orders (body) VALUES ('b') RETURNING id", &[])?;
        let order: i64 = order.get(0);
        assert!(order > 0, "{order}");
        if has_transactions {
            client.simple_query("COMMIT")?;
        }
    }
    Ok(ids)
}

#[test]
fn ids_stay_apart_behind_a_pool() -> Result<()> {
    let test = server()?;
    let server = test.server();
    let name = "pooled";
    database(server, name, "SELECT keywright.create_tag('orders');")?;
    server.connect(name, "app")?.batch_execute(
        "CREATE TABLE event (id bigint PRIMARY KEY DEFAULT snowflake_id(), body text);
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT next_biz_id('orders'), body text)",
    )?;
    let mut seen = BTreeSet::new();
    for mode in ["session", "transaction", "statement"] {
        let bouncer = Bouncer::start(server, name, mode)?;
        let clients = if mode == "session" { 3 } else { CLIENTS };
        let inserting: Vec<_> = (0..clients)
            .map(|_| {
                let client = bouncer.client(name)?;
                Ok(thread::spawn(move || insert(client, mode != "statement")))
            })
            .collect::<Result<_>>()?;
        for thread in inserting {
            let ids = thread.join().expect("no thread panics")?;
            assert_eq!(ids.len(), ROWS);
            for id in ids {
                assert!(seen.insert(id), "{mode}: {id} twice");
            }
        }
    }
    let mut client = server.client(name)?;
    let rows = query_i64(&mut client, "SELECT count(*) FROM event")?;
    assert_eq!(rows, i64::try_from(seen.len())?);
    Ok(())
}

#[test]
fn a_worker_id_set_through_the_pool_is_everybodys_at_once() -> Result<()> {
    let test = server()?;
    let server = test.server();
    let name = "managed_through_a_pool";
    database(server, name, "")?;
    let bouncer = Bouncer::start(server, name, "transaction")?;
    let worker = "SELECT snowflake_worker(snowflake_id())";
    // All server connections of the pool have issued an id before.
    let mut clients: Vec<Client> = (0..3)
        .map(|_| bouncer.client(name))
        .collect::<Result<_>>()?;
    for client in &mut clients {
        client.simple_query("BEGIN")?;
        id_of(client, worker)?;
    }
    for client in &mut clients {
        client.simple_query("COMMIT")?;
    }
    let mut managing = bouncer.client("managed")?;
    managing.simple_query("SELECT keywright.set_worker_id(900)")?;
    for client in &mut clients {
        client.simple_query("BEGIN")?;
        assert_eq!(id_of(client, worker)?, 900);
    }
    Ok(())
}
