//! What goes wrong in a statement, a backend or the whole server: an id that was issued stays issued.

use std::collections::BTreeMap;
use std::sync::Arc;

use keywright_testkit::{
    IdLog, Load, PgServer, Result, Stop, copy_ids, expect_sql_error, query_i64, query_text,
};
use postgres::Client;

/// Both kinds of id, in calls short enough that a load is interrupted in the middle of refills.
const KINDS: [&str; 2] = [
    "SELECT snowflake_id() FROM generate_series(1, 400)",
    "SELECT next_biz_id('orders') FROM generate_series(1, 400)",
];

/// A server that refills as often as it can: every twentieth of a second and every 50 ids.
fn server(fsync: bool) -> Result<PgServer> {
    let server = PgServer::builder()
        .fsync(fsync)
        .setting("keywright.bound_window_ms", "100")
        .start()?;
    server.client("postgres")?.batch_execute(
        "CREATE EXTENSION keywright; \
         SELECT keywright.set_worker_id(1); \
         SELECT keywright.create_tag('orders', step => 50, step_min => 50, step_max => 50)",
    )?;
    Ok(server)
}

/// What is issued before and after, for each kind of id.
struct Logs([Arc<IdLog>; 2]);

impl Logs {
    fn new() -> Logs {
        Logs([Arc::default(), Arc::default()])
    }

    /// Four connections for each kind of id.
    fn load(&self, server: &PgServer) -> [Load; 2] {
        let config = server.config("postgres", "postgres");
        let [snowflake, tag] = &self.0;
        [
            Load::start(&config, 4, KINDS[0], snowflake),
            Load::start(&config, 4, KINDS[1], tag),
        ]
    }

    /// One connection draws once of each kind.
    fn draw(&self, client: &mut Client) -> Result<()> {
        for (log, query) in self.0.iter().zip(KINDS) {
            let mut run = Vec::new();
            copy_ids(client, query, &mut run)?;
            log.record(run);
        }
        Ok(())
    }

    fn check(&self, what: &str) -> Result<()> {
        for (log, kind) in self.0.iter().zip(["snowflake", "tag"]) {
            let summary = log.check()?;
            println!("{what}: {} {kind} ids, all distinct", summary.count);
        }
        Ok(())
    }
}

fn wait_for(loads: &[Load; 2], ids: usize) -> Result<()> {
    loads.iter().try_for_each(|load| load.wait_for(ids))
}

fn stop(loads: [Load; 2]) -> Result<()> {
    for load in loads {
        assert_eq!(load.stop()?, BTreeMap::new(), "nothing may be refused");
    }
    Ok(())
}

#[test]
fn rollbacks_and_errors_give_nothing_back() -> Result<()> {
    let mut server = server(false)?;
    let logs = Logs::new();
    let loads = logs.load(&server);
    let mut client = server.client("postgres")?;
    for _ in 0..5 {
        client.batch_execute("BEGIN")?;
        logs.draw(&mut client)?;
        client.batch_execute("ROLLBACK; BEGIN; SAVEPOINT a")?;
        logs.draw(&mut client)?;
        client.batch_execute("ROLLBACK TO a; SAVEPOINT b")?;
        logs.draw(&mut client)?;
        client.batch_execute("RELEASE b; COMMIT")?;
        logs.draw(&mut client)?;
        for (log, function) in logs
            .0
            .iter()
            .zip(["snowflake_id()", "next_biz_id('orders')"])
        {
            failing_statement(&mut client, log, function)?;
        }
    }
    wait_for(&loads, 5_000)?;
    stop(loads)?;
    server.kill9()?;
    server.start()?;
    logs.draw(&mut server.client("postgres")?)?;
    logs.check("rollbacks and errors")
}

/// Row 8000 divides by zero; the rows before it have left the server by then, most of them.
fn failing_statement(client: &mut Client, log: &IdLog, function: &str) -> Result<()> {
    let mut run = Vec::new();
    let query = format!(
        "SELECT CASE WHEN n = 8000 THEN 1 / (n - 8000) ELSE {function} END FROM generate_series(1, 9000) n"
    );
    let failed = copy_ids(client, &query, &mut run);
    assert!(format!("{:?}", failed.unwrap_err()).contains("division by zero"));
    assert!(run.len() > 1_000, "{} ids came before the error", run.len());
    log.record(run);
    Ok(())
}

/// Rows refused by a constraint use up their ids; the ids of the next rows are others.
#[test]
fn refused_rows_use_up_their_ids() -> Result<()> {
    let server = server(false)?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT next_biz_id('orders'), n integer UNIQUE, at bigint DEFAULT snowflake_id())",
    )?;
    for n in 0..200 {
        let insert = format!("INSERT INTO orders (n) VALUES ({})", n / 2);
        let done = client.batch_execute(&insert);
        if n % 2 == 1 {
            expect_sql_error(done, "23505", "orders_n_key");
        } else {
            done?;
        }
    }
    let figures = "SELECT count(*) * 1000000 + count(DISTINCT at) * 1000 + max(id) FROM orders";
    assert_eq!(query_i64(&mut client, figures)?, 100_100_199);
    Ok(())
}

#[test]
fn killed_backends_under_load() -> Result<()> {
    const KILLS: usize = 6;
    let server = server(false)?;
    let logs = Logs::new();
    let loads = logs.load(&server);
    for _ in 0..KILLS {
        wait_for(&loads, 5_000)?;
        let mut client = server.client("postgres")?;
        let victim = "SELECT pid::bigint FROM pg_stat_activity WHERE query LIKE 'COPY%' ORDER BY random() LIMIT 1";
        let pid = query_i64(&mut client, victim)?;
        server.kill9_backend(i32::try_from(pid)?)?;
    }
    wait_for(&loads, 5_000)?;
    stop(loads)?;
    logs.check(&format!("{KILLS} backends killed"))
}

/// Several lives of one server, each with a load of its own that is there when it ends.
fn lives(
    mut server: PgServer,
    count: usize,
    end: impl Fn(&mut PgServer) -> Result<()>,
) -> Result<()> {
    let logs = Logs::new();
    for _ in 0..count {
        let loads = logs.load(&server);
        wait_for(&loads, 5_000)?;
        end(&mut server)?;
        stop(loads)?;
        server.start()?;
    }
    logs.draw(&mut server.client("postgres")?)?;
    logs.check(&format!("{count} lives"))?;
    assert!(!server.log_contains("PANIC")?);
    Ok(())
}

#[test]
fn killed_servers_under_load() -> Result<()> {
    lives(server(false)?, 6, PgServer::kill9)
}

#[test]
fn killed_servers_under_load_with_fsync() -> Result<()> {
    lives(server(true)?, 4, PgServer::kill9)
}

#[test]
fn immediate_restarts_under_load() -> Result<()> {
    lives(server(false)?, 4, |server| server.stop(Stop::Immediate))
}

#[test]
fn fast_restarts_under_load() -> Result<()> {
    lives(server(false)?, 3, |server| server.stop(Stop::Fast))
}

/// A refill is durable although the transaction that made it never ends, and although nothing else is flushed.
#[test]
fn open_transactions_that_refilled() -> Result<()> {
    for fsync in [false, true] {
        let mut server = server(fsync)?;
        let logs = Logs::new();
        for _ in 0..4 {
            let mut client = server.client("postgres")?;
            client.batch_execute("SET synchronous_commit = off; BEGIN")?;
            let refills = "SELECT sum(refills)::bigint FROM keywright.stats";
            let before = query_i64(&mut client, refills)?;
            logs.draw(&mut client)?;
            assert!(query_i64(&mut client, refills)? > before + 5);
            // A second session, whose commits are not flushed either, goes on from there.
            let mut other = server.client("postgres")?;
            other.batch_execute("SET synchronous_commit = off")?;
            logs.draw(&mut other)?;
            server.kill9()?;
            server.start()?;
        }
        logs.draw(&mut server.client("postgres")?)?;
        logs.check("open transactions")?;
    }
    Ok(())
}

/// Texts instead of numbers, with bounds of their own.
#[test]
fn readable_ids_across_kills() -> Result<()> {
    let mut server = server(false)?;
    let mut all = Vec::new();
    for _ in 0..4 {
        let mut client = server.client("postgres")?;
        for _ in 0..5 {
            let ids = query_text(
                &mut client,
                "SELECT string_agg(readable_id('ORD'), ' ') FROM generate_series(1, 2000)",
            )?;
            all.extend(ids.split(' ').map(str::to_owned));
        }
        server.kill9()?;
        server.start()?;
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!((all.len(), count), (40_000, 40_000));
    Ok(())
}
