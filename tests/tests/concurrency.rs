//! Many connections at once: no id twice, each connection's ids strictly increasing, none refused.

use std::io::Read;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use keywright_testkit::{Draw, IdLog, IdSummary, PgServer, Result, copy_ids, query_i64};
use postgres::NoTls;

const CONNECTIONS: usize = 64;
const ROUNDS: usize = 4;
const IDS_PER_ROUND: usize = 20_000;
/// Five million and a little.
const IDS: usize = CONNECTIONS * ROUNDS * IDS_PER_ROUND;

fn server() -> Result<PgServer> {
    let server = PgServer::builder()
        .setting("max_connections", "250")
        .start()?;
    server.client("postgres")?.batch_execute(
        "CREATE EXTENSION keywright; \
         SELECT keywright.set_worker_id(33); \
         SELECT keywright.create_tag('orders')",
    )?;
    Ok(server)
}

/// Draws five million ids on 64 connections; none is refused.
fn draw_millions(server: &PgServer, function: &str) -> Result<IdSummary> {
    let began = Instant::now();
    let log = IdLog::new();
    let query = format!("SELECT {function} FROM generate_series(1, {IDS_PER_ROUND})");
    let draw = Draw {
        connections: CONNECTIONS,
        rounds: ROUNDS,
        query: &query,
    };
    let errors = log.draw(&server.config("postgres", "postgres"), draw);
    assert!(errors.is_empty(), "{errors:?}");
    let summary = log.check()?;
    assert_eq!(summary.count, IDS);
    println!(
        "{function}: {} ids on {CONNECTIONS} connections, all distinct, in {} ms",
        summary.count,
        began.elapsed().as_millis()
    );
    Ok(summary)
}

fn unix_ms() -> Result<i64> {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(i64::try_from(elapsed.as_millis())?)
}

#[test]
fn millions_of_snowflake_ids() -> Result<()> {
    let server = server()?;
    let began_ms = unix_ms()?;
    let summary = draw_millions(&server, "snowflake_id()")?;
    let mut client = server.client("postgres")?;
    let mut issued_ms = |id: i64| {
        let sql = format!("SELECT (extract(epoch FROM snowflake_timestamp({id})) * 1000)::bigint");
        query_i64(&mut client, &sql)
    };
    let (first_ms, last_ms) = (issued_ms(summary.smallest)?, issued_ms(summary.largest)?);
    // Without a record of earlier ids the first one lies where the longest lead would have ended.
    assert!(
        (began_ms..=began_ms + 20_000).contains(&first_ms),
        "{first_ms} against {began_ms}"
    );
    assert!(
        last_ms <= unix_ms()? + 20_000,
        "{last_ms} is far in the future"
    );
    let workers = format!(
        "SELECT (snowflake_worker({}) * 100 + snowflake_worker({}))::bigint",
        summary.smallest, summary.largest
    );
    assert_eq!(query_i64(&mut client, &workers)?, 3_333);
    Ok(())
}

#[test]
fn millions_of_tag_ids() -> Result<()> {
    let server = server()?;
    let summary = draw_millions(&server, "next_biz_id('orders')")?;
    // Nothing was rolled back and nothing crashed, so there is no gap either.
    assert_eq!(summary.smallest, 1);
    assert_eq!(usize::try_from(summary.largest)?, IDS);
    Ok(())
}

#[test]
fn readable_ids_of_64_connections() -> Result<()> {
    const IDS_EACH: usize = 4_000;
    const LENGTH: usize = 27;
    let server = server()?;
    let config = server.config("postgres", "postgres");
    let one = || -> Result<Vec<String>> {
        let mut client = config.connect(NoTls)?;
        let mut text = String::new();
        let sql = format!(
            "COPY (SELECT readable_id('ORD') FROM generate_series(1, {IDS_EACH})) TO STDOUT"
        );
        client.copy_out(sql.as_str())?.read_to_string(&mut text)?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    let drawn: Vec<Result<Vec<String>>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(one)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|ids| ids.unwrap_or_else(|_| Err(anyhow::anyhow!("a drawing thread panicked"))))
            .collect()
    });
    let mut all = Vec::new();
    for ids in drawn {
        all.extend(ids?);
    }
    assert_eq!(all.len(), CONNECTIONS * IDS_EACH);
    assert!(all.iter().all(|id| id.len() == LENGTH));
    all.sort_unstable();
    all.dedup();
    assert_eq!(
        all.len(),
        CONNECTIONS * IDS_EACH,
        "some readable ids came twice"
    );
    println!("readable_id: {} ids, all distinct", all.len());
    Ok(())
}

/// Batches of several sizes and single ids, of both kinds, by many connections: a batch is consecutive.
#[test]
fn batches_among_single_ids() -> Result<()> {
    let server = server()?;
    let config = server.config("postgres", "postgres");
    for (batch, single) in [
        ("next_biz_ids('orders', {n})", "next_biz_id('orders')"),
        ("snowflake_ids({n})", "snowflake_id()"),
    ] {
        let log = IdLog::new();
        let one = |number: usize| -> Result<()> {
            let mut client = config.connect(NoTls)?;
            let mut run = Vec::new();
            for round in 0..40 {
                let n = 1 + (number * 37 + round * 101) % 4_000;
                let before = run.len();
                let call = batch.replace("{n}", &n.to_string());
                copy_ids(&mut client, &format!("SELECT {call}"), &mut run)?;
                let ids = run.get(before..).unwrap_or_default();
                assert_eq!(ids.len(), n);
                let consecutive = ids.windows(2).all(|pair| pair[1] == pair[0] + 1);
                assert!(consecutive, "a batch of {call} has a gap");
                let singles = format!("SELECT {single} FROM generate_series(1, 10)");
                copy_ids(&mut client, &singles, &mut run)?;
            }
            log.record(run);
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|i| scope.spawn(move || one(i))).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("no drawing thread panics"))
        })?;
        println!(
            "{batch}: {} ids in batches, all distinct",
            log.check()?.count
        );
    }
    Ok(())
}

/// 200 applications insert rows into the same tables, with the keys as column defaults.
#[test]
fn inserts_of_200_connections() -> Result<()> {
    const APPLICATIONS: usize = 200;
    const ROWS: usize = 50;
    let server = server()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE TABLE event (id bigint PRIMARY KEY DEFAULT snowflake_id(), body text); \
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT next_biz_id('orders'), body text)",
    )?;
    let logs = [IdLog::new(), IdLog::new()];
    let config = server.config("postgres", "postgres");
    let application = || -> Result<()> {
        let mut client = config.connect(NoTls)?;
        for (table, log) in ["event", "orders"].iter().zip(&logs) {
            let insert = format!("INSERT INTO {table} (body) VALUES ('hello') RETURNING id");
            let mut run = Vec::new();
            for _ in 0..ROWS {
                run.push(query_i64(&mut client, &insert)?);
            }
            log.record(run);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..APPLICATIONS)
            .map(|_| scope.spawn(application))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no application panics"))
    })?;
    for (table, log) in ["event", "orders"].iter().zip(&logs) {
        assert_eq!(log.check()?.count, APPLICATIONS * ROWS);
        let rows = query_i64(&mut client, &format!("SELECT count(*) FROM {table}"))?;
        assert_eq!(usize::try_from(rows)?, APPLICATIONS * ROWS);
    }
    Ok(())
}
