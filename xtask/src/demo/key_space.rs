//! The last part of the demo: one tag over a PostgreSQL table, a MySQL table and a key port, out of a store in a file.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use keywright_testkit::redis::{RedisTools, RespClient};
use keywright_testkit::{MariaServer, PgServer, WAIT_MAX, free_port, query_i64, wait_until};
use mysql::prelude::Queryable;

use crate::demo::shards::connect;
use crate::demo::show::Show;
use crate::program::Program;
use crate::shell::{output, run};

/// Ids of each of the three before the program is killed, and as many after.
const IDS: u64 = 3_000;
/// How soon clients of the program connect again.
const RECONNECT_EVERY: Duration = Duration::from_millis(50);

const POSTGRES: [&str; 4] = [
    "CREATE ROLE keywright_feeder LOGIN",
    "GRANT USAGE ON SCHEMA keywright TO keywright_feeder; \
     GRANT EXECUTE ON FUNCTION keywright.await_demand, keywright.feed_tag, keywright.handed_over TO keywright_feeder",
    "SELECT keywright.create_fed_tag('invoices')",
    "CREATE TABLE invoice (id bigint PRIMARY KEY DEFAULT next_biz_id('invoices'), body text)",
];
const MYSQL: &str =
    "CREATE TABLE shop.invoice (id bigint AUTO_INCREMENT PRIMARY KEY, body varchar(40))";

/// The servers of its tables.
#[derive(Clone, Copy)]
pub(crate) struct Servers<'a> {
    pub(crate) postgres: &'a PgServer,
    pub(crate) mysql: &'a MariaServer,
}

/// A program with a store in a file.
pub(crate) struct KeySpace {
    listener: u16,
    key_port: u16,
    program: Program,
    tools: RedisTools,
}

impl KeySpace {
    /// Makes tables and tag, and starts the program.
    ///
    /// # Errors
    /// A server refuses, or the program does not start.
    pub(crate) fn start(screen: &Show, servers: Servers<'_>) -> Result<KeySpace> {
        screen.stage(
            "one tag over a PostgreSQL table, a MySQL table and programs: its store is a file",
        );
        let [listener, key_port] = [free_port()?, free_port()?];
        let mut client = servers.postgres.client("postgres")?;
        for sql in POSTGRES {
            screen.say(&format!("postgres=# {sql};"));
            client.batch_execute(sql)?;
        }
        screen.say(&format!("mysql> {MYSQL};"));
        servers.mysql.run("mysql", MYSQL)?;
        let mut program = Program::new(&[listener, key_port])?;
        let config = configuration(&program, servers, [listener, key_port]);
        screen.say(&config);
        program.configure(&config)?;
        run(&mut program.command("init"))?;
        program.start()?;
        Ok(KeySpace {
            listener,
            key_port,
            program,
            tools: RedisTools::get()?,
        })
    }

    /// Draws by hand, then by all three while the program is killed, and shows that no id came twice.
    ///
    /// # Errors
    /// An id came twice, or something fails.
    pub(crate) fn show(&mut self, screen: &Show, servers: Servers<'_>) -> Result<()> {
        let first = self.show_by_hand(screen, servers)?;
        let drawn = Drawn::default();
        let mut ids = thread::scope(|scope| -> Result<Vec<i64>> {
            let (drawn, listener, key_port) = (&drawn, self.listener, self.key_port);
            let drawers = [
                scope.spawn(move || drawn.rows_of_postgres(servers.postgres)),
                scope.spawn(move || drawn.rows_of_mysql(listener)),
                scope.spawn(move || drawn.ids_of_key_port(key_port)),
            ];
            let killed = self.kill_in_the_middle(screen, drawn);
            if killed.is_err() {
                drawn.stop.store(true, Ordering::SeqCst);
            }
            let mut ids = Vec::new();
            for drawer in drawers {
                let joined = drawer.join();
                ids.extend(joined.map_err(|_| anyhow!("a drawing thread panicked"))??);
            }
            killed.map(|()| ids)
        })?;
        ids.push(first);
        show_distinct(screen, servers, ids)
    }

    /// The id that came over the key port.
    fn show_by_hand(&self, screen: &Show, servers: Servers<'_>) -> Result<i64> {
        screen.stage("the same tag in SQL and over the Redis protocol");
        let insert = "INSERT INTO invoice (body) VALUES ('mine')";
        let returning = format!("{insert} RETURNING id");
        let id = query_i64(&mut servers.postgres.client("postgres")?, &returning)?;
        screen.say(&format!("    postgres=# {returning};\n    {id}"));
        let mut application = connect(self.listener)?;
        application.query_drop(insert)?;
        let id = application.last_insert_id();
        screen.say(&format!(
            "    mysql> {insert}; SELECT LAST_INSERT_ID();\n    {id}"
        ));
        let mut redis_cli = self.tools.command("redis-cli")?;
        redis_cli.args(["-p", &self.key_port.to_string(), "INCR", "invoices"]);
        let said = output(&mut redis_cli)?;
        screen.say(&format!(
            "    $ redis-cli INCR invoices\n    {}",
            said.trim()
        ));
        said.trim().parse().context("what redis-cli said")
    }

    fn kill_in_the_middle(&mut self, screen: &Show, drawn: &Drawn) -> Result<()> {
        screen.stage("all three draw; kill -9 of the program in the middle of it, and a new start");
        drawn.wait_for(IDS)?;
        let killed = Instant::now();
        self.program.kill()?;
        let before = drawn.postgres.load(Ordering::SeqCst);
        // PostgreSQL has a range in its memory, and does not notice.
        wait_until("rows without the program", WAIT_MAX, || {
            Ok(drawn.postgres.load(Ordering::SeqCst) > before + 200)
        })?;
        self.program.start()?;
        screen.say(&format!(
            "    PostgreSQL inserted on without it; it is back after {:.1} s",
            killed.elapsed().as_secs_f64()
        ));
        drawn.wait_for(2 * IDS)?;
        drawn.stop.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// How to try it by hand.
    pub(crate) fn show_how_to_connect(&self) {
        println!("    redis-cli -p {} INCR invoices", self.key_port);
    }
}

/// Stops the demo if an id were there twice.
fn show_distinct(screen: &Show, servers: Servers<'_>, of_port: Vec<i64>) -> Result<()> {
    screen.stage("are ids distinct over all of them?");
    let mut client = servers.postgres.client("postgres")?;
    let rows = client.query("SELECT id FROM invoice", &[])?;
    let of_postgres = rows.iter().map(|row| row.try_get(0));
    let of_postgres = of_postgres.collect::<std::result::Result<Vec<i64>, _>>()?;
    let rows = servers.mysql.run("shop", "SELECT id FROM invoice")?;
    let of_mysql = rows.iter().flatten().map(|id| id.parse());
    let of_mysql = of_mysql.collect::<std::result::Result<Vec<i64>, _>>()?;
    let mut distinct = BTreeSet::new();
    for (what, ids) in [
        ("rows in PostgreSQL", of_postgres),
        ("rows in MySQL", of_mysql),
        ("over the key port", of_port),
    ] {
        screen.say(&format!("    {:>8} {what}", ids.len()));
        for id in ids {
            ensure!(distinct.insert(id), "id {id} came twice");
        }
    }
    screen.say(&format!("    {:>8} distinct ids", distinct.len()));
    Ok(())
}

fn configuration(
    program: &Program,
    Servers { postgres, mysql }: Servers<'_>,
    [listener, key_port]: [u16; 2],
) -> String {
    let upstream = format!("127.0.0.1:{}", mysql.port());
    format!(
        "[store]\nurl = \"file:{}\"\nany_file_system = true   # wherever this machine keeps temporary files\n\n\
         [[feed]]\nurl = \"postgres://keywright_feeder@127.0.0.1:{}/postgres\"\ntags = [\"invoices\"]\n\n\
         [[listener]]\nbind = \"127.0.0.1:{listener}\"\nupstream = \"{upstream}\"\nadmin = \"mysql://root@{upstream}\"\n\n\
         [[listener]]\nprotocol = \"redis\"\nbind = \"127.0.0.1:{key_port}\"\nkeys = {{ invoices = \"segment:invoices\" }}\n\n\
         [[rule]]\ntable = \"shop.invoice\"\ncolumn = \"id\"\nkey = \"segment:invoices\"\n",
        program.file("store.db").display(),
        postgres.port(),
    )
}

/// How much each has drawn.
#[derive(Default)]
struct Drawn {
    postgres: AtomicU64,
    mysql: AtomicU64,
    key_port: AtomicU64,
    stop: AtomicBool,
}

impl Drawn {
    fn wait_for(&self, ids: u64) -> Result<()> {
        wait_until("ids of all three", WAIT_MAX, || {
            let all = [&self.postgres, &self.mysql, &self.key_port];
            let fewest = all.map(|drawn| drawn.load(Ordering::SeqCst));
            if self.stop.load(Ordering::SeqCst) {
                bail!("one of them ended");
            }
            Ok(fewest.iter().all(|drawn| *drawn >= ids))
        })
    }

    /// Until it is time; `once` draws some and says how many. Whoever reaches the program connects again when that is gone.
    fn until_stopped(&self, count: &AtomicU64, mut once: impl FnMut() -> Result<u64>) {
        let mut came = Instant::now();
        while !self.stop.load(Ordering::SeqCst) {
            match once() {
                Ok(ids) => {
                    count.fetch_add(ids, Ordering::SeqCst);
                    came = Instant::now();
                }
                Err(_) if came.elapsed() < WAIT_MAX => thread::sleep(RECONNECT_EVERY),
                Err(_) => self.stop.store(true, Ordering::SeqCst),
            }
        }
    }

    fn rows_of_postgres(&self, server: &PgServer) -> Result<Vec<i64>> {
        let mut client = server.client("postgres")?;
        self.until_stopped(&self.postgres, || {
            let rows =
                "INSERT INTO invoice (body) SELECT 'one of many' FROM generate_series(1, 20)";
            Ok(client.execute(rows, &[])?)
        });
        Ok(Vec::new())
    }

    fn rows_of_mysql(&self, port: u16) -> Result<Vec<i64>> {
        let mut application = None;
        self.until_stopped(&self.mysql, || {
            let mut connection = match application.take() {
                Some(connection) => connection,
                None => connect(port)?,
            };
            connection
                .query_drop("INSERT INTO invoice (body) VALUES ('one of many'), ('another')")?;
            application = Some(connection);
            Ok(2)
        });
        Ok(Vec::new())
    }

    fn ids_of_key_port(&self, port: u16) -> Result<Vec<i64>> {
        let (mut client, mut ids) = (None, Vec::new());
        self.until_stopped(&self.key_port, || {
            let mut connection = match client.take() {
                Some(connection) => connection,
                None => RespClient::connect(port)?,
            };
            let answer = connection.say("INCR invoices")?;
            ids.push(answer.integer()?);
            client = Some(connection);
            Ok(1)
        });
        Ok(ids)
    }
}
