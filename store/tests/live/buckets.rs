//! Readable ids out of two stores, of which one is in a file and the other on each engine: each leases buckets of its own, whatever a program's
//! configuration says, and one that is away is passed over.

use std::collections::BTreeSet;

use keywright_core::{Cause, KeyBatch, Zone, readable};
use keywright_store::{
    Failure, KeySpec, Keys, RawSnowflakeSettings, RawStoreSettings, RawStores, StoreSettings,
};
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, runtime};

on_engines!(
    ids_come_from_both_and_from_each_alone,
    what_the_store_says_counts,
    a_store_that_was_restored_is_closed,
    what_databases_are_assigned_stays_with_their_store,
);

#[test]
fn on_mysql() -> Result<()> {
    ids_come_from_both_and_from_each_alone(Engine::MySql)?;
    what_the_store_says_counts(Engine::MySql)
}

/// Keys per look: enough that each store has its turn.
const KEYS: usize = 40;

struct Two {
    main: Schema,
    far: Schema,
}

impl Two {
    fn new(engine: Engine, name: &str) -> Result<Two> {
        Ok(Two {
            main: Schema::of(Engine::File, name)?,
            far: Schema::of(engine, name)?,
        })
    }

    fn raw(&self, main: Option<&str>, far: Option<&str>) -> [RawStoreSettings; 2] {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        [
            RawStoreSettings {
                name: "main".to_owned(),
                readable_buckets: owned(main),
                ..self.main.raw()
            },
            RawStoreSettings {
                name: "far".to_owned(),
                tags: vec!["far.*".to_owned()],
                readable_buckets: owned(far),
                ..self.far.raw()
            },
        ]
    }

    fn open(&self, main: Option<&str>, far: Option<&str>) -> Result<Keys> {
        opened(self.raw(main, far).to_vec())
    }

    async fn init(&self) -> Result<()> {
        for store in self.open(None, None)?.stores() {
            store.init().await?;
        }
        Ok(())
    }
}

fn opened(raw: Vec<RawStoreSettings>) -> Result<Keys> {
    opened_with(raw, RawSnowflakeSettings::default())
}

fn opened_with(raw: Vec<RawStoreSettings>, snowflake: RawSnowflakeSettings) -> Result<Keys> {
    let settings = StoreSettings::of_all(&RawStores(raw), &snowflake)?;
    Ok(Keys::open(settings)?)
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
        two.init().await?;
        let (main, far) = (Some("0-99"), Some("100-255"));
        let keys = two.open(main, far)?;
        // Nothing is known yet.
        let early = buckets(&two.open(main, far)?, &mut all).await.unwrap_err();
        assert_eq!(early.cause(), Cause::WorkerIdUnset, "{early}");
        let said = keys.check(&[]).await;
        assert!(
            said.iter()
                .any(|its| its.message.contains("keywright init")),
            "{said:?}"
        );
        assert_eq!(keys.divide_buckets().await?.len(), 2);
        assert!(keys.divide_buckets().await?.is_empty());
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
        let [its_main, its_far] = two.raw(main, far);
        let without_far = opened(vec![its_main.clone(), away(its_far.clone())])?;
        assert_eq!(buckets(&without_far, &mut all).await?, BTreeSet::from([0]));
        without_far.hand_back().await;
        let without_main = opened(vec![away(its_main.clone()), its_far.clone()])?;
        assert_eq!(
            buckets(&without_main, &mut all).await?,
            BTreeSet::from([100])
        );
        without_main.hand_back().await;
        let without_both = opened(vec![away(its_main), away(its_far)])?;
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
        two.init().await?;
        // Each store alone, before they are divided.
        let alone = |raw| opened(vec![alone(raw)]);
        let [main, far] = two.raw(None, None);
        let before = alone(main.clone())?;
        assert_eq!(buckets(&before, &mut all).await?, BTreeSet::from([0]));
        let refused = two
            .open(Some("1-99"), Some("100-255"))?
            .divide_buckets()
            .await;
        assert_eq!(refused.unwrap_err().cause(), Cause::WorkerIdInUse);
        two.open(Some("0-99"), Some("100-199"))?
            .divide_buckets()
            .await?;
        // The first one still has its bucket, so this one has the next.
        assert_eq!(buckets(&alone(main)?, &mut all).await?, BTreeSet::from([1]));
        assert_eq!(
            buckets(&alone(far)?, &mut all).await?,
            BTreeSet::from([100])
        );
        for (main, far) in [("0-100", "101-199"), ("0-49", "50-99"), ("0-1", "120-130")] {
            let refused = two.open(Some(main), Some(far))?.divide_buckets().await;
            assert_eq!(
                refused.unwrap_err().cause(),
                Cause::WorkerIdInUse,
                "{main} {far}"
            );
            // Who is refused has closed nothing.
            let [_, far] = two.raw(None, None);
            buckets(&alone(far)?, &mut all).await?;
        }
        two.open(Some("0-49"), Some("50-255"))?
            .divide_buckets()
            .await?;
        let keys = two.open(Some("0-49"), Some("50-255"))?;
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
        two.init().await?;
        let (main, far) = (Some("0-99"), Some("100-255"));
        let keys = two.open(main, far)?;
        keys.divide_buckets().await?;
        let restored = keys.store_named("far")?.by_itself();
        restored
            .restored(std::time::Duration::from_secs(60), Default::default())
            .await?;
        let [its_main, its_far] = two.raw(main, far);
        let far_alone = opened(vec![away(its_main), its_far])?;
        let refused = buckets(&far_alone, &mut all).await.unwrap_err();
        assert!(
            [Cause::WorkerIdUnset, Cause::StoreUnavailable].contains(&refused.cause()),
            "{refused}"
        );
        let less = two.open(main, Some("100-200"))?.divide_buckets().await;
        assert_eq!(less.unwrap_err().cause(), Cause::WorkerIdInUse);
        assert_eq!(two.open(main, far)?.divide_buckets().await?.len(), 2);
        let found = buckets(&two.open(main, far)?, &mut all).await?;
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
        two.init().await?;
        let keys = two.open(Some("0-99"), Some("100-255"))?;
        keys.divide_buckets().await?;
        two.far.sql("DELETE FROM keywright_bucket")?;
        let restored = keys.store_named("far")?.by_itself();
        restored
            .restored(std::time::Duration::from_secs(60), Default::default())
            .await?;
        let [_, far] = two.raw(None, None);
        let refused = buckets(&opened(vec![alone(far)])?, &mut all).await;
        assert_eq!(refused.unwrap_err().cause(), Cause::WorkerIdUnset);
        Ok(())
    })
}

/// A database has the bucket of the number that it was assigned.
fn what_databases_are_assigned_stays_with_their_store(engine: Engine) -> Result<()> {
    let two = Two::new(engine, "kw_buckets_assigned")?;
    runtime()?.block_on(async {
        two.init().await?;
        let [main, far] = two.raw(None, None);
        let assigns = |raw: &RawStoreSettings, range: &str| {
            let snowflake = RawSnowflakeSettings {
                leased_worker_ids: Some("512-600".to_owned()),
                assigned_worker_ids: Some(range.to_owned()),
                ..RawSnowflakeSettings::default()
            };
            opened_with(vec![alone(raw.clone())], snowflake)
        };
        let in_use = |refused: Option<Failure>| {
            let refused = refused.expect("it is refused");
            assert_eq!(refused.cause(), Cause::WorkerIdInUse, "{refused}");
        };
        assigns(&far, "5-9")?.record_worker_ids(false).await?;
        let divide = two.open(Some("0-99"), Some("100-199"))?;
        in_use(divide.divide_buckets().await.err());
        assigns(&far, "105-109")?.record_worker_ids(true).await?;
        divide.divide_buckets().await?;
        // Each again, by programs that know of one store only.
        for (store, others) in [(&far, "90-101"), (&main, "99-100")] {
            let assigned = assigns(store, others)?.record_worker_ids(true).await;
            in_use(assigned.err());
        }
        assigns(&main, "90-99")?.record_worker_ids(true).await?;
        assigns(&far, "100-120")?.record_worker_ids(true).await?;
        let divide = two.open(Some("0-89"), Some("90-199"))?;
        in_use(divide.divide_buckets().await.err());
        Ok(())
    })
}
