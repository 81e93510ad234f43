//! Readable ids out of two stores, of which one is in a file and the other on each engine: each leases buckets of its own, whatever a program's
//! configuration says, and one that is away is passed over.

use std::collections::BTreeSet;

use anyhow::Context;
use keywright_core::{Cause, KeyBatch, Zone, readable};
use keywright_store::{Failure, KeySpec, Keys, RawSnowflakeSettings, RawStoreSettings};
use keywright_testkit::Result;

use crate::common::{Engine, on_engines, runtime};
use crate::two::{Two, open_all, open_with};

on_engines!(
    ids_come_from_both_and_from_each_alone,
    what_the_store_says_counts,
    a_store_that_was_restored_is_closed,
    a_giver_that_was_restored_gives_by_the_owners_word,
    what_databases_are_assigned_stays_with_their_store,
);

#[test]
fn on_mysql() -> Result<()> {
    ids_come_from_both_and_from_each_alone(Engine::MySql)?;
    what_the_store_says_counts(Engine::MySql)
}

/// Keys per look: enough that each store has its turn.
const KEYS: usize = 40;

/// The tags of this pattern are in the further store.
const FAR: &str = "far.*";

/// Both stores with these buckets.
fn raw(two: &Two, main: Option<&str>, far: Option<&str>) -> [RawStoreSettings; 2] {
    let [mut raw_main, mut raw_far] = two.raw(FAR);
    raw_main.readable_buckets = main.map(str::to_owned);
    raw_far.readable_buckets = far.map(str::to_owned);
    [raw_main, raw_far]
}

fn open(two: &Two, main: Option<&str>, far: Option<&str>) -> Result<Keys> {
    open_all(raw(two, main, far).into())
}

/// As a program knows it that has no other store.
fn alone(raw: RawStoreSettings) -> RawStoreSettings {
    RawStoreSettings {
        name: String::new(),
        tags: Vec::new(),
        readable_buckets: None,
        ..raw
    }
}

/// Nothing is there.
fn away(raw: RawStoreSettings) -> RawStoreSettings {
    RawStoreSettings {
        url: format!("postgres://nobody@127.0.0.1:1/{}", raw.name),
        name: raw.name,
        tags: raw.tags,
        readable_buckets: raw.readable_buckets,
        wait_ms_max: 300,
        store_ms_max: 300,
        backoff_ms_max: 100,
        ..RawStoreSettings::default()
    }
}

/// The buckets of some ids, which are distinct from all before.
async fn buckets(
    keys: &Keys,
    all: &mut BTreeSet<String>,
) -> std::result::Result<BTreeSet<u8>, Failure> {
    let source = keys.source(&KeySpec::parse("readable:ORD", None, None).expect("a spec"))?;
    let mut found = BTreeSet::new();
    for _ in 0..KEYS {
        let KeyBatch::Texts(texts) = source.take(2, false).await? else {
            panic!("readable keys are texts");
        };
        for text in texts {
            let parts = readable::parse(&text, Zone::UTC).expect("a readable id");
            found.insert(parts.bucket);
            assert!(all.insert(text.clone()), "{text} came twice");
        }
    }
    Ok(found)
}

/// Both give in turn; where one is away, also from the start on, the other gives, and where both are it is an error.
fn ids_come_from_both_and_from_each_alone(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_buckets_turn")?;
    let mut all = BTreeSet::new();
    runtime()?.block_on(async {
        two.init(FAR).await?;
        let (main, far) = (Some("0-99"), Some("100-255"));
        let keys = open(&two, main, far)?;
        // Nothing is known yet.
        let early = buckets(&open(&two, main, far)?, &mut all)
            .await
            .unwrap_err();
        assert_eq!(early.cause(), Cause::WorkerIdUnset, "{early}");
        let said = keys.check(&[]).await;
        assert!(
            said.iter()
                .any(|its| its.message.contains("keywright init")),
            "{said:?}"
        );
        assert_eq!(keys.divide_buckets(false).await?.len(), 2);
        assert!(keys.divide_buckets(false).await?.is_empty());
        let said = keys.check(&[]).await;
        assert!(
            !said.iter().any(|its| its.message.contains("buckets")),
            "{said:?}"
        );
        // The further store's lease may come after the first keys.
        let mut found = BTreeSet::new();
        while found.len() < 2 {
            found.extend(buckets(&keys, &mut all).await?);
        }
        assert_eq!(found, BTreeSet::from([0, 100]));
        let stats: Vec<_> = keys
            .stats()
            .into_iter()
            .map(|its| (its.name, its.store))
            .collect();
        let of = |store: &str| ("readable".to_owned(), store.to_owned());
        assert_eq!(stats, [of("far"), of("main")]);
        keys.hand_back().await;
        let [its_main, its_far] = raw(&two, main, far);
        let without_far = open_all(vec![its_main.clone(), away(its_far.clone())])?;
        assert_eq!(buckets(&without_far, &mut all).await?, BTreeSet::from([0]));
        without_far.hand_back().await;
        let without_main = open_all(vec![away(its_main.clone()), its_far.clone()])?;
        assert_eq!(
            buckets(&without_main, &mut all).await?,
            BTreeSet::from([100])
        );
        without_main.hand_back().await;
        let without_both = open_all(vec![away(its_main), away(its_far)])?;
        let failed = buckets(&without_both, &mut all).await.unwrap_err();
        assert_eq!(failed.cause(), Cause::StoreUnavailable, "{failed}");
        Ok(())
    })
}

/// A program that knows one store only, or divides otherwise, leases what the store says; what would share a bucket is refused.
fn what_the_store_says_counts(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_buckets_says")?;
    let mut all = BTreeSet::new();
    runtime()?.block_on(async {
        two.init(FAR).await?;
        // Each store alone, before they are divided.
        let alone = |raw| open_all(vec![alone(raw)]);
        let [main, far] = two.raw(FAR);
        let before = alone(main.clone())?;
        assert_eq!(buckets(&before, &mut all).await?, BTreeSet::from([0]));
        let refused = open(&two, Some("1-99"), Some("100-255"))?
            .divide_buckets(false)
            .await;
        assert_eq!(refused.unwrap_err().cause(), Cause::WorkerIdInUse);
        open(&two, Some("0-99"), Some("100-199"))?
            .divide_buckets(false)
            .await?;
        // The first one still has its bucket, so this one has the next.
        assert_eq!(buckets(&alone(main)?, &mut all).await?, BTreeSet::from([1]));
        assert_eq!(
            buckets(&alone(far)?, &mut all).await?,
            BTreeSet::from([100])
        );
        for (main, far) in [("0-100", "101-199"), ("0-49", "50-99"), ("0-1", "120-130")] {
            let refused = open(&two, Some(main), Some(far))?
                .divide_buckets(false)
                .await;
            assert_eq!(
                refused.unwrap_err().cause(),
                Cause::WorkerIdInUse,
                "{main} {far}"
            );
            // Who is refused has closed nothing.
            let [_, far] = two.raw(FAR);
            buckets(&alone(far)?, &mut all).await?;
        }
        open(&two, Some("0-49"), Some("50-255"))?
            .divide_buckets(false)
            .await?;
        let keys = open(&two, Some("0-49"), Some("50-255"))?;
        let found = buckets(&keys, &mut all).await?;
        assert!(found.is_subset(&BTreeSet::from([2, 50])), "{found:?}");
        Ok(())
    })
}

/// Nobody knows which of its buckets were leased since the backup.
fn a_store_that_was_restored_is_closed(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_buckets_restored")?;
    let mut all = BTreeSet::new();
    runtime()?.block_on(async {
        two.init(FAR).await?;
        let (main, far) = (Some("0-99"), Some("100-255"));
        let keys = open(&two, main, far)?;
        keys.divide_buckets(false).await?;
        let restored = keys.store_named("far")?.by_itself();
        restored
            .restored(std::time::Duration::from_secs(60), Default::default())
            .await?;
        let [its_main, its_far] = raw(&two, main, far);
        let far_alone = open_all(vec![away(its_main), its_far])?;
        let refused = buckets(&far_alone, &mut all).await.unwrap_err();
        assert!(
            [Cause::WorkerIdUnset, Cause::StoreUnavailable].contains(&refused.cause()),
            "{refused}"
        );
        // Its own task would go on trying, and lease the first bucket as soon as it may.
        far_alone.hand_back().await;
        drop(far_alone);
        let less = open(&two, main, Some("100-200"))?
            .divide_buckets(false)
            .await;
        assert_eq!(less.unwrap_err().cause(), Cause::WorkerIdInUse);
        assert_eq!(open(&two, main, far)?.divide_buckets(false).await?.len(), 2);
        let found = buckets(&open(&two, main, far)?, &mut all).await?;
        assert!(found.is_subset(&BTreeSet::from([0, 100])), "{found:?}");
        Ok(())
    })
}

/// A backup from before the division has no row that says so.
#[test]
fn a_store_that_was_restored_from_before_the_division_is_closed() -> Result<()> {
    let two = Two::new(Engine::File, "kw_buckets_before")?;
    let mut all = BTreeSet::new();
    runtime()?.block_on(async {
        two.init(FAR).await?;
        let keys = open(&two, Some("0-99"), Some("100-255"))?;
        keys.divide_buckets(false).await?;
        two.far.sql("DELETE FROM keywright_bucket")?;
        // It is enough that the configuration divides buckets among others.
        let keys = open(&two, Some("0-99"), None)?;
        let restored = keys.store_named("far")?.by_itself();
        restored
            .restored(std::time::Duration::from_secs(60), Default::default())
            .await?;
        // Counted up it could be one that somebody has read of the store that was lost.
        let version = two.far.sql("SELECT version FROM keywright_bucket")?;
        let version: u64 = version.iter().flatten().next().context("a row")?.parse()?;
        assert!(version > 1_000_000, "{version}");
        let [_, far] = two.raw(FAR);
        let refused = buckets(&open_all(vec![alone(far)])?, &mut all).await;
        assert_eq!(refused.unwrap_err().cause(), Cause::WorkerIdUnset);
        Ok(())
    })
}

/// The store without tags is restored from before it gave to the other one, which has left the configuration since: nothing says so.
fn a_giver_that_was_restored_gives_by_the_owners_word(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_buckets_giver")?;
    let mut all = BTreeSet::new();
    let lost = std::time::Duration::from_secs(60);
    let in_use = |refused: Option<Failure>| {
        let refused = refused.expect("it is refused");
        assert_eq!(refused.cause(), Cause::WorkerIdInUse, "{refused}");
        refused.to_string()
    };
    runtime()?.block_on(async {
        two.init(FAR).await?;
        let divided = open(&two, Some("0-99"), Some("100-255"))?;
        divided.divide_buckets(false).await?;
        let [_, far] = two.raw(FAR);
        let far = open_all(vec![alone(far)])?;
        assert_eq!(buckets(&far, &mut all).await?, BTreeSet::from([100]));
        two.main
            .sql("DELETE FROM keywright_bucket WHERE store <> 'own'")?;
        two.main
            .sql("UPDATE keywright_bucket SET buckets = '0-255'")?;
        let main = open(&two, Some("0-255"), None)?;
        main.restored(lost, Default::default()).await?;
        for keys in [&main, &divided] {
            let refused = in_use(keys.divide_buckets(false).await.err());
            assert!(refused.contains("--no-other-buckets"), "{refused}");
        }
        let [its_main, _] = two.raw(FAR);
        let closed = buckets(&open_all(vec![alone(its_main)])?, &mut all).await;
        assert_eq!(closed.unwrap_err().cause(), Cause::WorkerIdUnset);
        // What a store knows counts more than the word.
        in_use(main.divide_buckets(true).await.err());
        let none = open(&two, None, None)?.divide_buckets(true).await;
        assert_eq!(none.unwrap_err().cause(), Cause::WorkerIdUnset);
        assert_eq!(divided.divide_buckets(true).await?.len(), 2);
        let found = buckets(&open(&two, Some("0-99"), Some("100-255"))?, &mut all).await?;
        assert!(found.is_subset(&BTreeSet::from([0, 101])), "{found:?}");
        // From now on it knows what it gave, and keeps what may have been leased.
        let keeps_less = open(&two, Some("0-49"), Some("100-255"))?;
        in_use(keeps_less.divide_buckets(false).await.err());
        let gives_less = open(&two, Some("0-99"), Some("100-250"))?;
        assert_eq!(gives_less.divide_buckets(false).await?.len(), 2);
        // A store that came back as another one goes on with what it had.
        two.far.sql("DELETE FROM keywright_bucket")?;
        let came_back = gives_less.store_named("far")?.by_itself();
        came_back.restored(lost, Default::default()).await?;
        in_use(gives_less.divide_buckets(false).await.err());
        assert_eq!(gives_less.divide_buckets(true).await?.len(), 2);
        let [_, far] = two.raw(FAR);
        buckets(&open_all(vec![alone(far)])?, &mut all).await?;
        Ok(())
    })
}

/// A database has the bucket of the number that it was assigned.
fn what_databases_are_assigned_stays_with_their_store(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_buckets_assigned")?;
    runtime()?.block_on(async {
        two.init(FAR).await?;
        let [main, far] = two.raw(FAR);
        let assigns = |raw: &RawStoreSettings, range: &str| {
            let snowflake = RawSnowflakeSettings {
                leased_worker_ids: Some("512-600".to_owned()),
                assigned_worker_ids: Some(range.to_owned()),
                ..RawSnowflakeSettings::default()
            };
            open_with(vec![alone(raw.clone())], &snowflake)
        };
        let in_use = |refused: Option<Failure>| {
            let refused = refused.expect("it is refused");
            assert_eq!(refused.cause(), Cause::WorkerIdInUse, "{refused}");
        };
        assigns(&far, "5-9")?.record_worker_ids(false).await?;
        let divide = open(&two, Some("0-99"), Some("100-199"))?;
        in_use(divide.divide_buckets(false).await.err());
        assigns(&far, "105-109")?.record_worker_ids(true).await?;
        divide.divide_buckets(false).await?;
        // Each again, by programs that know of one store only.
        for (store, others) in [(&far, "90-101"), (&main, "99-100")] {
            let assigned = assigns(store, others)?.record_worker_ids(true).await;
            in_use(assigned.err());
        }
        assigns(&main, "90-99")?.record_worker_ids(true).await?;
        assigns(&far, "100-120")?.record_worker_ids(true).await?;
        let divide = open(&two, Some("0-89"), Some("90-199"))?;
        in_use(divide.divide_buckets(false).await.err());
        // What is recorded already is no obstacle to whoever divides anew.
        let lost = std::time::Duration::from_secs(60);
        for is_older in [false, true] {
            if is_older {
                two.main.sql("DELETE FROM keywright_bucket")?;
            }
            divide.restored(lost, Default::default()).await?;
            assigns(&main, "90-99")?.record_worker_ids(false).await?;
        }
        let more = assigns(&main, "80-99")?.record_worker_ids(true).await;
        in_use(more.err());
        let divide = open(&two, Some("0-99"), Some("100-199"))?;
        in_use(divide.divide_buckets(false).await.err());
        assert_eq!(divide.divide_buckets(true).await?.len(), 2);
        Ok(())
    })
}
