//! What only etcd does: members that die and are cut off, backups that are restored, programs that write at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keywright_core::Cause;
use keywright_store::{Failure, KeySpec, Keys, RawStoreSettings, Source};
use keywright_testkit::Result;
use keywright_testkit::etcd::EtcdCluster;
use nix::sys::signal::Signal;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::common::{
    IssuedLog, open, raw_etcd, runtime, segment, small_steps, tag, take_many, until,
};

/// An issuer on an empty store, and its tag.
async fn opened(settings: &RawStoreSettings) -> Result<Keys> {
    let keys = open(settings)?;
    keys.init().await?;
    keys.create_tag(&tag("orders"), &small_steps(20)).await?;
    Ok(keys)
}

/// One after the other is killed, and stopped for longer than an election takes, while three programs refill all the time.
#[test]
fn members_that_die_or_stand_still_repeat_nothing() -> Result<()> {
    let mut cluster = EtcdCluster::start(3)?;
    let settings = RawStoreSettings {
        store_ms_max: 3_000,
        ..raw_etcd(&cluster.hosts(), "keywright")
    };
    let (runtime, log) = (runtime()?, IssuedLog::default());
    let stop = Arc::new(AtomicBool::new(false));
    let first = runtime.block_on(opened(&settings))?;
    let programs = [first, open(&settings)?, open(&settings)?];
    let mut tasks = JoinSet::new();
    for (n, keys) in programs.iter().enumerate() {
        for spec in [segment("orders"), KeySpec::Snowflake] {
            let (source, log, stop) = (keys.source(&spec)?, log.clone(), Arc::clone(&stop));
            let takes = async move {
                while !stop.load(Ordering::Relaxed) {
                    if let Ok(taken) = source.take(3, true).await {
                        log.add_all(&format!("program {n}, {spec:?}"), &taken);
                    }
                }
            };
            tasks.spawn_on(takes, runtime.handle());
        }
    }
    for round in 0..6 {
        let before = log.len();
        runtime.block_on(until("keys to be issued", || {
            log.len() > before + 500 + round * 37
        }));
        let member = round % 3;
        match round % 2 {
            0 => {
                cluster.kill9(member)?;
                cluster.restart(member)?;
            }
            _ => {
                cluster.signal(member, Signal::SIGSTOP)?;
                let before = log.len();
                runtime.block_on(until("keys without it", || log.len() > before + 300));
                cluster.signal(member, Signal::SIGCONT)?;
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    runtime.block_on(tasks.join_all());
    Ok(())
}

/// One member of three can write nothing, and says so; what was reserved is used up.
#[test]
fn without_a_majority_there_is_an_error_and_then_keys_again() -> Result<()> {
    let mut cluster = EtcdCluster::start(3)?;
    let settings = RawStoreSettings {
        store_ms_max: 1_500,
        wait_ms_max: 6_000,
        ..raw_etcd(&cluster.hosts(), "keywright")
    };
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let keys = opened(&settings).await?;
        let source = keys.source(&segment("orders"))?;
        log.add_all("before", &source.take(1, true).await?);
        cluster.kill9(1)?;
        cluster.kill9(2)?;
        let refused = loop {
            match source.take(1, true).await {
                Ok(taken) => log.add_all("without a majority", &taken),
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused.cause(), Cause::StoreUnavailable, "{refused}");
        cluster.restart(1)?;
        until("keys with two of three", || {
            source.try_take(1, true).is_ok_and(|taken| {
                log.add_all("after", &taken);
                true
            })
        })
        .await;
        take_many(source, log, "after".to_owned(), 100).await;
        Ok(())
    })
}

/// Nobody holds a lock: whoever comes second does it again, within the time that a transaction may take.
#[test]
fn thirty_programs_that_reserve_at_once_all_get_keys() -> Result<()> {
    const PROGRAMS: usize = 30;
    let cluster = EtcdCluster::start(1)?;
    let settings = raw_etcd(&cluster.hosts(), "keywright");
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let first = opened(&settings).await?;
        let mut all = vec![first];
        for _ in 1..PROGRAMS {
            all.push(open(&settings)?);
        }
        let mut takes = JoinSet::new();
        for (n, keys) in all.iter().enumerate() {
            for spec in [segment("orders"), KeySpec::Snowflake] {
                let (source, log) = (keys.source(&spec)?, log.clone());
                takes.spawn(async move {
                    for _ in 0..5 {
                        let keys = source.take(15, true).await?;
                        log.add_all(&format!("program {n}, {spec:?}"), &keys);
                    }
                    anyhow::Ok(())
                });
            }
        }
        while let Some(done) = takes.join_next().await {
            done??;
        }
        assert_eq!(log.len(), PROGRAMS * 2 * 5 * 15);
        Ok(())
    })
}

/// Some keys before a backup and many after it.
struct Restored {
    cluster: EtcdCluster,
    settings: RawStoreSettings,
    runtime: Runtime,
    log: IssuedLog,
    /// Of a program that runs all the time.
    keys: Keys,
    sources: [Source; 2],
}

impl Restored {
    fn with_token(token: Option<&str>) -> Result<Restored> {
        let mut cluster = EtcdCluster::start(1)?;
        let settings = RawStoreSettings {
            wait_ms_max: 3_000,
            ..raw_etcd(&cluster.hosts(), "keywright")
        };
        let (runtime, log) = (runtime()?, IssuedLog::default());
        let keys = runtime.block_on(opened(&settings))?;
        let sources = [
            keys.source(&segment("orders"))?,
            keys.source(&KeySpec::Snowflake)?,
        ];
        runtime.block_on(take_of_both(&sources, &log, "before the backup", 20));
        let backup = cluster.save("backup")?;
        runtime.block_on(take_of_both(&sources, &log, "after the backup", 200));
        cluster.restore(&backup, token)?;
        Ok(Restored {
            cluster,
            settings,
            runtime,
            log,
            keys,
            sources,
        })
    }

    /// Until there are no more.
    fn refusal(&self, source: &Source, count: u64) -> Failure {
        self.runtime.block_on(async {
            loop {
                match source.take(count, true).await {
                    Ok(taken) => self.log.add_all("from memory", &taken),
                    Err(refused) if refused.cause() == Cause::StoreUnavailable => {}
                    Err(refused) => break refused,
                }
            }
        })
    }
}

async fn take_of_both(sources: &[Source; 2], log: &IssuedLog, by: &str, rounds: u64) {
    for source in sources {
        take_many(source.clone(), log.clone(), by.to_owned(), rounds).await;
    }
}

/// The cluster has forgotten what was reserved since: programs that saw it, and those that start, give nothing until somebody has said how much
/// may be missing.
#[test]
fn a_restored_backup_gives_nothing_until_somebody_says_what_may_be_lost() -> Result<()> {
    let it = Restored::with_token(Some("restored"))?;
    let refused = it.refusal(&it.sources[0], 1);
    assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
    let hint = refused.hint_text().unwrap_or_default();
    assert!(
        hint.contains("keywright store restored --lost"),
        "{refused}"
    );
    // One that has seen nothing: the backup itself says which cluster it is of.
    let newcomer = open(&it.settings)?;
    let refused = it.refusal(&newcomer.source(&segment("orders"))?, 1);
    assert!(
        refused
            .to_string()
            .contains("the store was written by cluster"),
        "{refused}"
    );
    let restored = open(&it.settings)?;
    let restored = it
        .runtime
        .block_on(restored.restored(Duration::from_secs(60), BTreeMap::new()))?;
    assert_eq!(restored.tags.len(), 1, "{restored:?}");
    // What is running has seen another store.
    let refused = it.refusal(&it.sources[1], 4_000);
    assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
    let next = open(&it.settings)?;
    let sources = [
        next.source(&segment("orders"))?,
        next.source(&KeySpec::Snowflake)?,
    ];
    it.runtime
        .block_on(take_of_both(&sources, &it.log, "restored", 100));
    drop(it.keys);
    drop(it.cluster);
    Ok(())
}

/// Restored under its old name it is known only by who has seen more of it. Whoever has, notices it though nobody wants anything of him, has the store tell
/// everybody, and does not wait until it has come as far again.
#[test]
fn a_backup_restored_under_the_old_name_is_told_by_who_has_seen_more() -> Result<()> {
    let it = Restored::with_token(None)?;
    it.runtime.block_on(until("the store to tell", || {
        let record = it.cluster.ctl(&["get", "--prefix", "/keywright/store"]);
        record.is_ok_and(|record| record.contains("\"gone_back\""))
    }));
    let newcomer = open(&it.settings)?;
    for source in [&newcomer.source(&segment("orders"))?, &it.sources[0]] {
        let refused = it.refusal(source, 1);
        assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
        assert!(
            refused.to_string().contains("has gone back: its revision"),
            "{refused}"
        );
    }
    // Others have it come as far again.
    for n in 0..300 {
        it.cluster.ctl(&["put", "/else", &n.to_string()])?;
    }
    let again = it.refusal(&it.sources[0], 1);
    assert_eq!(again.cause(), Cause::BoundDamaged, "{again}");
    let restored = open(&it.settings)?;
    it.runtime
        .block_on(restored.restored(Duration::from_secs(60), BTreeMap::new()))?;
    let next = open(&it.settings)?;
    let sources = [
        next.source(&segment("orders"))?,
        next.source(&KeySpec::Snowflake)?,
    ];
    it.runtime
        .block_on(take_of_both(&sources, &it.log, "restored", 100));
    drop(it.keys);
    Ok(())
}
