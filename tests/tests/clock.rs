//! The server's clock is stepped back and forward, while it runs and while it does not; processes are stopped and
//! continued: ids stay distinct and increasing, or the clock policy's own error says why there is none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use keywright_testkit::{
    IdLog, Load, PgServer, Result, copy_ids, expect_sql_error, query_i64, query_text,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use postgres::{Client, NoTls};

const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 86_400;

const SNOWFLAKE: &str = "SELECT snowflake_id() FROM generate_series(1, 300)";
const TAG: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 300)";
/// Time and sequence of a readable id as one number.
const READABLE: &str = "SELECT ((extract(epoch FROM d.issued_at) * 1000)::bigint << 18) + d.sequence \
     FROM generate_series(1, 300) n, readable_decode(readable_id('B' || n)) d";

/// A server with a clock of its own, short windows, and the settings given.
fn server(settings: &[(&str, &str)]) -> Result<PgServer> {
    let mut builder = PgServer::builder()
        .fake_clock()
        .setting("keywright.bound_window_ms", "200");
    for (name, value) in settings {
        builder = builder.setting(name, value);
    }
    let server = builder.start()?;
    server.client("postgres")?.batch_execute(
        "CREATE EXTENSION keywright; \
         SELECT keywright.set_worker_id(1); \
         SELECT keywright.create_tag('orders', step => 500, step_max => 500)",
    )?;
    Ok(server)
}

/// Every kind of id, each with its own log.
#[derive(Default)]
struct Logs([Arc<IdLog>; 3]);

impl Logs {
    fn load(&self, server: &PgServer) -> Vec<Load> {
        let config = server.config("postgres", "postgres");
        let kinds = [SNOWFLAKE, TAG, READABLE].iter().zip(&self.0);
        kinds
            .map(|(query, log)| Load::start(&config, 2, query, log))
            .collect()
    }

    fn check(&self, what: &str) -> Result<()> {
        for (log, kind) in self.0.iter().zip(["snowflake", "tag", "readable"]) {
            let count = log.check()?.count;
            println!("{what}: {count} {kind} ids, all distinct");
        }
        Ok(())
    }
}

fn wait_for(loads: &[Load], ids: usize) -> Result<()> {
    loads.iter().try_for_each(|load| load.wait_for(ids))
}

fn stop(loads: Vec<Load>) -> Result<()> {
    for load in loads {
        assert_eq!(load.stop()?, BTreeMap::new(), "nothing may be refused");
    }
    Ok(())
}

/// How far a snowflake id's time is from the real one, seconds.
fn ahead_s(client: &mut Client, id: i64) -> Result<i64> {
    let sql = format!("SELECT extract(epoch FROM snowflake_timestamp({id}))::bigint");
    let real = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    Ok(query_i64(client, &sql)? - i64::try_from(real)?)
}

fn assert_near(seen_s: i64, expected_s: i64) {
    assert!(
        (seen_s - expected_s).abs() <= 40,
        "{seen_s} s ahead of the real time, not about {expected_s} s"
    );
}

#[test]
fn carry_while_the_clock_is_stepped() -> Result<()> {
    let server = server(&[])?;
    let logs = Logs::default();
    let loads = logs.load(&server);
    let mut client = server.client("postgres")?;
    wait_for(&loads, 1_000)?;
    // Back an hour, back again, forward a day, home, and the same points once more.
    for offset_s in [-HOUR_S, -2 * HOUR_S, DAY_S, 0, -HOUR_S, DAY_S, -1, 1, 0] {
        server.clock()?.step_to(offset_s)?;
        wait_for(&loads, 3_000)?;
        // A step far forward is not followed, or ids would stay a day ahead for good.
        let id = query_i64(&mut client, "SELECT snowflake_id()")?;
        assert_near(ahead_s(&mut client, id)?, 0);
    }
    stop(loads)?;
    logs.check("stepped while running")?;
    assert!(server.log_contains("more than keywright.clock_jump_ms_max; ids do not follow it")?);
    Ok(())
}

#[test]
fn carry_when_the_clock_was_stepped_across_restarts() -> Result<()> {
    let mut server = server(&[])?;
    let logs = Logs::default();
    // Ids carry the clock's time, or the latest that was issued before, whichever is later.
    for (offset_s, ids_s) in [
        (0, 0),
        (-HOUR_S, 0),
        (-2 * HOUR_S, 0),
        (DAY_S, DAY_S),
        (0, DAY_S),
        (-HOUR_S, DAY_S),
        (DAY_S, DAY_S),
    ] {
        server.clock()?.step_to(offset_s)?;
        let loads = logs.load(&server);
        wait_for(&loads, 1_500)?;
        let mut client = server.client("postgres")?;
        let id = query_i64(&mut client, "SELECT snowflake_id()")?;
        // While it runs it does not follow a day; it does when it starts.
        drop(client);
        server.kill9()?;
        stop(loads)?;
        server.start()?;
        let mut client = server.client("postgres")?;
        let after = query_i64(&mut client, "SELECT snowflake_id()")?;
        assert!(after > id);
        assert_near(ahead_s(&mut client, after)?, ids_s);
    }
    logs.check("stepped across restarts")
}

fn refused(client: &mut Client) -> Result<()> {
    let error = expect_sql_error(
        query_i64(client, "SELECT snowflake_id()"),
        "55000",
        "earlier than it did",
    );
    assert!(error.hint.contains("carry"), "{error:?}");
    Ok(())
}

#[test]
fn refuse_while_the_clock_is_behind() -> Result<()> {
    let mut server = server(&[("keywright.clock_policy", "refuse")])?;
    let logs = Logs::default();
    let [snowflakes, tags, _] = &logs.0;
    let draw = |client: &mut Client, query: &str, log: &IdLog| -> Result<()> {
        let mut run = Vec::new();
        copy_ids(client, query, &mut run)?;
        log.record(run);
        Ok(())
    };
    let mut client = server.client("postgres")?;
    draw(&mut client, SNOWFLAKE, snowflakes)?;
    for offset_s in [-HOUR_S, -2 * HOUR_S, -HOUR_S, -5] {
        server.clock()?.step_to(offset_s)?;
        refused(&mut client)?;
        refused(&mut server.client("postgres")?)?;
        // Tags tell no time.
        draw(&mut client, TAG, tags)?;
    }
    // Session by session the policy can be another.
    client.batch_execute("SET keywright.clock_policy = carry")?;
    draw(&mut client, SNOWFLAKE, snowflakes)?;
    client.batch_execute("RESET keywright.clock_policy")?;
    refused(&mut client)?;
    server.clock()?.step_to(0)?;
    draw(&mut client, SNOWFLAKE, snowflakes)?;
    // A restart behind its own bound: readings of an earlier life are not remembered, the bound is.
    server.kill9()?;
    server.clock()?.step_to(-HOUR_S)?;
    server.start()?;
    let mut client = server.client("postgres")?;
    draw(&mut client, SNOWFLAKE, snowflakes)?;
    server.clock()?.step_to(-2 * HOUR_S)?;
    refused(&mut client)?;
    server.clock()?.step_to(0)?;
    draw(&mut client, SNOWFLAKE, snowflakes)?;
    println!(
        "refuse: {} snowflake ids, all distinct",
        snowflakes.check()?.count
    );
    tags.check()?;
    Ok(())
}

/// Sessions that read the clock at the same time and get their ids in another order see no step back.
#[test]
fn steady_clock_is_not_taken_for_one_that_steps_back() -> Result<()> {
    const SPARE_BIT: i64 = 1 << 12;
    let server = PgServer::builder().start()?;
    server.client("postgres")?.batch_execute(
        "CREATE EXTENSION keywright; \
         SELECT keywright.set_layout('time=41,worker=9,spare=1,sequence=12,epoch=1288834974657'); \
         SELECT keywright.set_worker_id(1)",
    )?;
    for policy in ["refuse", "wait", "spare_worker"] {
        let log = Arc::new(IdLog::new());
        let mut config = server.config("postgres", "postgres");
        config.options(&format!("-c keywright.clock_policy={policy}"));
        let query = "SELECT snowflake_id() & 4096 FROM generate_series(1, 3000)";
        let mut spares = Vec::new();
        let load = Load::start(&config, 8, SNOWFLAKE, &log);
        load.wait_for(500_000)?;
        copy_ids(&mut config.connect(NoTls)?, query, &mut spares)?;
        assert_eq!(load.stop()?, BTreeMap::new(), "{policy}");
        assert!(spares.iter().all(|bit| bit & SPARE_BIT == 0), "{policy}");
        log.check()?;
    }
    Ok(())
}

#[test]
fn wait_for_a_clock_that_is_a_little_behind() -> Result<()> {
    let server = server(&[
        ("keywright.clock_policy", "wait"),
        ("keywright.clock_wait_ms_max", "10s"),
    ])?;
    let log = Arc::new(IdLog::new());
    let mut client = server.client("postgres")?;
    let mut run = vec![query_i64(&mut client, "SELECT snowflake_id()")?];
    for _ in 0..2 {
        let offset_s = if run.len() == 1 { -4 } else { -8 };
        server.clock()?.step_to(offset_s)?;
        let began = Instant::now();
        run.push(query_i64(&mut client, "SELECT snowflake_id()")?);
        let waited = began.elapsed();
        // Offsets are whole seconds, and the first id was drawn a moment before.
        let wait = Duration::from_secs(1)..Duration::from_secs(60);
        assert!(wait.contains(&waited), "waited {waited:?}");
    }
    log.record(run);
    let waits = "SELECT waits FROM keywright.stats WHERE kind = 'snowflake'";
    assert!(query_i64(&mut client, waits)? >= 2);
    server.clock()?.step_to(-HOUR_S)?;
    let began = Instant::now();
    refused(&mut client)?;
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "{:?}",
        began.elapsed()
    );
    server.clock()?.step_to(0)?;
    // Several at once that have to wait.
    let load = Load::start(&server.config("postgres", "postgres"), 4, SNOWFLAKE, &log);
    load.wait_for(2_000)?;
    server.clock()?.step_to(-1)?;
    load.wait_for(5_000)?;
    assert_eq!(load.stop()?, BTreeMap::new());
    println!("wait: {} ids, all distinct", log.check()?.count);
    Ok(())
}

#[test]
fn spare_worker_issues_while_the_clock_is_behind() -> Result<()> {
    const SPARE_BIT: i64 = 1 << 12;
    let mut server = server(&[("keywright.clock_policy", "spare_worker")])?;
    let mut client = server.client("postgres")?;
    let without = query_i64(&mut client, "SELECT snowflake_id()");
    expect_sql_error(without, "22023", "spare");
    client.batch_execute(
        "SELECT keywright.set_layout('time=41,worker=9,spare=1,sequence=12,epoch=1288834974657')",
    )?;
    let log = IdLog::new();
    let draw = |server: &PgServer, expect_spare: bool| -> Result<()> {
        let mut run = Vec::new();
        copy_ids(&mut server.client("postgres")?, SNOWFLAKE, &mut run)?;
        let spare = run.iter().filter(|&id| id & SPARE_BIT != 0).count();
        assert_eq!(spare, if expect_spare { run.len() } else { 0 });
        log.record(run);
        Ok(())
    };
    draw(&server, false)?;
    // Back, back again, forward a little, home, and the same points once more.
    for offset_s in [-HOUR_S, -2 * HOUR_S, -HOUR_S, 0, -HOUR_S, -2 * HOUR_S, 0] {
        server.clock()?.step_to(offset_s)?;
        for _ in 0..5 {
            draw(&server, offset_s < 0)?;
        }
    }
    // Killed while it issued from either word. After a start the first reading is the highest there was.
    for offset_s in [0, -HOUR_S, -2 * HOUR_S, -HOUR_S, 0] {
        server.clock()?.step_to(offset_s)?;
        server.kill9()?;
        server.start()?;
        draw(&server, false)?;
        server.clock()?.step_to(offset_s - 60)?;
        draw(&server, true)?;
        draw(&server, true)?;
    }
    println!("spare_worker: {} ids, all distinct", log.check()?.count);
    Ok(())
}

#[test]
fn paused_server_goes_on_whatever_the_clock_did() -> Result<()> {
    let server = server(&[])?;
    let logs = Logs::default();
    let loads = logs.load(&server);
    for offset_s in [0, HOUR_S, -HOUR_S, DAY_S, 0] {
        wait_for(&loads, 1_000)?;
        server.pause()?;
        server.clock()?.step_to(offset_s)?;
        // Longer than the durable window: what is being done when it wakes up is out of date.
        std::thread::sleep(Duration::from_millis(400));
        server.resume()?;
    }
    wait_for(&loads, 1_000)?;
    stop(loads)?;
    logs.check("paused server")
}

/// One process is stopped wherever it is, also inside a refill, and goes on when the others have left it behind.
#[test]
fn paused_backends_go_on_behind_the_others() -> Result<()> {
    const PAUSES: usize = 12;
    let server = server(&[])?;
    let logs = Logs::default();
    let loads = logs.load(&server);
    let mut client = server.client("postgres")?;
    for _ in 0..PAUSES {
        wait_for(&loads, 600)?;
        let victim = "SELECT pid::text FROM pg_stat_activity WHERE query LIKE 'COPY%' ORDER BY random() LIMIT 1";
        let pid = Pid::from_raw(query_text(&mut client, victim)?.parse()?);
        kill(pid, Signal::SIGSTOP)?;
        std::thread::sleep(Duration::from_millis(300));
        kill(pid, Signal::SIGCONT)?;
    }
    wait_for(&loads, 600)?;
    stop(loads)?;
    logs.check("paused backends")
}

/// Two digits of year do not say 1999. Ids begin there all the same, and do not follow the clock when it is set right.
#[test]
fn readable_ids_of_1999_come_back_as_the_hint_says() -> Result<()> {
    const IN_1999_S: i64 = 930_000_000;
    const READABLE_ID: &str = "SELECT readable_id('AB')";
    let server = PgServer::builder().fake_clock().start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_readable_bucket(7, unused => true)",
    )?;
    let real_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut advice = |offset_s: i64| -> Result<String> {
        server.clock()?.step_to(offset_s)?;
        let refused = client.batch_execute(READABLE_ID);
        let year = "is not in the years 2000 to 2099";
        Ok(expect_sql_error(refused, "22003", year).hint)
    };
    let behind = advice(IN_1999_S - i64::try_from(real_s)?)?;
    assert!(behind.contains("clock right"), "{behind}");
    let mended = "SELECT keywright.set_readable_bucket(7, above => now())";
    let right = advice(0)?;
    assert!(right.contains(mended), "{right}");
    client.batch_execute(mended)?;
    let age_s = format!(
        "SELECT extract(epoch FROM now() - d.issued_at)::bigint FROM ({READABLE_ID} AS id) r, readable_decode(r.id) d"
    );
    let age_s = query_i64(&mut client, &age_s)?;
    assert!(age_s.abs() < 60, "{age_s}");
    Ok(())
}

/// As on a machine without a battery until it has heard the time. Whatever began by such a clock would begin at the layout's first tick, as all others do.
#[test]
fn no_snowflake_id_begins_by_a_clock_before_the_epoch() -> Result<()> {
    const IN_2005_S: i64 = 1_104_537_600;
    const ID: &str = "SELECT snowflake_id()";
    let mut server = PgServer::builder().fake_clock().start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1, unused => true)",
    )?;
    let refused = |client: &mut Client| {
        let ids_begin = "the clock reads 2005-01-01, and ids begin at 2010-11-04T01:42:54.657Z";
        let error = expect_sql_error(query_i64(client, ID), "55000", ids_begin);
        assert!(error.hint.contains("clock right"), "{error:?}");
    };
    let real_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let to_2005_s = IN_2005_S - i64::try_from(real_s)?;
    server.clock()?.step_to(to_2005_s)?;
    refused(&mut client);
    // It is followed at once when it is set right.
    server.clock()?.step_to(0)?;
    let first = query_i64(&mut client, ID)?;
    assert_near(ahead_s(&mut client, first)?, 0);
    // Set back while ids are issued: they go on above what is recorded, as ever.
    server.clock()?.step_to(to_2005_s)?;
    let second = query_i64(&mut client, ID)?;
    assert!(second > first);
    server.kill9()?;
    server.start()?;
    let mut client = server.client("postgres")?;
    refused(&mut client);
    server.clock()?.step_to(0)?;
    let third = query_i64(&mut client, ID)?;
    assert!(third > second);
    assert_near(ahead_s(&mut client, third)?, 0);
    let ahead = client.batch_execute("SELECT keywright.set_layout('leaf,epoch=2199-01-01')");
    let error = expect_sql_error(ahead, "55000", "before the layout's epoch");
    assert!(error.hint.contains("epoch in the past"), "{error:?}");
    Ok(())
}

/// A window that reaches beyond the maximum lead: what is left of it is used.
#[test]
fn a_window_longer_than_the_lead_is_not_extended_with_every_id() -> Result<()> {
    let server = PgServer::builder()
        .setting("keywright.bound_window_ms", "60000")
        .start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1, unused => true)",
    )?;
    for _ in 0..500 {
        query_i64(&mut client, "SELECT snowflake_id()")?;
    }
    let refills = "SELECT refills FROM keywright.stats WHERE kind = 'snowflake'";
    assert!(query_i64(&mut client, refills)? < 20);
    Ok(())
}
