//! Ordered tags: one program at a time gets ranges of them, and who that is the store says.

use std::collections::BTreeMap;
use std::time::Duration;

use keywright_core::{Cause, Step};
use keywright_store::switch::Switchboard;
use keywright_store::{
    KeySpec, Keys, OrderSettings, Ordered, Source, Stride, TagOptions, TagOrder,
};
use keywright_testkit::Result;
use tokio::time::{Instant, sleep};

use crate::common::{Engine, Schema, on_engines, open, runtime, segment, small_steps, tag};

on_engines!(
    only_who_stands_issues_and_hands_over,
    a_program_that_is_gone_is_replaced,
    beside_a_restore_the_order_stays,
    an_order_stays,
    an_ordered_tag_that_was_made_anew_is_another_one,
);

/// So that much happens in a test, and a slow machine keeps its lease.
const TTL_MS: u64 = 2_000;
const WAIT_MAX: Duration = Duration::from_secs(90);

fn monotonic() -> Result<TagOptions> {
    Ok(TagOptions {
        order: TagOrder::Monotonic,
        ..small_steps(100)
    })
}

fn stand(keys: &Keys, address: &str) {
    keys.stand_for_order(OrderSettings {
        address: address.to_owned(),
        ttl_ms: TTL_MS,
    });
}

/// A new store's first program, which is active at the first address, and its first id.
async fn active(schema: &Schema, addresses: &[&str]) -> Result<(Keys, Source, u64)> {
    let keys = open(&schema.raw())?;
    keys.init().await?;
    keys.create_tag(&tag("orders"), &monotonic()?).await?;
    stand(&keys, addresses[0]);
    let source = keys.source(&segment("orders"))?;
    let (_, first) = next(std::slice::from_ref(&source), addresses).await?;
    Ok((keys, source, first))
}

/// The next id of whoever issues, and the place in the list of who that is; the first is asked first.
async fn next(sources: &[Source], addresses: &[&str]) -> Result<(usize, u64)> {
    let mut at = 0;
    let end = Instant::now() + WAIT_MAX;
    while Instant::now() < end {
        match sources[at].take_ordered(1).await {
            Ok(Ordered::Have(keys)) => {
                return Ok((at, keys.number(0).unwrap_or_default()));
            }
            Ok(Ordered::Elsewhere(address)) => {
                at = addresses
                    .iter()
                    .position(|its| *its == address)
                    .unwrap_or(at);
            }
            Ok(
                Ordered::Unconfirmed(_, _)
                | Ordered::BySuccessor
                | Ordered::Wait
                | Ordered::Distinct,
            ) => at = (at + 1) % sources.len(),
            Err(failure) => {
                assert!(failure.cause().retryable(), "{failure}");
                at = (at + 1) % sources.len();
            }
        }
    }
    anyhow::bail!("nobody issues")
}

fn only_who_stands_issues_and_hands_over(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_ordered")?;
    runtime()?.block_on(async {
        let one = open(&schema.raw())?;
        one.init().await?;
        one.create_tag(&tag("orders"), &monotonic()?).await?;
        assert_eq!(one.tags().await?[0].order, Some(TagOrder::Monotonic));
        let addresses = ["one:1", "two:2"];
        stand(&one, addresses[0]);
        let sources = [one.source(&segment("orders"))?];
        let (_, mut last) = next(&sources, &addresses).await?;
        assert_eq!(sources[0].try_last_ordered(), Ordered::Have(last));
        // Who does not stand gets none, whatever way he asks.
        let other = open(&schema.raw())?;
        for spec in [
            segment("orders"),
            KeySpec::Stride(Stride::new(tag("orders"), 2, 5)?),
        ] {
            let failure = other.source(&spec)?.take(1, true).await.unwrap_err();
            assert_eq!(failure.cause(), Cause::TagOrdered, "{failure}");
        }
        // Nor who asks in the usual way where one stands.
        let failure = sources[0].take(1, true).await.unwrap_err();
        assert_eq!(failure.cause(), Cause::TagOrdered, "{failure}");
        let two = open(&schema.raw())?;
        stand(&two, addresses[1]);
        let sources = [sources[0].clone(), two.source(&segment("orders"))?];
        for round in 0..4 {
            for _ in 0..250 {
                let (_, id) = next(&sources, &addresses).await?;
                assert!(id > last, "{id} behind {last}");
                last = id;
            }
            // Consecutive ones, and the rest before them is given up.
            let (active, standby) = if round % 2 == 0 {
                (&one, &two)
            } else {
                (&two, &one)
            };
            assert_eq!(
                standby.demote(None).await.unwrap_err().cause(),
                Cause::CommandRefused
            );
            active.demote(None).await?;
            let begun = Instant::now();
            let (at, id) = next(&sources, &addresses).await?;
            assert_eq!(at, (round + 1) % 2);
            assert!(id > last, "{id} behind {last}");
            // Who was demoted before lets others come first for a time to live.
            let ms_max = if round == 0 { TTL_MS } else { TTL_MS * 3 / 2 };
            assert!(
                begun.elapsed() < Duration::from_millis(ms_max),
                "round {round}: {:?}",
                begun.elapsed()
            );
            last = id;
        }
        let nodes = two.order_nodes().unwrap_or_default();
        let shown: Vec<_> = nodes.iter().map(|node| node.address.as_str()).collect();
        assert!(addresses.iter().all(|its| shown.contains(its)), "{nodes:?}");
        // The clean stop gives the lease back, and hands no range back.
        one.hand_back().await;
        let (at, id) = next(&sources[1..], &addresses).await?;
        assert!(at == 0 && id > last);
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 0);
        Ok(())
    })
}

fn a_program_that_is_gone_is_replaced(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_order_gone")?;
    runtime()?.block_on(async {
        let addresses = ["one:1", "two:2"];
        let (one, source, last) = active(&schema, &addresses).await?;
        let two = open(&schema.raw())?;
        stand(&two, addresses[1]);
        let standby = two.source(&segment("orders"))?;
        // As it reads whose lease it is.
        while standby.take_ordered(1).await? != Ordered::Elsewhere(addresses[0].to_owned()) {
            sleep(Duration::from_millis(10)).await;
        }
        // The store's thread ends with the last clone, as if the program were gone.
        drop((source, one));
        let begun = Instant::now();
        let (_, id) = loop {
            match standby.take_ordered(1).await {
                Ok(Ordered::Have(keys)) => break (1, keys.number(0).unwrap_or_default()),
                Ok(_) => sleep(Duration::from_millis(10)).await,
                Err(failure) => assert!(failure.cause().retryable(), "{failure}"),
            }
        };
        let took = begun.elapsed();
        assert!(id > last, "{id} behind {last}");
        // A whole time to live behind the last renewal, which may have been a moment ago, or a fifth of it.
        assert!(took >= Duration::from_millis(TTL_MS * 7 / 10), "{took:?}");
        // Whoever issues without being the active one any more gets nothing: by hand, as if a third had taken over.
        let taken = "UPDATE keywright_order_lease SET owner = 'third', address = 'three:3', epoch = epoch + 1, renewal = renewal + 1";
        schema.sql(taken)?;
        let begun = Instant::now();
        while standby.take_ordered(50).await? != Ordered::Elsewhere("three:3".to_owned()) {
            assert!(begun.elapsed() < WAIT_MAX, "it goes on");
        }
        // One that has issued nothing has read as much.
        drop((standby, two));
        let later = open(&schema.raw())?;
        stand(&later, "later:4");
        let standby = later.source(&segment("orders"))?;
        let begun = Instant::now();
        while standby.take_ordered(1).await? != Ordered::Elsewhere("three:3".to_owned()) {
            assert!(begun.elapsed() < WAIT_MAX, "it has not read the lease");
        }
        // By hand, as if data of before was put back: what was issued since is not known to the store.
        schema.sql("UPDATE keywright_order_lease SET owner = NULL, epoch = 1, renewal = 1")?;
        let begun = Instant::now();
        let refused = loop {
            assert!(begun.elapsed() < WAIT_MAX, "it is not refused");
            match standby.take_ordered(1).await {
                Ok(Ordered::Have(keys)) => panic!("{keys:?}"),
                Ok(_) => sleep(Duration::from_millis(10)).await,
                Err(failure) if failure.cause().retryable() => sleep(Duration::from_millis(10)).await,
                Err(failure) => break failure,
            }
        };
        assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
        assert!(refused.to_string().contains("was put back"), "{refused}");
        // It goes on when the store knows that it was restored.
        let owner = open(&schema.raw())?;
        owner.restored(Duration::from_secs(60), BTreeMap::new()).await?;
        let begun = Instant::now();
        let above = loop {
            assert!(begun.elapsed() < WAIT_MAX, "it does not go on");
            match standby.take_ordered(1).await {
                Ok(Ordered::Have(keys)) => break keys.number(0).unwrap_or_default(),
                Ok(_) => {}
                Err(failure) => assert!(
                    failure.cause().retryable() || failure.cause() == Cause::BoundDamaged,
                    "{failure}"
                ),
            }
            sleep(Duration::from_millis(10)).await;
        };
        assert!(above > id, "{above} behind {id}");
        Ok(())
    })
}

/// Nobody is stopped for it: whoever has the lease issues by it for a while, and nothing smaller comes behind.
fn beside_a_restore_the_order_stays(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_order_restored")?;
    runtime()?.block_on(async {
        let addresses = ["one:1", "two:2"];
        let (_one, first, mut last) = active(&schema, &addresses).await?;
        let two = open(&schema.raw())?;
        stand(&two, addresses[1]);
        let sources = [first, two.source(&segment("orders"))?];
        let owner = open(&schema.raw())?;
        for _ in 0..2 {
            let lost = Duration::from_secs(60);
            let restored = owner.restored(lost, BTreeMap::new()).await?;
            let above = restored.tags.first().map(|its| its.next + its.gap);
            let begun = Instant::now();
            // Until ids come from behind the gap.
            while Some(last) < above {
                let (_, id) = next(&sources, &addresses).await?;
                assert!(id > last, "{id} behind {last}");
                assert!(begun.elapsed() < WAIT_MAX, "none come from behind the gap");
                last = id;
                sleep(Duration::from_millis(1)).await;
            }
        }
        Ok(())
    })
}

/// What is left of the one before may be given again.
fn an_ordered_tag_that_was_made_anew_is_another_one(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_ordered_anew")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &monotonic()?).await?;
        stand(&keys, "one:1");
        let sources = [keys.source(&segment("orders"))?];
        next(&sources, &["one:1"]).await?;
        schema.remove_tags()?;
        let owner = open(&schema.raw())?;
        owner.init().await?;
        owner.create_tag(&tag("orders"), &monotonic()?).await?;
        // As programs do that follow what is in force.
        for (tag, id) in Switchboard::new(&keys).standing().await?.key_space_ids {
            keys.meet(&tag, &id);
        }
        let refused = sources[0].take_ordered(1).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
        assert!(refused.to_string().contains("is another one"), "{refused}");
        Ok(())
    })
}

fn an_order_stays(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_order_stays")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        let distinct = TagOptions::with_step(Step::new(10)?);
        keys.create_tag(&tag("orders"), &distinct).await?;
        keys.source(&segment("orders"))?.take(1, true).await?;
        keys.drop_tag(&tag("orders")).await?;
        // Somebody may have ids of it still.
        let failure = keys
            .create_tag(&tag("orders"), &monotonic()?)
            .await
            .unwrap_err();
        assert_eq!(failure.cause(), Cause::TagExists, "{failure}");
        keys.create_tag(&tag("orders"), &distinct).await?;
        schema.sql("UPDATE keywright_segment SET issue_order = 'some' WHERE tag = 'orders'")?;
        let late = open(&schema.raw())?;
        let failure = late
            .source(&segment("orders"))?
            .take(1, true)
            .await
            .unwrap_err();
        assert_eq!(failure.cause(), Cause::BoundDamaged, "{failure}");
        Ok(())
    })
}
