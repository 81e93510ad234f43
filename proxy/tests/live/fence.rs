//! Fencing a table and lifting the fence again.

use keywright_proxy::config::Config;
use keywright_proxy::schema::{Extent, KeyColumn, inspect, key_columns};
use keywright_proxy::switch::{Claim, Outcome, Reading, SwitchError, fence, lift, probe};
use keywright_testkit::{AT_FENCE, Flavour, Reply, Result, Upstream, on_both_flavours};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

on_both_flavours!(
    a_counter_is_recorded_that_no_row_shows,
    a_fence_that_stands_is_no_counter,
    who_is_over_changes_nothing,
    a_table_that_is_in_use_names_who_uses_it,
    a_probe_changes_nothing,
    a_backup_keeps_a_table_as_it_is,
    who_had_the_claim_is_gone,
    claims_of_other_attempts_are_not_taken_over,
    a_table_of_the_same_name_in_another_case_is_another,
    a_full_table_is_said_to_be_full_each_time,
);

/// A server's schema of a test's own, with a table, and a connection that switches it.
struct Table {
    server: std::sync::Arc<Upstream>,
    schema: String,
    conn: Conn,
    column: KeyColumn,
}

async fn table(flavour: Flavour, schema: &str) -> Result<Table> {
    table_on(Upstream::shared(flavour)?, schema).await
}

async fn table_on(server: std::sync::Arc<Upstream>, schema: &str) -> Result<Table> {
    server.run("", &format!("CREATE DATABASE {schema}"))?;
    server.run(
        schema,
        "CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE = InnoDB",
    )?;
    let mut conn = connect(&server, schema).await?;
    let column = column(&mut conn, schema).await?;
    Ok(Table {
        server,
        schema: schema.to_owned(),
        conn,
        column,
    })
}

async fn connect(server: &Upstream, schema: &str) -> Result<Conn> {
    connect_to(server.port(), schema).await
}

async fn connect_to(port: u16, schema: &str) -> Result<Conn> {
    let url = format!("mysql://root@127.0.0.1:{port}/{schema}?prefer_socket=false");
    Ok(Conn::new(Opts::from_url(&url)?).await?)
}

async fn column(conn: &mut Conn, schema: &str) -> Result<KeyColumn> {
    let text = format!(
        "[store]\nurl = \"mysql://k@127.0.0.1/k\"\n[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:2\"\n\
         [[rule]]\ntable = \"{schema}.t\"\ncolumn = \"id\"\nkey = \"segment:orders\"\nbits_max = 31\n"
    );
    let config = Config::parse(&text)?;
    let snapshot = inspect(conn, &config, Extent::Tables).await?;
    Ok(key_columns(&snapshot, &config).remove(0))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

impl Table {
    fn run(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        self.server.run(&self.schema, sql)
    }

    /// The id that a native insert gets; none at the fence.
    fn insert(&self) -> Result<Option<u64>> {
        let mut wire = self.server.wire(&self.schema)?;
        let replies = wire.query("INSERT INTO t (a) VALUES (1)")?;
        match replies.into_iter().next() {
            Some(Reply::Done(done)) => Ok(Some(done.last_insert_id)),
            Some(Reply::Failed(fault)) if AT_FENCE.contains(&fault.errno) => Ok(None),
            other => anyhow::bail!("{other:?}"),
        }
    }

    fn is_fenced(&self) -> Result<bool> {
        Ok(self.insert()?.is_none())
    }

    /// Fences the table, and returns what was to be recorded.
    async fn fence(&mut self, stands: bool) -> Result<(Outcome, Option<u64>)> {
        let mut recorded = None;
        let outcome = fence(
            &mut self.conn,
            &self.column,
            true,
            async |reading: Reading| {
                recorded = Some(reading.counter);
                Ok(stands)
            },
        );
        let outcome = outcome.await?;
        Ok((outcome, recorded))
    }

    async fn lift(&mut self, next: u64, stands: bool) -> Result<Outcome> {
        Ok(lift(&mut self.conn, &self.column, next, async || Ok(stands)).await?)
    }
}

fn a_counter_is_recorded_that_no_row_shows(flavour: Flavour) -> Result<()> {
    runtime()?.block_on(async {
        let mut table = table(flavour, "sw_counter").await?;
        assert_eq!(table.insert()?, Some(1));
        let mut wire = table.server.wire(&table.schema)?;
        for sql in ["BEGIN", "INSERT INTO t (a) VALUES (2), (3)", "ROLLBACK"] {
            wire.run(sql)?;
        }
        assert_eq!(table.fence(true).await?, (Outcome::Done, Some(4)));
        assert!(table.is_fenced()?);
        assert_eq!(table.lift(4, true).await?, Outcome::Done);
        assert_eq!(table.insert()?, Some(4));

        // Done again it changes nothing, although the row is gone by which the server would know.
        table.run("DELETE FROM t")?;
        assert_eq!(table.lift(4, true).await?, Outcome::Done);
        assert_eq!(table.insert()?, Some(5));
        // Off: a program that was paused may still send keys below.
        assert_eq!(table.lift(1_000, true).await?, Outcome::Done);
        assert_eq!(table.insert()?, Some(1_000));
        Ok(())
    })
}

fn a_fence_that_stands_is_no_counter(flavour: Flavour) -> Result<()> {
    runtime()?.block_on(async {
        let mut table = table(flavour, "sw_fenced").await?;
        assert_eq!(table.insert()?, Some(1));
        assert_eq!(table.fence(true).await?.1, Some(2));
        table.run("INSERT INTO t (id, a) VALUES (700, 1)")?;
        assert_eq!(table.fence(true).await?, (Outcome::Done, Some(701)));
        assert!(table.is_fenced()?);
        // Rows that came meanwhile are above what was recorded.
        assert_eq!(table.lift(2, true).await?, Outcome::Done);
        assert_eq!(table.insert()?, Some(701));
        Ok(())
    })
}

fn who_is_over_changes_nothing(flavour: Flavour) -> Result<()> {
    runtime()?.block_on(async {
        let mut table = table(flavour, "sw_over").await?;
        assert_eq!(table.fence(false).await?.0, Outcome::Over);
        assert_eq!(table.insert()?, Some(1));
        assert_eq!(table.fence(true).await?.0, Outcome::Done);
        assert_eq!(table.lift(2, false).await?, Outcome::Over);
        assert!(table.is_fenced()?);
        Ok(())
    })
}

fn a_table_that_is_in_use_names_who_uses_it(flavour: Flavour) -> Result<()> {
    runtime()?.block_on(async {
        let mut table = table(flavour, "sw_blocked").await?;
        let mut wire = table.server.wire(&table.schema)?;
        wire.run("BEGIN")?;
        wire.run("INSERT INTO t (a) VALUES (1)")?;
        let (outcome, recorded) = table.fence(true).await?;
        let Outcome::Blocked(Some(blocker)) = outcome else {
            anyhow::bail!("{outcome:?}");
        };
        assert_eq!(blocker.connection, u64::from(wire.thread_id()));
        assert!(blocker.who.starts_with("root@"), "{blocker}");
        assert_eq!(recorded, None);
        wire.run("COMMIT")?;
        assert_eq!(table.insert()?, Some(2));
        Ok(())
    })
}

fn a_probe_changes_nothing(flavour: Flavour) -> Result<()> {
    runtime()?.block_on(async {
        let mut table = table(flavour, "sw_probe").await?;
        assert_eq!(probe(&mut table.conn, &table.column).await?, None);
        assert_eq!(table.insert()?, Some(1));
        // Ids that no row shows.
        let mut wire = table.server.wire(&table.schema)?;
        for sql in ["BEGIN", "INSERT INTO t (a) VALUES (2), (3)", "ROLLBACK"] {
            wire.run(sql)?;
        }
        assert_eq!(probe(&mut table.conn, &table.column).await?, None);
        assert_eq!(table.insert()?, Some(4));
        assert_eq!(table.fence(true).await?.0, Outcome::Done);
        assert_eq!(probe(&mut table.conn, &table.column).await?, None);
        assert!(table.is_fenced()?);
        Ok(())
    })
}

/// Its lock comes all the same. The server is the test's own: such a backup is in everybody's way.
fn a_backup_keeps_a_table_as_it_is(flavour: Flavour) -> Result<()> {
    let (begin, end) = match flavour {
        Flavour::MySql => ("LOCK INSTANCE FOR BACKUP", "UNLOCK INSTANCE"),
        Flavour::MariaDb => ("BACKUP LOCK t", "BACKUP UNLOCK"),
    };
    let server = std::sync::Arc::new(Upstream::start_with(flavour, &[])?);
    runtime()?.block_on(async {
        let mut table = table_on(server, "sw_backup").await?;
        let mut backup = table.server.wire(&table.schema)?;
        backup.run(begin)?;
        assert_eq!(table.fence(true).await?, (Outcome::NotAltered, Some(1)));
        let is_in_the_way = probe(&mut table.conn, &table.column).await?;
        assert_eq!(is_in_the_way, Some(Outcome::NotAltered));
        // Nothing has to be lifted, so nothing is in the way of that.
        assert_eq!(table.lift(1, true).await?, Outcome::Done);
        assert_eq!(table.insert()?, Some(1));
        backup.run(end)?;
        assert_eq!(table.fence(true).await?.0, Outcome::Done);
        backup.run(begin)?;
        assert_eq!(table.lift(2, true).await?, Outcome::NotAltered);
        assert!(table.is_fenced()?);
        backup.run(end)?;
        assert_eq!(table.lift(2, true).await?, Outcome::Done);
        assert_eq!(table.insert()?, Some(2));
        Ok(())
    })
}

/// One that has the table's lock, and was to fence: afterwards its table is free, and was not fenced.
fn who_had_the_claim_is_gone(flavour: Flavour) -> Result<()> {
    runtime()?.block_on(async {
        let mut table = table(flavour, "sw_killed").await?;
        let claim = Claim::of(7, Some("leader"));
        let mut paused = connect(&table.server, &table.schema).await?;
        assert!(claim.take(&mut paused).await?);
        assert!(!claim.take(&mut table.conn).await?);
        let (begins, begun) = oneshot::channel();
        let record = async move |reading: Reading| {
            let _ = begins.send(reading);
            std::future::pending().await
        };
        tokio::select! {
            fenced = fence(&mut paused, &table.column, true, record) => anyhow::bail!("{fenced:?}"),
            read = begun => assert!(!read?.was_fenced),
        }
        claim.take_over(&mut table.conn).await?;
        // It is no trouble that it has it already.
        claim.take_over(&mut table.conn).await?;
        assert!(
            paused
                .query_drop("ALTER TABLE t AUTO_INCREMENT = 2147483647")
                .await
                .is_err()
        );
        assert_eq!(table.insert()?, Some(1));
        Ok(())
    })
}

/// Whoever works on another attempt is left alone.
fn claims_of_other_attempts_are_not_taken_over(flavour: Flavour) -> Result<()> {
    runtime()?.block_on(async {
        let mut table = table(flavour, "sw_stranger").await?;
        let mut stranger = connect(&table.server, &table.schema).await?;
        assert!(Claim::of(8, Some("leader")).take(&mut stranger).await?);
        assert!(Claim::of(7, Some("other")).take(&mut stranger).await?);
        let claim = Claim::of(7, Some("leader"));
        claim.take_over(&mut table.conn).await?;
        stranger.query_drop("INSERT INTO t (a) VALUES (1)").await?;
        assert!(!claim.take(&mut stranger).await?);
        Ok(())
    })
}

/// One of them may have the fence, and the other not.
fn a_table_of_the_same_name_in_another_case_is_another(flavour: Flavour) -> Result<()> {
    runtime()?.block_on(async {
        let mut table = table(flavour, "sw_case").await?;
        let fence = table.column.fence;
        table.run(&format!(
            "CREATE TABLE T LIKE t; ALTER TABLE T AUTO_INCREMENT = {fence}; INSERT INTO t (a) VALUES (1)"
        ))?;
        let column = column(&mut table.conn, &table.schema).await?;
        assert_eq!((column.table.as_str(), column.fenced), ("t", false));
        assert_eq!(column.counter, Some(2));
        Ok(())
    })
}

/// On MariaDB its counter is at the fence all the same. Whoever took it for lifted would have statements sent again for ever.
fn a_full_table_is_said_to_be_full_each_time(flavour: Flavour) -> Result<()> {
    const LARGEST: u64 = 2_147_483_647;
    runtime()?.block_on(async {
        let mut table = table(flavour, "sw_full").await?;
        assert_eq!(table.fence(true).await?.0, Outcome::Done);
        // Its keys have used all numbers up.
        for _ in 0..2 {
            let lifted = table.lift(LARGEST + 1, true).await?;
            assert_eq!(lifted, Outcome::Full);
        }
        if flavour == Flavour::MariaDb {
            assert!(table.is_fenced()?);
        }
        // So has a row.
        table.run(&format!("INSERT INTO t (id, a) VALUES ({LARGEST}, 1)"))?;
        for _ in 0..2 {
            assert_eq!(table.lift(2, true).await?, Outcome::Full);
        }
        // There is room for one more.
        table.run(&format!(
            "DELETE FROM t; ALTER TABLE t AUTO_INCREMENT = {}",
            table.column.fence
        ))?;
        assert_eq!(table.lift(LARGEST - 1, true).await?, Outcome::Done);
        assert_eq!(table.insert()?, Some(LARGEST - 1));
        Ok(())
    })
}

/// Its ids count like those of any other.
#[test]
fn a_table_that_keeps_its_history_is_a_table() -> Result<()> {
    runtime()?.block_on(async {
        let server = Upstream::shared(Flavour::MariaDb)?;
        server.run(
            "mysql",
            "CREATE DATABASE sw_history; USE sw_history;
             CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING;
             INSERT INTO t (a) VALUES (1), (2)",
        )?;
        let mut conn = connect(&server, "sw_history").await?;
        let column = column(&mut conn, "sw_history").await?;
        assert_eq!(column.counter, Some(3));
        let outcome = fence(&mut conn, &column, true, async |_| Ok(true)).await?;
        assert_eq!(outcome, Outcome::Done);
        assert!(
            server
                .run("sw_history", "INSERT INTO t (a) VALUES (3)")
                .is_err()
        );
        Ok(())
    })
}

/// What a connection has the server forget, with a value that it refuses in place of this one.
const FORGETS: &[u8] = b"information_schema_stats_expiry = 0";

/// A port that passes one connection on to the server, and has it keep the statistics that it remembers.
async fn remembering(server: &Upstream) -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let (port, server_port) = (listener.local_addr()?.port(), server.port());
    // Who finds no server behind it is disconnected.
    tokio::spawn(async move { drop(pass_on(listener, server_port).await) });
    Ok(port)
}

async fn pass_on(listener: TcpListener, server_port: u16) -> std::io::Result<()> {
    let (client, _) = listener.accept().await?;
    let server = TcpStream::connect(("127.0.0.1", server_port)).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let commands = async {
        let mut bytes = [0; 4_096];
        loop {
            let count = from_client.read(&mut bytes).await?;
            let read = bytes.get_mut(..count).unwrap_or_default();
            if read.is_empty() {
                return to_server.shutdown().await;
            }
            let mut parts = read.windows(FORGETS.len());
            let at = parts.position(|part| part == FORGETS);
            if let Some(at) = at
                && let Some(value) = read.get_mut(at + FORGETS.len() - 1)
            {
                *value = b'x';
            }
            to_server.write_all(read).await?;
        }
    };
    let answers = tokio::io::copy(&mut from_server, &mut to_client);
    tokio::try_join!(commands, answers).map(drop)
}

/// Ids were given and their rows are gone since the server remembers the counter: by that they would be given again.
#[test]
fn a_counter_that_the_server_may_remember_decides_nothing() -> Result<()> {
    if !Flavour::MySql.is_wanted() {
        return Ok(());
    }
    runtime()?.block_on(async {
        let mut table = table(Flavour::MySql, "sw_remembered").await?;
        let port = remembering(&table.server).await?;
        table.conn = connect_to(port, &table.schema).await?;
        assert!(column(&mut table.conn, "sw_remembered").await.is_err());
        let mut was_recorded = false;
        let fenced = fence(&mut table.conn, &table.column, true, async |_: Reading| {
            was_recorded = true;
            Ok(true)
        });
        let fenced = fenced.await;
        assert!(matches!(fenced, Err(SwitchError::Server(_))), "{fenced:?}");
        assert!(!was_recorded);
        let probed = probe(&mut table.conn, &table.column).await;
        assert!(matches!(probed, Err(SwitchError::Server(_))), "{probed:?}");
        assert_eq!(table.insert()?, Some(1));
        Ok(())
    })
}
