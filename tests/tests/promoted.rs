//! Tags with an end, after a promotion long after a burst; what the owner of a promoted server can say; what health tells.

use std::sync::Arc;

use keywright_testkit::{
    IdLog, PgServer, Replication, Result, SqlError, Stop, WAIT_MAX, copy_ids, expect_sql_error,
    query_i64, query_text, wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use postgres::Client;

const IDLE_DAYS: i64 = 20;
const DAY_S: i64 = 86_400;
/// One beyond the last id of the tag.
const END: i64 = 100_000_000;
const BURST: &str = "SELECT next_biz_ids('orders', 10000) FROM generate_series(1, 60)";
const ONE: &str = "SELECT next_biz_id('orders')";

/// A primary whose tag issued 600,000 ids in a burst, with a standby that has all of it; then idle days.
struct Idle {
    primary: PgServer,
    standby: PgServer,
    log: Arc<IdLog>,
}

impl Idle {
    fn begin(replication: Replication) -> Result<Idle> {
        let primary = PgServer::builder()
            .fake_clock()
            // A step of the clock is no silence.
            .setting("wal_sender_timeout", "0")
            .setting("wal_receiver_timeout", "0")
            .start()?;
        let mut client = primary.client("postgres")?;
        client.batch_execute(&format!(
            "CREATE EXTENSION keywright;
             SELECT keywright.set_worker_id(1);
             SELECT keywright.create_tag(tag, max => {}) FROM (VALUES ('orders'), ('late')) t (tag);
             CREATE TABLE note (body text)",
            END - 1
        ))?;
        let standby = primary.standby("standby", replication)?;
        let idle = Idle {
            primary,
            standby,
            log: Arc::default(),
        };
        idle.take(&mut client, BURST)?;
        query_i64(&mut client, "SELECT next_biz_id('late')")?;
        query_i64(&mut client, "SELECT snowflake_id()")?;
        idle.primary.wait_replayed(&idle.standby)?;
        for server in [&idle.primary, &idle.standby] {
            server.clock()?.step_to(IDLE_DAYS * DAY_S)?;
        }
        Ok(idle)
    }

    fn take(&self, client: &mut Client, query: &str) -> Result<()> {
        let mut ids = Vec::new();
        let outcome = copy_ids(client, query, &mut ids);
        self.log.record(ids);
        outcome
    }

    /// Something else is written, as on any server that lives.
    fn live_on(&self) -> Result<()> {
        let mut client = self.primary.client("postgres")?;
        client.batch_execute("INSERT INTO note VALUES ('alive')")?;
        self.primary.wait_replayed(&self.standby)
    }

    fn fail_over(&mut self) -> Result<Client> {
        self.primary.kill9()?;
        self.standby.promote()?;
        self.standby.client("postgres")
    }
}

fn health(client: &mut Client) -> Result<(bool, String, String, Option<String>)> {
    let row = client.query_one(
        "SELECT ok, severity, detail, hint FROM keywright.health WHERE name = 'promotion'",
        &[],
    )?;
    Ok((
        row.try_get(0)?,
        row.try_get(1)?,
        row.try_get(2)?,
        row.try_get(3)?,
    ))
}

fn stranded(client: &mut Client, statement: &str) -> SqlError {
    let error = expect_sql_error(
        query_i64(client, statement),
        "2200H",
        "by what it leaves out after a promotion",
    );
    assert!(
        error.hint.contains("keywright.promoted(lost =>"),
        "{error:?}"
    );
    error
}

fn goes_on_after_idle_days(replication: Replication) -> Result<()> {
    let mut idle = Idle::begin(replication)?;
    idle.live_on()?;
    let mut client = idle.fail_over()?;
    let (ok, severity, detail, _) = health(&mut client)?;
    assert!(
        !ok && severity == "warning" && detail.contains("nothing was issued"),
        "{detail}"
    );
    idle.take(&mut client, "SELECT next_biz_ids('orders', 1000)")?;
    let first = query_i64(&mut client, ONE)?;
    println!("goes on at {first}");
    assert!(first > 600_000 && first < END, "{first}");
    let (ok, severity, detail, hint) = health(&mut client)?;
    println!("{severity}: {detail}");
    assert!(
        !ok && severity == "warning" && detail.contains("by estimate"),
        "{detail}"
    );
    assert!(hint.is_some_and(|hint| hint.contains("acknowledge_promotion")));
    // What only shared memory knew was kept: another tag, first used after a restart, goes by it.
    drop(client);
    idle.standby.restart(Stop::Fast)?;
    let mut client = idle.standby.client("postgres")?;
    let (_, again, kept, _) = health(&mut client)?;
    assert_eq!((again.as_str(), &kept), ("warning", &detail));
    let late = query_i64(&mut client, "SELECT next_biz_id('late')")?;
    assert!(late > 1 && late < END, "{late}");
    idle.take(&mut client, "SELECT next_biz_ids('orders', 1000)")?;
    client.batch_execute("SELECT keywright.acknowledge_promotion()")?;
    let (ok, severity, detail, hint) = health(&mut client)?;
    assert!(ok && severity == "ok" && hint.is_none(), "{detail}");
    idle.log.check()?;
    Ok(())
}

#[test]
fn tag_goes_on_after_idle_days_behind_an_asynchronous_standby() -> Result<()> {
    goes_on_after_idle_days(Replication::Asynchronous)
}

#[test]
fn tag_goes_on_after_idle_days_behind_a_synchronous_standby() -> Result<()> {
    goes_on_after_idle_days(Replication::Synchronous)
}

#[test]
fn owner_says_what_was_lost_when_a_restart_forgot_the_evidence() -> Result<()> {
    let mut idle = Idle::begin(Replication::Asynchronous)?;
    idle.live_on()?;
    drop(idle.fail_over()?);
    // A commit of the promoted server is no evidence, and after a crash shared memory knows of no other.
    idle.standby
        .client("postgres")?
        .batch_execute("INSERT INTO note VALUES ('promoted')")?;
    idle.standby.kill9()?;
    idle.standby.start()?;
    let mut client = idle.standby.client("postgres")?;
    stranded(&mut client, ONE);
    stranded(
        &mut client,
        "SELECT keywright.advance_tag('orders', 1000000)",
    );
    for (said, sqlstate, message) in [
        ("NULL", "22004", "must not be null"),
        ("interval '-1 s'", "22003", "must not be negative"),
        ("interval '100 years'", "22003", "eight years"),
    ] {
        let statement = format!("SELECT keywright.promoted(lost => {said})");
        expect_sql_error(client.batch_execute(&statement), sqlstate, message);
    }
    stranded(&mut client, ONE);
    client.batch_execute("SELECT keywright.promoted(lost => interval '3 s')")?;
    let (ok, severity, detail, _) = health(&mut client)?;
    assert!(
        ok && severity == "ok"
            && detail.contains("by the owner's word: the original went on for 3000 ms"),
        "{detail}"
    );
    // Durable at once.
    drop(client);
    idle.standby.kill9()?;
    idle.standby.start()?;
    let mut client = idle.standby.client("postgres")?;
    idle.take(&mut client, "SELECT next_biz_ids('orders', 1000)")?;
    let used = query_i64(&mut client, ONE)?;
    // What has issued since stays where it is, whatever is said.
    client.batch_execute("SELECT keywright.promoted(lost => interval '0')")?;
    assert!(query_i64(&mut client, ONE)? > used);
    idle.log.check()?;
    Ok(())
}

#[test]
fn owner_of_a_restored_dump_says_what_was_lost() -> Result<()> {
    let idle = Idle::begin(Replication::Asynchronous)?;
    let copy = PgServer::builder().fake_clock().start()?;
    copy.clock()?.step_to(2 * IDLE_DAYS * DAY_S)?;
    let script = idle.primary.dump("postgres", &[])?;
    let mut client = copy.client("postgres")?;
    copy.restore("postgres", &script)?;
    stranded(&mut client, ONE);
    client.batch_execute("SELECT keywright.promoted(lost => interval '3 s')")?;
    idle.take(&mut client, "SELECT next_biz_ids('orders', 1000)")?;
    idle.log.check()?;
    Ok(())
}

#[test]
fn snowflake_starts_above_what_the_owner_says_was_lost() -> Result<()> {
    let mut idle = Idle::begin(Replication::Asynchronous)?;
    let mut client = idle.fail_over()?;
    client.batch_execute("SELECT keywright.promoted(lost => interval '1 hour')")?;
    let ahead = query_text(
        &mut client,
        "SELECT (snowflake_timestamp(snowflake_id()) - clock_timestamp() > interval '59 minutes')::text",
    )?;
    assert_eq!(ahead, "true");
    Ok(())
}

#[test]
fn a_stopped_link_loses_no_more_than_is_left_out() -> Result<()> {
    let mut primary = PgServer::builder().start()?;
    let mut client = primary.client("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION keywright;
         SELECT keywright.create_tag('orders', step_max => 1000);
         CREATE TABLE bulk (body bytea);
         ALTER TABLE bulk ALTER body SET STORAGE EXTERNAL",
    )?;
    let standby = primary.standby("standby", Replication::Asynchronous)?;
    let log = IdLog::default();
    let take = |client: &mut Client, query: &str| -> Result<()> {
        let mut ids = Vec::new();
        copy_ids(client, query, &mut ids)?;
        log.record(ids);
        Ok(())
    };
    let pace = "SELECT CASE WHEN pg_sleep(0.001) IS NULL THEN 0 ELSE next_biz_id('orders') END \
                FROM generate_series(1, 1500)";
    take(&mut client, pace)?;
    primary.wait_replayed(&standby)?;
    let mut reader = standby.client("postgres")?;
    let receiver = query_i64(&mut reader, "SELECT pid::bigint FROM pg_stat_wal_receiver")?;
    let receiver = Pid::from_raw(i32::try_from(receiver)?);
    kill(receiver, Signal::SIGSTOP)?;
    // More than lies in the socket.
    client.batch_execute(
        "INSERT INTO bulk SELECT decode(string_agg(md5(i::text || j::text), ''), 'hex')
         FROM generate_series(1, 400) i, generate_series(1, 4000) j GROUP BY i",
    )?;
    for _ in 0..3 {
        take(&mut client, pace)?;
    }
    let issued = query_i64(&mut client, ONE)?;
    primary.kill9()?;
    kill(receiver, Signal::SIGCONT)?;
    // Whoever may log in can take advisory locks, of any numbers. They are not those by which a promotion is noted.
    let mut stranger = standby.client("postgres")?;
    stranger.batch_execute("SELECT pg_advisory_lock(x'6b777267'::integer, 2)")?;
    standby.promote()?;
    let reserved = "SELECT reserved_to FROM keywright.tags WHERE tag = 'orders'";
    let known = query_i64(&mut reader, reserved)?;
    assert!(
        known + 1000 < issued,
        "it knew of {known}, and {issued} were issued"
    );
    take(&mut reader, "SELECT next_biz_ids('orders', 1000)")?;
    let (_, _, detail, _) = health(&mut reader)?;
    println!("knew {known}, issued {issued}; {detail}");
    log.check()?;
    Ok(())
}

/// The server writes the name of a restore point into the history of the new timeline as it is, whatever encodings other databases have.
#[test]
fn a_restore_point_has_any_name() -> Result<()> {
    const NAME: &str = "avant_dépl";
    let primary = PgServer::builder().start()?;
    let mut admin = primary.client("postgres")?;
    let take = |client: &mut Client, log: &IdLog| -> Result<()> {
        let mut ids = Vec::new();
        copy_ids(client, "SELECT next_biz_ids('orders', 1000)", &mut ids)?;
        log.record(ids);
        Ok(())
    };
    let encodings = ["utf8", "latin1", "euc_jp", "sql_ascii"];
    let databases = encodings.map(|encoding| (format!("in_{encoding}"), IdLog::default()));
    for (encoding, (name, log)) in encodings.iter().zip(&databases) {
        admin.batch_execute(&format!(
            "CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        ))?;
        let mut client = primary.client(name)?;
        client
            .batch_execute("CREATE EXTENSION keywright; SELECT keywright.create_tag('orders')")?;
        take(&mut client, log)?;
    }
    let mut recovered = primary.standby("recovered", Replication::Asynchronous)?;
    recovered.stop(Stop::Fast)?;
    recovered.set("recovery_target_name", NAME);
    recovered.set("recovery_target_action", "promote");
    recovered.start()?;
    admin.batch_execute(&format!("SELECT pg_create_restore_point('{NAME}')"))?;
    wait_until("the end of the recovery", WAIT_MAX, || {
        let mut client = recovered.client("postgres")?;
        Ok(query_text(&mut client, "SELECT pg_is_in_recovery()::text")? == "false")
    })?;
    for (name, log) in &databases {
        let mut client = recovered.client(name)?;
        take(&mut client, log)?;
        client.batch_execute("SELECT keywright.promoted(lost => interval '0')")?;
        let (ok, severity, detail, _) = health(&mut client)?;
        assert!(ok && severity == "ok", "{name}: {detail}");
        log.check()?;
    }
    Ok(())
}
