//! What only a PostgreSQL server does: cancelled waits for standbys, promotions, copies of databases, settings of roles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use keywright_store::{KeySpec, Keys, RawSnowflakeSettings, RawStoreSettings};
use keywright_testkit::{PgServer, Replication, Result, Stop, WAIT_MAX, wait_until};

use crate::common::{
    Engine, IssuedLog, Schema, in_postgres, open, open_with, raw_postgres, runtime, segment,
    small_steps, tag, take_by_each, take_many, until,
};
use crate::forwarder::Forwarder;
use crate::put_back::{postgres_up_s, until_known};

/// A server of a test's own with an empty database `keywright`.
pub fn own_server() -> Result<PgServer> {
    let server = PgServer::builder().preload(false).start()?;
    in_postgres(&server, "postgres", "CREATE DATABASE keywright")?;
    until_known(|| postgres_up_s(&server))?;
    Ok(server)
}

/// An issuer on an empty store, and its tag.
pub async fn opened(settings: &RawStoreSettings) -> Result<Keys> {
    let keys = open(settings)?;
    keys.init().await?;
    keys.create_tag(&tag("orders"), &small_steps(20)).await?;
    Ok(keys)
}

/// Killed at random moments while three issuers refill all the time.
#[test]
fn kill_9_in_the_middle_of_refills_repeats_nothing() -> Result<()> {
    let mut server = own_server()?;
    let settings = raw_postgres(&server, "keywright");
    let (runtime, log) = (runtime()?, IssuedLog::default());
    let stop = Arc::new(AtomicBool::new(false));
    let first = runtime.block_on(opened(&settings))?;
    let issuers = [first, open(&settings)?, open(&settings)?];
    let mut tasks = Vec::new();
    for (n, keys) in issuers.iter().enumerate() {
        let sources = [
            keys.source(&segment("orders"))?,
            keys.source(&KeySpec::Snowflake)?,
        ];
        let (log, stop) = (log.clone(), Arc::clone(&stop));
        tasks.push(runtime.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                for source in &sources {
                    if let Ok(taken) = source.take(3, true).await {
                        log.add_all(&format!("issuer {n}"), &taken);
                    }
                }
            }
        }));
    }
    for round in 0..5 {
        let before = log.len();
        runtime.block_on(until("keys to be issued", || {
            log.len() > before + 500 + round * 37
        }));
        server.kill9()?;
        server.start()?;
    }
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        runtime.block_on(task)?;
    }
    Ok(())
}

/// PostgreSQL commits then, and says so in a warning: nobody may use what a promoted standby would not have.
#[test]
fn a_cancelled_wait_for_a_standby_reserves_nothing() -> Result<()> {
    let server = own_server()?;
    let settings = raw_postgres(&server, "keywright");
    let (runtime, log) = (runtime()?, IssuedLog::default());
    let keys = runtime.block_on(opened(&settings))?;
    let standbys = |names: &str| {
        let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
        in_postgres(&server, "postgres", &set)?;
        in_postgres(&server, "postgres", "SELECT pg_reload_conf()")
    };
    let source = keys.source(&segment("orders"))?;
    let stop = Arc::new(AtomicBool::new(false));
    let taking = {
        let (log, stop) = (log.clone(), Arc::clone(&stop));
        runtime.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                if let Ok(taken) = source.take(1, true).await {
                    log.add_all("taking", &taken);
                }
            }
        })
    };
    standbys("nobody")?;
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    wait_until("the warning to be told", WAIT_MAX, || {
        in_postgres(&server, "postgres", cancel)?;
        let told = keys.stats().into_iter().filter_map(|stats| stats.trouble);
        Ok(told.into_iter().any(|told| told.contains("with a warning")))
    })?;
    let hi = "SELECT hi FROM keywright_segment";
    let committed: u64 = in_postgres(&server, "keywright", hi)?[0][0].parse()?;
    let before = log.max();
    standbys("")?;
    in_postgres(&server, "postgres", cancel)?;
    runtime.block_on(until("keys again", || log.max() >= committed + 20));
    stop.store(true, Ordering::Relaxed);
    runtime.block_on(taking)?;
    // One range at least was committed, and left out: the first is a tenth of the step.
    let issued = u64::try_from(log.len())?;
    assert!(
        issued + 2 <= log.max(),
        "{issued} issued up to {}",
        log.max()
    );
    assert!(
        before < committed,
        "{before} was issued, {committed} committed"
    );
    Ok(())
}

/// What the old primary acknowledged last is missing on the standby that is promoted: another timeline, and a gap.
#[test]
fn a_promoted_standby_that_lacks_the_last_commits_repeats_nothing() -> Result<()> {
    let mut primary = own_server()?;
    let runtime = runtime()?;
    let settings = raw_postgres(&primary, "keywright");
    let log = IssuedLog::default();
    let keys = runtime.block_on(opened(&settings))?;
    let take = |keys: &Keys, by: &str, rounds| -> Result<()> {
        for spec in [segment("orders"), KeySpec::Snowflake] {
            let source = keys.source(&spec)?;
            runtime.block_on(take_many(source, log.clone(), by.to_owned(), rounds));
        }
        Ok(())
    };
    take(&keys, "primary", 20)?;
    let mut standby = primary.standby("other", Replication::Asynchronous)?;
    let both = RawStoreSettings {
        url: format!(
            "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/keywright?target_session_attrs=read-write",
            primary.port(),
            standby.port()
        ),
        ..settings
    };
    let follower = open(&both)?;
    take(&follower, "follower", 5)?;
    standby.stop(Stop::Fast)?;
    take(&keys, "primary", 4)?;
    primary.kill9()?;
    standby.start()?;
    standby.promote()?;
    let fresh = open(&raw_postgres(&standby, "keywright"))?;
    take(&fresh, "fresh", 20)?;
    take(&follower, "follower", 50)
}

/// A database that was made from the store's is another store, and both go on.
#[test]
fn a_copy_of_the_database_leaves_a_gap() -> Result<()> {
    let mut server = own_server()?;
    let runtime = runtime()?;
    let settings = raw_postgres(&server, "keywright");
    let taken = |settings: &RawStoreSettings| {
        let keys = open(settings)?;
        let source = keys.source(&segment("orders"))?;
        let taken = runtime.block_on(source.take(1, true))?;
        // What is handed back to the original is no business of the copy.
        runtime.block_on(keys.hand_back());
        Ok::<_, anyhow::Error>(taken.number(0).unwrap_or(0))
    };
    drop(runtime.block_on(opened(&settings))?);
    taken(&settings)?;
    server.restart(Stop::Fast)?;
    in_postgres(
        &server,
        "postgres",
        "CREATE DATABASE copy TEMPLATE keywright",
    )?;
    let before = in_postgres(&server, "copy", "SELECT hi FROM keywright_segment")?;
    let hi: u64 = before[0][0].parse()?;
    assert!(taken(&settings)? < hi, "handed back, and taken again");
    let of_copy = taken(&raw_postgres(&server, "copy"))?;
    assert!(of_copy > hi, "{of_copy} in the copy, which began at {hi}");
    Ok(())
}

/// Settings of a role, of a database and of a pooler do not reach a transaction that reserves.
#[test]
fn settings_of_the_role_do_not_count() -> Result<()> {
    let server = own_server()?;
    let owner = "CREATE ROLE app LOGIN; ALTER DATABASE keywright OWNER TO app";
    in_postgres(&server, "postgres", owner)?;
    for setting in [
        "synchronous_commit = off",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
        "client_min_messages = error",
        "standard_conforming_strings = off",
    ] {
        let set = format!("ALTER ROLE app SET {setting}");
        in_postgres(&server, "postgres", &set)?;
    }
    let settings = raw_postgres(&server, "keywright");
    let settings = RawStoreSettings {
        url: settings.url.replace("postgres@", "app@"),
        ..settings
    };
    let (runtime, log) = (runtime()?, IssuedLog::default());
    let first = runtime.block_on(opened(&settings))?;
    // How each commit was made, by the transaction itself.
    in_postgres(
        &server,
        "keywright",
        "CREATE TABLE seen (setting text); GRANT INSERT ON seen TO app;
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
         CREATE TRIGGER note BEFORE INSERT OR UPDATE ON keywright_segment FOR EACH ROW EXECUTE FUNCTION note()",
    )?;
    let issuers = [first, open(&settings)?, open(&settings)?];
    runtime.block_on(take_by_each(&issuers, &segment("orders"), &log, 50))?;
    let seen = in_postgres(&server, "keywright", "SELECT DISTINCT setting FROM seen")?;
    assert_eq!(seen, [["on"]]);
    Ok(())
}

/// Rows that are not there yet lock nobody out in PostgreSQL: whoever takes a worker id beside another who is about to, waits for him, and sees
/// his layout.
#[test]
fn layouts_that_could_repeat_ids_are_kept_apart_from_the_first_moment() -> Result<()> {
    let schema = Schema::of(Engine::Postgres, "kw_pg_layouts")?;
    let runtime = runtime()?;
    runtime.block_on(opened(&schema.raw()))?;
    let line = runtime.block_on(Forwarder::start(schema.port()))?;
    let with = |settings: &RawStoreSettings, layout: &str, worker_id| {
        let snowflake = RawSnowflakeSettings {
            layout: layout.to_owned(),
            worker_id: Some(worker_id),
            ..RawSnowflakeSettings::default()
        };
        open_with(settings, &snowflake)
    };
    let slow = with(&schema.through(line.port), "twitter", 1)?;
    line.go_silent_at(Some("; COMMIT"));
    let first = slow.source(&KeySpec::Snowflake)?;
    let first = runtime.spawn(async move { first.take(1, true).await });
    runtime.block_on(until("a lease that is written", || {
        line.silent.load(Ordering::Relaxed) > 0
    }));
    let other = "time=41,worker=10,sequence=12,epoch=2020-01-01";
    let quick = with(&schema.raw(), other, 2)?;
    let second = quick.source(&KeySpec::Snowflake)?;
    let second = runtime.spawn(async move { second.take(1, true).await });
    wait_until("the second to wait, or to be done", WAIT_MAX, || {
        let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        Ok(second.is_finished() || schema.sql(waiting)? != [["0"]])
    })?;
    line.go_silent_at(None);
    runtime.block_on(first)??;
    let refused = runtime.block_on(second)?.unwrap_err();
    assert!(refused.to_string().contains("layout"), "{refused}");
    Ok(())
}
