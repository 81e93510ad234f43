//! Standbys: promoted after the primary was lost, with what it had issued and with what it had not told them; stopped
//! while a primary waits for them; asked for ids while they are standbys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use keywright_testkit::{
    IdLog, Load, Pending, PgServer, Replication, Result, Stop, WAIT_MAX, copy_ids,
    expect_sql_error, query_i64, query_text, wait_until,
};
use postgres::{Client, NoTls};

const TAG_IDS: &str = "SELECT next_biz_ids('orders', 20)";
const SNOWFLAKES: &str = "SELECT snowflake_ids(20)";
/// What a busy machine may add to a wait.
const IN_TIME: Duration = Duration::from_secs(30);

/// Ids of both kinds.
#[derive(Default)]
struct Logs {
    tag: Arc<IdLog>,
    snowflake: Arc<IdLog>,
}

impl Logs {
    fn take(&self, client: &mut Client) -> Result<()> {
        for (query, log) in [(TAG_IDS, &self.tag), (SNOWFLAKES, &self.snowflake)] {
            let mut run = Vec::new();
            copy_ids(client, query, &mut run)?;
            log.record(run);
        }
        Ok(())
    }

    /// Takes ids at an even pace: 20 of each kind every 10 ms.
    fn take_for(&self, client: &mut Client, long: Duration) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < long {
            self.take(client)?;
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let (tag, snowflake) = (self.tag.check()?, self.snowflake.check()?);
        println!("{tag:?} {snowflake:?}");
        Ok(())
    }
}

fn primary() -> Result<PgServer> {
    let primary = PgServer::builder().start()?;
    primary.client("postgres")?.batch_execute(
        "CREATE EXTENSION keywright;
         SET keywright.lead_ms_max = 100; -- where a new worker id begins
         SELECT keywright.set_worker_id(1);
         SELECT keywright.create_tag('orders', step => 100);
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT next_biz_id('orders'),
                              event bigint UNIQUE NOT NULL DEFAULT snowflake_id())",
    )?;
    Ok(primary)
}

/// Inserts again and again from before the promotion on, until some have gone in; records what they were given.
fn insert_across_promotion(standby: &PgServer, logs: &Logs) -> Result<()> {
    let mut client = standby.client("postgres")?;
    let insert = "INSERT INTO orders DEFAULT VALUES RETURNING id, event";
    expect_sql_error(client.query_one(insert, &[]), "25006", "");
    let inserter = std::thread::spawn(move || -> Result<[Vec<i64>; 2]> {
        let mut ids = [Vec::new(), Vec::new()];
        wait_until("inserts after promotion", WAIT_MAX, || {
            match client.query_one(insert, &[]) {
                Ok(row) => {
                    let [tag, snowflake] = &mut ids;
                    tag.push(row.try_get(0)?);
                    snowflake.push(row.try_get(1)?);
                }
                Err(error) => drop(expect_sql_error::<()>(Err(error), "25006", "")),
            }
            Ok(ids[0].len() >= 100)
        })?;
        Ok(ids)
    });
    standby.promote()?;
    let ids = inserter.join();
    let [tag, snowflake] = ids.map_err(|_| anyhow::anyhow!("the inserter panicked"))??;
    logs.tag.record(tag);
    logs.snowflake.record(snowflake);
    logs.take(&mut standby.client("postgres")?)
}

/// The bound that arrived need not be the last: whoever comes after the extension leaves out as much as it would have.
#[test]
fn extension_dropped_right_after_a_promotion_leaves_out_the_skew() -> Result<()> {
    let mut primary = primary()?;
    let standby = primary.standby("standby", Replication::Asynchronous)?;
    let mut client = primary.client("postgres")?;
    for query in ["SELECT snowflake_id()", "SELECT count(readable_id('a'))"] {
        query_i64(&mut client, query)?;
    }
    primary.wait_replayed(&standby)?;
    primary.stop(Stop::Immediate)?;
    standby.promote()?;
    let mut client = standby.client("postgres")?;
    client.batch_execute("DROP EXTENSION keywright CASCADE; CREATE EXTENSION keywright")?;
    let ahead = [
        "SELECT extract(epoch FROM snowflake_timestamp(snowflake_id()) - clock_timestamp())::bigint",
        "SELECT extract(epoch FROM d.issued_at - clock_timestamp())::bigint FROM readable_decode(readable_id('a')) d",
    ];
    for query in ahead {
        let ahead_s = query_i64(&mut client, query)?;
        assert!((12..=21).contains(&ahead_s), "{query}: {ahead_s} s ahead");
    }
    Ok(())
}

#[test]
fn asynchronous_standby_leaves_out_what_it_was_not_told() -> Result<()> {
    let mut primary = primary()?;
    let mut standby = primary.standby("standby", Replication::Asynchronous)?;
    let logs = Logs::default();
    let mut client = primary.client("postgres")?;
    logs.take_for(&mut client, Duration::from_secs(2))?;
    primary.wait_replayed(&standby)?;
    let refills = "SELECT refills FROM keywright.stats WHERE tag = 'orders'";
    let before = query_i64(&mut client, refills)?;
    let output = logs.tag.check()?.largest;
    // Stopped, not paused: nothing may lie in its socket.
    standby.stop(Stop::Fast)?;
    logs.take_for(&mut client, Duration::from_secs(3))?;
    let mut more = logs.tag.count();
    while query_i64(&mut client, refills)? < before + 2 && more < 200_000 {
        logs.take(&mut client)?;
        more = logs.tag.count();
    }
    assert!(query_i64(&mut client, refills)? >= before + 2);
    let lost = logs.tag.check()?.largest;
    primary.kill9()?;
    standby.start()?;
    let mut reader = standby.client("postgres")?;
    let reserved = "SELECT reserved_to FROM keywright.tags WHERE tag = 'orders'";
    let known = query_i64(&mut reader, reserved)?;
    assert!(
        known < lost,
        "the standby knows of {known}, ids went to {lost}"
    );
    insert_across_promotion(&standby, &logs)?;
    println!("received {output}, standby knew {known}, issued {lost}");
    logs.check()?;
    for said in [
        "tag \"orders\" was last reserved by another server or timeline; leaving out",
        "the snowflake bound was written by another server or timeline; leaving out",
    ] {
        assert!(standby.log_contains(said)?, "{said}");
    }
    Ok(())
}

#[test]
fn synchronous_standby_never_repeats_what_a_client_received() -> Result<()> {
    let mut primary = primary()?;
    let standby = primary.standby("standby", Replication::Synchronous)?;
    let logs = Logs::default();
    let config = primary.config("postgres", "postgres");
    let loads = [
        Load::start(&config, 6, "SELECT next_biz_ids('orders', 500)", &logs.tag),
        Load::start(&config, 4, "SELECT snowflake_ids(2000)", &logs.snowflake),
    ];
    for load in &loads {
        load.wait_for(300_000)?;
    }
    primary.kill9()?;
    for load in loads {
        let refusals = load.stop()?;
        assert!(
            refusals.keys().all(|sqlstate| sqlstate.starts_with("57P0")),
            "{refusals:?}"
        );
    }
    insert_across_promotion(&standby, &logs)?;
    logs.check()
}

/// A primary whose synchronous standby is stopped, and a session that has taken all ids that were left.
struct Waiting {
    primary: PgServer,
    standby: PgServer,
    logs: Logs,
}

impl Waiting {
    fn begin() -> Result<Waiting> {
        let primary = primary()?;
        let mut client = primary.client("postgres")?;
        client.batch_execute("SELECT keywright.alter_tag('orders', step_max => 100)")?;
        let standby = primary.standby("standby", Replication::Synchronous)?;
        let logs = Logs::default();
        // The first reservation is short; the second leaves ids.
        logs.take(&mut client)?;
        logs.take(&mut client)?;
        Ok(Waiting {
            primary,
            standby,
            logs,
        })
    }

    /// A session whose own commits do not wait, so that what waits is the refill.
    fn client(&self, options: &str) -> Result<Client> {
        let mut config = self.primary.config("postgres", "postgres");
        let options = format!("-c synchronous_commit=off {options}");
        Ok(config.options(&options).connect(NoTls)?)
    }

    /// Takes the ids of the tag that are left: they come although no refill can be made.
    fn drain(&self, client: &mut Client) -> Result<()> {
        let left = "SELECT remaining FROM keywright.stats WHERE tag = 'orders'";
        let mut run = Vec::new();
        while query_i64(client, left)? > 0 {
            run.push(query_i64(client, "SELECT next_biz_id('orders')")?);
        }
        assert!(!run.is_empty());
        self.logs.tag.record(run);
        Ok(())
    }
}

const ONE: &str = "SELECT next_biz_id('orders')";

#[test]
fn refill_waits_for_a_stopped_synchronous_standby() -> Result<()> {
    let mut waiting = Waiting::begin()?;
    waiting.standby.pause()?;
    waiting.drain(&mut waiting.client("-c keywright.refill_wait_ms_max=300")?)?;
    for level in ["off", "local", "remote_write", "on", "remote_apply"] {
        let client = waiting.client(&format!(
            "-c synchronous_commit={level} -c keywright.refill_wait_ms_max=500"
        ))?;
        let answer = Pending::start(client, ONE)?.finish()?;
        let error = expect_sql_error(answer.outcome, "55P03", "tag \"orders\"");
        assert!(error.detail.contains("synchronous standby"), "{error:?}");
        assert!(
            answer.took >= Duration::from_millis(500),
            "{:?}",
            answer.took
        );
        assert!(answer.took < IN_TIME, "{:?}", answer.took);
    }
    let mut observer = waiting.primary.client("postgres")?;
    let pending = Pending::start(
        waiting.client("-c keywright.refill_wait_ms_max=60000")?,
        ONE,
    )?;
    pending.wait_until_waiting(&mut observer)?;
    observer.execute("SELECT pg_cancel_backend($1)", &[&pending.pid()])?;
    expect_sql_error(pending.finish()?.outcome, "57014", "user request");
    let pending = Pending::start(waiting.client("-c statement_timeout=500")?, ONE)?;
    let answer = pending.finish()?;
    expect_sql_error(answer.outcome, "57014", "statement timeout");
    assert!(answer.took < IN_TIME, "{:?}", answer.took);
    // One that still waits when the standby comes back gets its id.
    let pending = Pending::start(
        waiting.client("-c keywright.refill_wait_ms_max=60000")?,
        ONE,
    )?;
    pending.wait_until_waiting(&mut observer)?;
    waiting.standby.resume()?;
    waiting.logs.tag.record(vec![pending.finish()?.outcome?]);
    waiting.logs.take(&mut observer)?;
    waiting.primary.kill9()?;
    insert_across_promotion(&waiting.standby, &waiting.logs)?;
    waiting.logs.check()
}

/// A tag that is made and used in one transaction goes on from memory when that has committed, and a standby that lacks it would begin anew.
#[test]
fn what_is_managed_is_on_the_standby_whatever_the_session_says_of_commits() -> Result<()> {
    let waiting = Waiting::begin()?;
    waiting.standby.pause()?;
    let mut observer = waiting.primary.client("postgres")?;
    let pending = Pending::start(
        waiting.client("")?,
        "SELECT count(*) FROM keywright.create_tag('late')",
    )?;
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'SyncRep'";
    wait_until("a commit that waits for the standby", WAIT_MAX, || {
        let waits: i64 = observer.query_one(waits, &[&pending.pid()])?.get(0);
        Ok(waits > 0)
    })?;
    // Who wrote nothing waits for what it has read.
    let move_of = "SELECT number::bigint FROM keywright.tag_move('orders')";
    let mut reader = waiting.client("-c keywright.refill_wait_ms_max=300")?;
    let error = expect_sql_error(query_i64(&mut reader, move_of), "55P03", "tag \"orders\"");
    assert!(error.detail.contains("synchronous standby"), "{error:?}");
    waiting.standby.resume()?;
    assert_eq!(pending.finish()?.outcome?, 1);
    assert_eq!(query_i64(&mut observer, move_of)?, 0);
    Ok(())
}

#[test]
fn unconfirmed_reservations_are_not_issued_before_a_failover() -> Result<()> {
    let mut waiting = Waiting::begin()?;
    waiting.standby.stop(Stop::Fast)?;
    let mut client = waiting.client("-c keywright.refill_wait_ms_max=100")?;
    waiting.drain(&mut client)?;
    for _ in 0..5 {
        expect_sql_error(query_i64(&mut client, ONE), "55P03", "tag \"orders\"");
    }
    let snowflake = "SELECT snowflake_id()";
    let mut run = Vec::new();
    wait_until("the end of the time bound", WAIT_MAX, || {
        match query_i64(&mut client, snowflake) {
            Ok(id) => run.push(id),
            Err(error) => {
                expect_sql_error::<()>(Err(error), "55P03", "the snowflake bound");
                return Ok(true);
            }
        }
        Ok(false)
    })?;
    let reached = "SELECT (bound <= clock_timestamp())::int::bigint FROM keywright.stats WHERE kind = 'snowflake'";
    assert_eq!(
        query_i64(&mut client, reached)?,
        1,
        "refused while ids were left"
    );
    println!("{} snowflake ids while the standby was away", run.len());
    waiting.logs.snowflake.record(run);
    waiting.primary.kill9()?;
    waiting.standby.start()?;
    insert_across_promotion(&waiting.standby, &waiting.logs)?;
    waiting.logs.check()
}

#[test]
fn standby_decodes_and_reports_but_issues_nothing() -> Result<()> {
    let primary = primary()?;
    let standby = primary.standby("standby", Replication::Asynchronous)?;
    let mut client = primary.client("postgres")?;
    let snowflake = query_i64(&mut client, "SELECT snowflake_id()")?;
    let tag = query_i64(&mut client, ONE)?;
    let readable = query_text(&mut client, "SELECT readable_id('ORD')")?;
    primary.wait_replayed(&standby)?;
    let mut reader = standby.client("postgres")?;
    for generator in [
        "snowflake_id()",
        "snowflake_ids(2)",
        "next_biz_id('orders')",
        "next_biz_ids('orders', 2)",
        "readable_id('ORD')",
        "keywright.advance_tag('orders', 1000)",
    ] {
        let refused = reader.simple_query(&format!("SELECT {generator}"));
        expect_sql_error(refused, "25006", "read-only transaction");
    }
    let decoded = format!(
        "SELECT worker_id::bigint FROM snowflake_decode({snowflake})
         WHERE issued_at = snowflake_timestamp({snowflake}, 'twitter') AND {snowflake} >= snowflake_floor(issued_at)"
    );
    assert_eq!(query_i64(&mut reader, &decoded)?, 1);
    let biz = query_text(
        &mut reader,
        &format!("SELECT biz FROM readable_decode('{readable}')"),
    )?;
    assert_eq!(biz, "ORD");
    let reserved = query_i64(&mut reader, "SELECT reserved_to FROM keywright.tags")?;
    assert!(reserved >= tag);
    assert_eq!(
        query_i64(&mut reader, "SELECT count(*) FROM keywright.stats")?,
        3
    );
    assert_eq!(
        query_text(
            &mut reader,
            "SELECT ok::text FROM keywright.health WHERE name = 'worker id'"
        )?,
        "true"
    );
    Ok(())
}

#[test]
fn health_tells_what_the_promise_rests_on() -> Result<()> {
    let primary = PgServer::builder().fsync(true).start()?;
    let mut client = primary.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright; SELECT keywright.set_worker_id(1)")?;
    let mut health = |name: &str| -> Result<(String, String, Option<String>)> {
        let row = client.query_one(
            "SELECT severity, detail, hint FROM keywright.health WHERE name = $1 AND ok",
            &[&name],
        )?;
        Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
    };
    let fine = |detail: &str| ("ok".to_owned(), detail.to_owned(), None);
    assert_eq!(health("fsync")?, fine("fsync is on"));
    let promotion = "what is kept here was written by this server, on its present timeline";
    assert_eq!(health("promotion")?, fine(promotion));
    assert_eq!(health("replication")?, fine("no standby is connected"));
    let standby = primary.standby("standby", Replication::Asynchronous)?;
    let (severity, detail, hint) = health("replication")?;
    assert!(
        severity == "info" && detail == "1 standby(s) replicate asynchronously",
        "{detail}"
    );
    assert!(hint.is_some_and(|hint| hint.contains("synchronous_standby_names")));
    drop(standby);
    let _standby = primary.standby("other", Replication::Synchronous)?;
    let (severity, detail, _) = health("replication")?;
    assert!(severity == "ok" && detail.contains("'other'"), "{detail}");
    let risky = PgServer::builder().fsync(false).start()?;
    let mut client = risky.client("postgres")?;
    client.batch_execute("CREATE EXTENSION keywright")?;
    let found = "SELECT detail || ': ' || hint FROM keywright.health WHERE NOT ok AND severity = 'error' AND name = 'fsync'";
    let said = query_text(&mut client, found)?;
    assert!(
        said.contains("fsync is off") && said.contains("power loss"),
        "{said}"
    );
    Ok(())
}
