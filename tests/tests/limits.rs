//! Where things end: ranges, room in shared memory, ids per call, the lead over the clock, parallel queries, and the
//! figures that tell how near an end is.

use std::time::{Duration, Instant};

use keywright_testkit::{
    IdLog, PgServer, Result, SharedServer, Stop, TestDatabase, copy_ids, expect_sql_error,
    query_i64, query_text,
};
use postgres::{Client, NoTls};

static SERVER: SharedServer = SharedServer::new();

fn database() -> Result<TestDatabase> {
    SERVER.database(PgServer::builder)
}

fn ids(client: &mut Client, query: &str) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    copy_ids(client, query, &mut ids)?;
    Ok(ids)
}

#[test]
fn tag_issues_its_last_id_and_no_more() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    let log = IdLog::new();
    client.batch_execute("SELECT keywright.create_tag('small', max => 10)")?;
    // Also of those that nobody has reserved yet.
    let too_many = client.simple_query("SELECT next_biz_ids('small', 11)");
    let error = expect_sql_error(too_many, "2200H", "tag \"small\" is exhausted at 10");
    assert_eq!(error.detail, "10 ids are left and 11 were asked for.");
    let one = "SELECT next_biz_id('small')";
    log.record(ids(&mut client, "SELECT next_biz_ids('small', 8)")?);
    // More than are left take none of them.
    let too_many = client.simple_query("SELECT next_biz_ids('small', 3)");
    let error = expect_sql_error(too_many, "2200H", "tag \"small\" is exhausted at 10");
    assert_eq!(error.detail, "2 ids are left and 3 were asked for.");
    assert!(error.hint.contains("keywright.alter_tag"), "{error:?}");
    log.record(ids(&mut client, "SELECT next_biz_ids('small', 2)")?);
    assert_eq!(log.check()?.largest, 10);
    for _ in 0..2 {
        expect_sql_error(query_i64(&mut client, one), "2200H", "exhausted at 10");
        expect_sql_error(
            query_i64(&mut database.client()?, one),
            "2200H",
            "exhausted at 10",
        );
    }
    client.batch_execute("SELECT keywright.alter_tag('small', max => 12)")?;
    log.record(vec![query_i64(&mut client, one)?]);
    log.record(vec![query_i64(&mut database.client()?, one)?]);
    expect_sql_error(query_i64(&mut client, one), "2200H", "exhausted at 12");
    let summary = log.check()?;
    assert_eq!((summary.count, summary.largest), (12, 12));
    Ok(())
}

#[test]
fn tag_reaches_the_largest_bigint_but_one() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    let last = i64::MAX - 1;
    client.batch_execute(&format!(
        "SELECT keywright.create_tag('last', start => {}, step => 1000000000)",
        last - 4
    ))?;
    let all = ids(&mut client, "SELECT next_biz_ids('last', 5)")?;
    assert_eq!(all, (last - 4..=last).collect::<Vec<_>>());
    let beyond = query_i64(&mut client, "SELECT next_biz_id('last')");
    let error = expect_sql_error(
        beyond,
        "2200H",
        "tag \"last\" is exhausted at 9223372036854775806",
    );
    assert!(error.hint.starts_with("Use another tag"), "{error:?}");
    // Its end is no lower than any may be.
    let beyond = client.simple_query("SELECT keywright.advance_tag('last', 9223372036854775807)");
    let error = expect_sql_error(beyond, "22003", "is beyond the end of tag \"last\"");
    assert!(error.hint.starts_with("Name the largest"), "{error:?}");
    Ok(())
}

#[test]
fn more_tags_than_room_are_refused_and_the_others_go_on() -> Result<()> {
    let mut server = PgServer::builder()
        .setting("keywright.tags_max", "3")
        .start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('tag' || n) FROM generate_series(1, 5) n",
    )?;
    let logs: [IdLog; 3] = Default::default();
    let go_on = |client: &mut Client| -> Result<()> {
        for (log, tag) in logs.iter().zip(1..) {
            log.record(ids(
                client,
                &format!("SELECT next_biz_ids('tag{tag}', 300)"),
            )?);
        }
        Ok(())
    };
    go_on(&mut client)?;
    for tag in [4, 5, 4] {
        let refused = query_i64(&mut client, &format!("SELECT next_biz_id('tag{tag}')"));
        let error = expect_sql_error(refused, "53400", "no room in shared memory for tag");
        assert!(error.hint.contains("keywright.tags_max"), "{error:?}");
        go_on(&mut client)?;
        go_on(&mut server.client("postgres")?)?;
    }
    let full = "SELECT count(*) FROM keywright.health WHERE name = 'shared memory' AND NOT ok";
    assert_eq!(query_i64(&mut client, full)?, 1);
    assert_eq!(
        query_i64(
            &mut client,
            "SELECT count(*) FROM keywright.stats WHERE kind = 'tag'"
        )?,
        5
    );
    server.set("keywright.tags_max", "5");
    server.restart(Stop::Fast)?;
    let mut client = server.client("postgres")?;
    go_on(&mut client)?;
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('tag4')")?, 1);
    for log in &logs {
        log.check()?;
    }
    assert!(!server.log_contains("PANIC")?);
    Ok(())
}

#[test]
fn more_worker_ids_than_room_are_refused_and_the_others_go_on() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.workers_max", "2")
        .start()?;
    let mut admin = server.client("postgres")?;
    let mut clients = Vec::new();
    for name in ["one", "two", "three"] {
        admin.batch_execute(&format!("CREATE DATABASE {name}"))?;
        let mut client = server.client(name)?;
        client.batch_execute("CREATE EXTENSION keywright")?;
        // Looking takes no room.
        query_i64(
            &mut client,
            "SELECT count(*) FROM keywright.stats, keywright.health",
        )?;
        clients.push(client);
    }
    let log = IdLog::new();
    for (client, worker) in clients.iter_mut().zip(1..) {
        let set = format!("SELECT keywright.set_worker_id({worker})");
        let set = client.batch_execute(&set);
        let first = set.and_then(|()| query_i64(client, "SELECT snowflake_id()"));
        if worker <= 2 {
            log.record(vec![first?]);
        } else {
            let error = expect_sql_error(
                first,
                "53400",
                "no room in shared memory for another worker id",
            );
            assert!(error.hint.contains("keywright.workers_max"), "{error:?}");
        }
    }
    for client in clients.iter_mut().take(2) {
        log.record(ids(client, "SELECT snowflake_ids(10000)")?);
        let refused = client.simple_query("SELECT readable_id('ORD')");
        expect_sql_error(refused, "53400", "no room in shared memory");
        log.record(ids(client, "SELECT snowflake_ids(10000)")?);
        assert_eq!(
            query_i64(
                client,
                "SELECT count(*) FROM keywright.stats WHERE kind = 'snowflake'"
            )?,
            1
        );
    }
    assert_eq!(log.check()?.count, 40_002);
    assert!(!server.log_contains("PANIC")?);
    Ok(())
}

#[test]
fn one_call_issues_no_more_than_allowed() -> Result<()> {
    let database = database()?;
    let mut client = database.client_with("-c keywright.ids_per_call_max=50")?;
    client.batch_execute("SELECT keywright.create_tag('orders')")?;
    for function in ["snowflake_ids(%)", "next_biz_ids('orders', %)"] {
        let call = |n: i64| format!("SELECT {}", function.replace('%', &n.to_string()));
        assert_eq!(ids(&mut client, &call(50))?.len(), 50);
        for n in [51, 0, -1, i64::from(i32::MAX)] {
            let error = expect_sql_error(
                client.simple_query(&call(n)),
                "22003",
                "1 to 50 ids in one call",
            );
            assert!(
                error.hint.contains("keywright.ids_per_call_max"),
                "{error:?}"
            );
        }
    }
    let mut raised = database.client_with("-c keywright.ids_per_call_max=1000000")?;
    let log = IdLog::new();
    log.record(ids(&mut raised, "SELECT next_biz_ids('orders', 1000000)")?);
    assert_eq!(log.check()?.count, 1_000_000);
    Ok(())
}

/// 128 ids per millisecond and at most 200 ms ahead: 10,000 ids are 78 ms.
#[test]
fn bursts_wait_at_the_largest_lead() -> Result<()> {
    let database = database()?;
    database.client()?.batch_execute("CREATE DATABASE bursts")?;
    let connect = |options: &str| {
        let mut config = database.server().config("bursts", "postgres");
        config.options(options).connect(NoTls)
    };
    let burst = "SELECT snowflake_ids(10000)";
    let options = "-c keywright.lead_ms_max=200 -c keywright.bound_window_ms=100";
    let mut client = connect(options)?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_layout('js53'); SELECT keywright.set_worker_id(31)",
    )?;
    let log = IdLog::new();
    log.record(ids(&mut client, burst)?);
    let began = Instant::now();
    let mut run = Vec::new();
    for _ in 0..20 {
        copy_ids(&mut client, burst, &mut run)?;
    }
    let took = began.elapsed();
    println!("20 bursts of 78 ms took {took:?}");
    assert!(took >= Duration::from_millis(20 * 78 - 2 * 200), "{took:?}");
    log.record(run);
    let lead = "SELECT lead_ms FROM keywright.stats WHERE kind = 'snowflake'";
    let lead_ms = query_i64(&mut client, lead)?;
    // Without a record the first id lies one lead ahead already, and that is where the clock begins.
    assert!(lead_ms <= 2 * 200 + 10, "{lead_ms}");
    // Nearly all that may run ahead, in one go.
    let at_once = "SELECT snowflake_ids(25000)";
    let mut hasty = connect(&format!(
        "{options} -c keywright.refill_wait_ms_max=20 -c keywright.ids_per_call_max=25000"
    ))?;
    let mut run = Vec::new();
    let refused = loop {
        let burst = hasty.query(at_once, &[]);
        match burst {
            Ok(rows) => run.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
            Err(error) => break error,
        }
    };
    log.record(run);
    let error = expect_sql_error::<()>(
        Err(refused),
        "53400",
        "ahead of the clock and may not be more than 200 ms",
    );
    assert!(error.hint.contains("Retry"), "{error:?}");
    log.record(ids(&mut client, burst)?);
    println!("{:?}", log.check()?);
    Ok(())
}

/// Makes every query that may run in workers do so.
fn force_parallel(client: &mut Client) -> Result<()> {
    let name = "SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')";
    let force = query_text(client, name)?;
    Ok(client.batch_execute(&format!(
        "SET {force} = on; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2"
    ))?)
}

fn plan(client: &mut Client, query: &str) -> Result<String> {
    let rows = client.query(&format!("EXPLAIN (ANALYZE, COSTS off) {query}"), &[])?;
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    Ok(lines.join("\n"))
}

#[test]
fn parallel_queries_decode_in_workers_and_issue_in_none() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute(
        "SELECT keywright.create_tag('orders');
         CREATE TABLE event (id bigint DEFAULT snowflake_id(), readable text DEFAULT readable_id('E'), n int);
         INSERT INTO event (n) SELECT generate_series(1, 30000);
         ANALYZE event",
    )?;
    let sums = [
        "SELECT sum(snowflake_worker(id))::bigint FROM event",
        "SELECT sum(snowflake_worker(id, 'twitter'))::bigint FROM event",
        "SELECT sum(snowflake_sequence(id))::bigint FROM event",
        "SELECT count(*) FROM event WHERE id >= snowflake_floor(snowflake_timestamp(id))",
        "SELECT sum(d.sequence)::bigint FROM event, snowflake_decode(id) d",
        "SELECT count(DISTINCT (d.issued_at, d.sequence)) FROM event, readable_decode(readable) d",
    ];
    let serial = sums.map(|sum| query_i64(&mut client, sum));
    let mut parallel = database.client()?;
    force_parallel(&mut parallel)?;
    for (sum, serial) in sums.iter().zip(serial) {
        // Again in a session that has looked nothing up yet.
        let mut cold = database.client()?;
        force_parallel(&mut cold)?;
        let serial = serial?;
        assert_eq!(query_i64(&mut parallel, sum)?, serial, "{sum}");
        assert_eq!(query_i64(&mut cold, sum)?, serial, "{sum}");
        let plan = plan(&mut parallel, sum)?;
        assert!(
            plan.contains("Workers Launched: 2") || plan.contains("Workers Launched: 1"),
            "{plan}"
        );
    }
    let log = IdLog::new();
    for select in [
        "SELECT next_biz_id('orders') FROM event",
        "SELECT next_biz_id('orders') FROM event WHERE n % 2 = 0",
    ] {
        log.record(ids(&mut parallel, select)?);
        let plan = plan(&mut parallel, &select.replace("30000", "1"))?;
        assert!(!plan.contains("Gather"), "{plan}");
    }
    assert_eq!(log.check()?.count, 45_000);
    let snowflakes = IdLog::new();
    snowflakes.record(ids(&mut parallel, "SELECT snowflake_id() FROM event")?);
    snowflakes.record(ids(&mut parallel, "SELECT id FROM event ORDER BY id")?);
    assert_eq!(snowflakes.check()?.count, 60_000);
    Ok(())
}

#[test]
fn library_that_is_not_preloaded_decodes_and_says_what_to_do() -> Result<()> {
    let server = PgServer::builder().preload(false).start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright; SELECT keywright.create_tag('orders')")?;
    for generator in [
        "snowflake_id()",
        "snowflake_ids(2)",
        "next_biz_id('orders')",
        "next_biz_ids('orders', 2)",
        "readable_id('ORD')",
        "keywright.advance_tag('orders', 5)",
    ] {
        let refused = client.simple_query(&format!("SELECT {generator}"));
        let error = expect_sql_error(refused, "55000", "keywright is not preloaded");
        assert!(error.hint.contains("shared_preload_libraries"), "{error:?}");
    }
    for layout in ["", ", 'twitter'"] {
        let worker =
            format!("SELECT worker_id::bigint FROM snowflake_decode(2068951234567890944{layout})");
        query_i64(&mut client, &worker)?;
    }
    let said = "SELECT hint FROM keywright.health WHERE name = 'preloaded' AND NOT ok";
    assert!(query_text(&mut client, said)?.contains("shared_preload_libraries"));
    assert_eq!(
        query_i64(&mut client, "SELECT count(*) FROM keywright.tags")?,
        1
    );
    Ok(())
}

#[test]
fn library_refuses_sql_of_another_version() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.create_tag('orders')")?;
    let log = IdLog::new();
    log.record(ids(&mut client, "SELECT next_biz_ids('orders', 5)")?);
    let set = |version: &str| {
        format!("UPDATE pg_extension SET extversion = '{version}' WHERE extname = 'keywright'")
    };
    client.batch_execute(&set("9.9.9"))?;
    let mut other = database.client()?;
    for generator in ["next_biz_id('orders')", "snowflake_id()"] {
        let refused = query_i64(&mut other, &format!("SELECT {generator}"));
        let error = expect_sql_error(refused, "55000", "version \"9.9.9\"");
        assert!(
            error.detail.contains("0.1.0") && error.hint.contains("ALTER EXTENSION"),
            "{error:?}"
        );
    }
    query_i64(
        &mut other,
        "SELECT snowflake_worker(2068951234567890944, 'twitter')::bigint",
    )?;
    client.batch_execute(&set("0.1.0"))?;
    log.record(ids(
        &mut database.client()?,
        "SELECT next_biz_ids('orders', 5)",
    )?);
    assert_eq!(log.check()?.count, 10);
    Ok(())
}
