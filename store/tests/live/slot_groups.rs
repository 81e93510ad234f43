//! Ordered tags of several slot groups: each has a program of its own, and the store says into how many slots are divided.

use std::time::Duration;

use keywright_core::Cause;
use keywright_store::{
    Keys, OrderSettings, Ordered, SlotGroupsRecorded, Source, TagOptions, TagOrder,
};
use keywright_testkit::Result;
use tokio::time::{Instant, sleep};

use crate::common::{Engine, Schema, on_engines, open, runtime, segment, small_steps, tag};

on_engines!(
    each_group_has_a_program,
    a_program_with_another_number_of_groups_gives_nothing,
    programs_that_wait_for_the_number_share,
);

const TTL_MS: u64 = 1_000;
const WAIT_MAX: Duration = Duration::from_secs(90);
/// Of two groups, `orders` is in the first and `carts` in the second.
const TAGS: [&str; 2] = ["orders", "carts"];

fn program(schema: &Schema, slot_groups: u32) -> Result<Keys> {
    let mut raw = schema.raw();
    raw.slot_groups = slot_groups;
    open(&raw)
}

fn stand(keys: &Keys, address: &str) {
    keys.stand_for_order(OrderSettings {
        address: address.to_owned(),
        ttl_ms: TTL_MS,
    });
}

async fn create(keys: &Keys) -> Result<()> {
    keys.init().await?;
    let options = TagOptions {
        order: TagOrder::Monotonic,
        ..small_steps(20)
    };
    for name in TAGS {
        keys.create_tag(&tag(name), &options).await?;
    }
    Ok(())
}

/// Of which groups a program gives keys, in their order.
fn groups_of(keys: &Keys) -> Vec<u8> {
    let nodes = keys.order_nodes().unwrap_or_default();
    let own = nodes.into_iter().filter(|node| node.is_self);
    own.flat_map(|node| node.groups)
        .map(|group| group.number())
        .collect()
}

async fn until(what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let end = Instant::now() + WAIT_MAX;
    while !is_so() {
        anyhow::ensure!(Instant::now() < end, "waited in vain: {what}");
        sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// The next id of a tag of whichever program gives it.
async fn next(sources: &[Source]) -> Result<u64> {
    let end = Instant::now() + WAIT_MAX;
    while Instant::now() < end {
        for source in sources {
            match source.try_ordered(1) {
                Ordered::Have(keys) => return Ok(keys.number(0).unwrap_or_default()),
                Ordered::Unconfirmed(_, _)
                | Ordered::Elsewhere(_)
                | Ordered::BySuccessor
                | Ordered::Wait
                | Ordered::Distinct => {}
            }
        }
        sleep(Duration::from_millis(1)).await;
    }
    anyhow::bail!("nobody issues")
}

fn each_group_has_a_program(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_groups")?;
    runtime()?.block_on(async {
        let one = program(&schema, 2)?;
        one.init().await?;
        assert_eq!(
            one.record_slot_groups(false, TTL_MS).await?,
            SlotGroupsRecorded::Now
        );
        assert_eq!(
            one.record_slot_groups(false, TTL_MS).await?,
            SlotGroupsRecorded::AsBefore
        );
        create(&one).await?;
        let two = program(&schema, 2)?;
        stand(&one, "one:1");
        stand(&two, "two:2");
        until("a group each", || {
            let (first, second) = (groups_of(&one), groups_of(&two));
            first.len() == 1 && second.len() == 1 && first != second
        })
        .await?;
        let programs = [&one, &two];
        let sources = |name: &str| -> Result<Vec<Source>> {
            let all = programs.iter();
            all.map(|keys| Ok(keys.source(&segment(name))?)).collect()
        };
        let (orders, carts) = (sources("orders")?, sources("carts")?);
        let mut last = [0, 0];
        // Whoever has another group says who has the tag's.
        let is_sent_on = |source: &Source| matches!(source.try_ordered(1), Ordered::Elsewhere(_));
        for round in 0..6 {
            for (group, sources) in [(1, &orders), (2, &carts)] {
                let is_first = groups_of(&one).contains(&group);
                until("who has the group", || {
                    is_sent_on(&sources[usize::from(is_first)])
                })
                .await?;
            }
            for _ in 0..50 {
                for (sources, last) in [&orders, &carts].into_iter().zip(&mut last) {
                    let id = next(sources).await?;
                    assert!(id > *last, "{id} behind {last}");
                    *last = id;
                }
            }
            // From the one to the other, this group alone.
            let group = round % 2 + 1;
            let is_first = groups_of(&one).contains(&group);
            let (active, other) = if is_first { (&one, &two) } else { (&two, &one) };
            let kept: Vec<u8> = groups_of(active)
                .into_iter()
                .filter(|its| *its != group)
                .collect();
            let refused = other.demote(Some(group.into())).await.unwrap_err();
            assert_eq!(refused.cause(), Cause::CommandRefused, "{refused}");
            active.demote(Some(group.into())).await?;
            assert_eq!(groups_of(active), kept);
            until("the other one", || groups_of(other).contains(&group)).await?;
        }
        let refused = one.demote(Some(3)).await.unwrap_err();
        assert_eq!(refused.cause(), Cause::ArgumentOutOfRange, "{refused}");
        // The clean stop gives all of them.
        one.hand_back().await;
        until("both", || groups_of(&two) == [1, 2]).await?;
        for (name, last) in TAGS.iter().zip(last) {
            let id = next(&[two.source(&segment(name))?]).await?;
            assert!(id > last, "{id} behind {last}");
        }
        Ok(())
    })
}

fn a_program_with_another_number_of_groups_gives_nothing(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_other_groups")?;
    runtime()?.block_on(async {
        // As a store was before there were groups.
        let one = program(&schema, 1)?;
        create(&one).await?;
        stand(&one, "one:1");
        let carts = one.source(&segment("carts"))?;
        let last = next(std::slice::from_ref(&carts)).await?;
        assert_eq!(
            schema.number("SELECT COUNT(*) FROM keywright_order_lease")?,
            1
        );
        let two = program(&schema, 2)?;
        stand(&two, "two:2");
        let others = two.source(&segment("carts"))?;
        let failure = others.take_ordered(1).await.unwrap_err();
        assert_eq!(failure.cause(), Cause::SlotGroupsDiffer, "{failure}");
        assert_eq!(groups_of(&two), [0; 0]);
        // Nor does the store give it anything, and it is told why before it runs.
        let found = two.check(&[tag("carts")]).await;
        assert!(
            found
                .iter()
                .any(|its| its.message.contains("the store has 1 slot group,")),
            "{found:?}"
        );
        for may_change in [false, true] {
            let failure = two
                .record_slot_groups(may_change, TTL_MS)
                .await
                .unwrap_err();
            assert_eq!(failure.cause(), Cause::SlotGroupsDiffer, "{failure}");
        }
        let id = next(std::slice::from_ref(&carts)).await?;
        assert!(id > last, "{id} behind {last}");
        let epoch = "SELECT epoch FROM keywright_order_lease WHERE id = 1";
        let before = schema.number(epoch)?;
        one.hand_back().await;
        assert_eq!(
            two.record_slot_groups(true, TTL_MS).await?,
            SlotGroupsRecorded::Now
        );
        // All leases that there can ever be went on to an epoch that nobody has had: what was granted before is of another.
        assert!(schema.number(epoch)? > before);
        let leases = "SELECT COUNT(*) FROM keywright_order_lease WHERE id > 0 AND epoch > 0";
        assert_eq!(schema.number(leases)?, 16);
        let last = id;
        let id = next(std::slice::from_ref(&others)).await?;
        assert!(id > last, "{id} behind {last}");
        let three = program(&schema, 1)?;
        stand(&three, "three:3");
        let carts = three.source(&segment("carts"))?;
        let failure = carts.take_ordered(1).await.unwrap_err();
        assert_eq!(failure.cause(), Cause::SlotGroupsDiffer, "{failure}");
        // And back, once the one that gives them ends; who stands by goes on by itself then.
        two.hand_back().await;
        three.record_slot_groups(true, TTL_MS).await?;
        let last = id;
        let id = next(std::slice::from_ref(&carts)).await?;
        assert!(id > last, "{id} behind {last}");
        Ok(())
    })
}

/// None takes all groups because it is the first to see that the number has become its own.
fn programs_that_wait_for_the_number_share(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_shared_groups")?;
    runtime()?.block_on(async {
        let one = program(&schema, 2)?;
        one.init().await?;
        let two = program(&schema, 2)?;
        stand(&one, "one:1");
        stand(&two, "two:2");
        // It looks at leases for their time to live, so both have stood longer than that when it changes.
        assert_eq!(
            one.record_slot_groups(false, TTL_MS).await?,
            SlotGroupsRecorded::Now
        );
        until("a group each", || {
            groups_of(&one).len() + groups_of(&two).len() == 2
        })
        .await?;
        assert_eq!(groups_of(&one).len(), 1);
        Ok(())
    })
}
