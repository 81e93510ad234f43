//! A store that is older than what it has given away: an old backup on the same path, tables restored from a dump. Whoever has seen
//! more takes nothing from it, until somebody says how far ids were given.

use std::collections::BTreeMap;
use std::time::Duration;

use keywright_core::Cause;
use keywright_store::{Above, Failure, Finding, KeySpec, Keys, Severity, Source};
use keywright_testkit::{Flavour, Result, Upstream};

use crate::common::{
    Engine, IssuedLog, Schema, on_engines, open, raw, runtime, segment, small_steps, tag,
};
use crate::put_back::until_known;

on_engines!(
    a_tag_that_went_back_gives_nothing_until_it_is_advanced,
    who_has_seen_less_is_told_by_who_has_seen_more,
    rests_below_an_advance_are_not_used,
    leases_that_went_back_are_not_taken_until_they_are_advanced,
    an_advance_is_for_worker_ids_without_a_row_too,
);

/// How long it may take until a program sees that somebody has said how far ids were given.
pub const GOES_ON_MAX: Duration = Duration::from_secs(30);

/// Takes keys until there are none any more, and says why.
pub async fn take_until_refused(source: &Source, log: &IssuedLog, by: &str) -> Failure {
    loop {
        match source.take(7, true).await {
            Ok(keys) => log.add_all(by, &keys),
            Err(failure) => return failure,
        }
        if source.spec() == &KeySpec::Snowflake {
            // Else there would be millions before the bound is reached.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

pub async fn take(source: &Source, log: &IssuedLog, by: &str, rounds: u64) -> Result<()> {
    for _ in 0..rounds {
        log.add_all(by, &source.take(7, true).await?);
    }
    Ok(())
}

/// The first number in a text.
fn number(text: &str) -> u64 {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    let first = numbers.find(|digits| !digits.is_empty());
    first.and_then(|digits| digits.parse().ok()).unwrap()
}

/// What a test holds of two programs.
struct Two {
    keys: [Keys; 2],
    sources: [Source; 2],
    log: IssuedLog,
}

impl Two {
    async fn open(schema: &Schema, spec: &KeySpec) -> Result<Two> {
        let keys = [open(&schema.raw())?, open(&schema.raw())?];
        keys[0].init().await?;
        if let Some(tag) = spec.tag() {
            keys[0].create_tag(tag, &small_steps(100)).await?;
        }
        let sources = [keys[0].source(spec)?, keys[1].source(spec)?];
        let two = Two {
            keys,
            sources,
            log: IssuedLog::default(),
        };
        two.take(100).await?;
        Ok(two)
    }

    async fn take(&self, rounds: u64) -> Result<()> {
        take(&self.sources[0], &self.log, "one", rounds).await?;
        take(&self.sources[1], &self.log, "other", rounds).await
    }

    /// Both are refused, with what helps: the larger number that they name.
    async fn are_refused(&self, advice: &str) -> u64 {
        let mut largest = 0;
        for (source, by) in self.sources.iter().zip(["one", "other"]) {
            let refused = take_until_refused(source, &self.log, by).await;
            assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
            let hint = refused.hint_text().unwrap_or_default();
            assert!(hint.contains(advice), "{refused}");
            largest = largest.max(number(hint));
        }
        largest
    }
}

fn a_tag_that_went_back_gives_nothing_until_it_is_advanced(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_rewound_tag")?;
    runtime()?.block_on(async {
        let two = Two::open(&schema, &segment("orders")).await?;
        let old = schema.number("SELECT hi FROM keywright_segment")?;
        two.take(1_000).await?;
        schema.sql(&format!("UPDATE keywright_segment SET hi = {old}"))?;
        let id = two.are_refused("keywright advance orders --above ").await;
        assert!(id >= two.log.max());
        let above = |id| Above::Tag {
            tag: tag("orders"),
            id,
        };
        assert_eq!(two.keys[0].advance(&above(id)).await?, id + 1);
        // What was refused is tried again after a pause.
        while two.take(1).await.is_err() {}
        assert!(two.log.max() > id);
        // Never back.
        assert!(two.keys[1].advance(&above(5)).await? > id);
        two.take(100).await
    })
}

/// As if an old backup was put back under programs that run: who has not seen how far the tag had come would repeat ids of the others.
fn who_has_seen_less_is_told_by_who_has_seen_more(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_rewound_less")?;
    runtime()?.block_on(async {
        let two = Two::open(&schema, &segment("orders")).await?;
        let old = schema.number("SELECT hi FROM keywright_segment")?;
        let [more, less] = &two.sources;
        take(more, &two.log, "more", 1_000).await?;
        schema.sql(&format!("UPDATE keywright_segment SET hi = {old}"))?;
        let refused = take_until_refused(more, &two.log, "more").await;
        assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
        let seen = number(refused.hint_text().unwrap_or_default());
        assert!(seen >= two.log.max());
        let newcomer = open(&schema.raw())?;
        let newest = newcomer.source(&segment("orders"))?;
        for source in [less, &newest] {
            let refused = take_until_refused(source, &two.log, "less").await;
            assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
            assert_eq!(number(refused.hint_text().unwrap_or_default()), seen);
        }
        let found = newcomer.check(&[tag("orders")]).await;
        let is_told = |found: &Finding| found.message.contains("the store has gone back");
        assert!(found.iter().any(is_told), "{found:?}");
        // What a program finds in a table is not all that others have.
        let raised = newcomer.raise(&tag("orders"), seen + 1).await;
        let cause = raised.map_err(|failure| failure.cause());
        assert_eq!(cause, Err(Cause::BoundDamaged));
        // Nor is what somebody finds who has not asked all of them.
        let above = Above::Tag {
            tag: tag("orders"),
            id: 5,
        };
        assert_eq!(newcomer.advance(&above).await?, seen + 1);
        while two.take(1).await.is_err() {}
        while take(&newest, &two.log, "newest", 1).await.is_err() {}
        // A restore goes on above it, too.
        schema.sql(&format!("UPDATE keywright_segment SET hi = {old}"))?;
        two.are_refused("keywright advance orders --above ").await;
        let refused = take_until_refused(&newest, &two.log, "newest").await;
        assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
        let last = open(&schema.raw())?;
        let lost = Duration::from_secs(1);
        let restored = last.restored(lost, BTreeMap::new()).await?;
        let [orders] = restored.tags.as_slice() else {
            panic!("{restored:?}");
        };
        assert!(orders.next > two.log.max(), "{orders:?}");
        take(&last.source(&segment("orders"))?, &two.log, "last", 9).await
    })
}

/// Somebody has found an id that may be of anything: whoever knows of it reserves nothing, and the others go on.
#[test]
fn what_a_program_has_not_seen_of_the_store_is_not_told_to_others() -> Result<()> {
    let schema = Schema::of(Engine::MariaDb, "kw_rewound_found")?;
    runtime()?.block_on(async {
        let two = Two::open(&schema, &segment("orders")).await?;
        two.keys[0].note_taken(&tag("orders"), 70_000);
        let refused = take_until_refused(&two.sources[0], &two.log, "one").await;
        assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
        take(&two.sources[1], &two.log, "other", 1_000).await
    })
}

/// Who asks first behind a restart is not who has seen more.
#[test]
fn behind_a_restart_of_the_server_all_look_before_anybody_reserves() -> Result<()> {
    for flavour in [Flavour::MariaDb, Flavour::MySql] {
        let keeps = ["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"];
        let mut server = Upstream::start_with(flavour, &keeps)?;
        server.run("", "CREATE DATABASE keywright")?;
        until_known(|| server.up_s())?;
        let settings = raw(server.port(), "keywright");
        runtime()?.block_on(async {
            let [more, less] = [open(&settings)?, open(&settings)?];
            more.init().await?;
            more.create_tag(&tag("orders"), &small_steps(100)).await?;
            let log = IssuedLog::default();
            let [source, other] = [
                more.source(&segment("orders"))?,
                less.source(&segment("orders"))?,
            ];
            take(&other, &log, "less", 1).await?;
            take(&source, &log, "more", 1_000).await?;
            // As if that was what was put back.
            server.run("keywright", "UPDATE keywright_segment SET hi = 400")?;
            server.kill9()?;
            server.restart()?;
            // Nobody wants anything of the one that has seen more.
            let taking = take_until_refused(&other, &log, "less");
            let refused = tokio::time::timeout(GOES_ON_MAX, taking).await?;
            assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}

fn rests_below_an_advance_are_not_used(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_rewound_rests")?;
    runtime()?.block_on(async {
        let first = open(&schema.raw())?;
        first.init().await?;
        first.create_tag(&tag("orders"), &small_steps(100)).await?;
        let log = IssuedLog::default();
        take(&first.source(&segment("orders"))?, &log, "first", 3).await?;
        first.hand_back().await;
        assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_returned")?, 1);
        let next = open(&schema.raw())?;
        let above = Above::Tag {
            tag: tag("orders"),
            id: 50_000,
        };
        next.advance(&above).await?;
        let keys = next.source(&segment("orders"))?.take(1, true).await?;
        assert_eq!(keys.number(0), Some(50_001));
        Ok(())
    })
}

fn leases_that_went_back_are_not_taken_until_they_are_advanced(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_rewound_lease")?;
    runtime()?.block_on(async {
        let two = Two::open(&schema, &KeySpec::Snowflake).await?;
        let old = schema.sql("SELECT worker_id, hi_ms FROM keywright_worker")?;
        // Until both bounds have been extended.
        let bounds = || schema.sql("SELECT hi_ms FROM keywright_worker ORDER BY worker_id");
        let before = bounds()?;
        while bounds()?.iter().zip(&before).any(|(now, then)| now == then) {
            two.take(1).await?;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let updates = old.iter().map(|row| {
            format!(
                "UPDATE keywright_worker SET hi_ms = {}, expires_at = {} WHERE worker_id = {}",
                row[1],
                schema.long_ago(),
                row[0]
            )
        });
        let updates: Vec<String> = updates.collect();
        schema.sql(&updates.join(";"))?;
        let advice = "keywright advance snowflake --above-ms ";
        two.are_refused(advice).await;
        // Who asks whether the store is ready is told, too.
        let fresh = open(&schema.raw())?;
        let is_told = async || {
            let findings = fresh.check(&[]).await;
            let is_it =
                |of: &Finding| of.severity == Severity::Error && of.message.contains(advice);
            findings.iter().any(is_it)
        };
        assert!(is_told().await);
        // A program that has seen nothing takes a worker id: that mends nothing for those who have.
        let newcomer = fresh.source(&KeySpec::Snowflake)?;
        newcomer.take(1, true).await?;
        let unix_ms = two.are_refused(advice).await.cast_signed();
        let highest = two.log.max();
        fresh.advance(&Above::SnowflakeMoment { unix_ms }).await?;
        while two.take(1).await.is_err() {}
        assert!(two.log.max() > highest);
        assert!(!is_told().await);
        // By an id, too.
        let id = two.log.max().cast_signed() + (60_000 << 22);
        fresh.advance(&Above::Snowflake { id }).await?;
        let last = open(&schema.raw())?;
        let next = last.source(&KeySpec::Snowflake)?.take(1, true).await?;
        assert!(next.number(0).unwrap() > id.cast_unsigned());
        Ok(())
    })
}

/// A backup lacks the rows of programs that came later, or there is none, and the clock of whoever issued was ahead.
fn an_advance_is_for_worker_ids_without_a_row_too(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_rewound_rows")?;
    runtime()?.block_on(async {
        let two = Two::open(&schema, &KeySpec::Snowflake).await?;
        schema.sql("DELETE FROM keywright_worker")?;
        let refused = two.are_refused("keywright advance snowflake --above-ms ");
        let unix_ms = refused.await.cast_signed();
        let fresh = open(&schema.raw())?;
        // What they know to be lost is said, and they go on.
        fresh.advance(&Above::SnowflakeMoment { unix_ms }).await?;
        while two.take(1).await.is_err() {}

        let unix_ms = unix_ms + 60_000;
        fresh.advance(&Above::SnowflakeMoment { unix_ms }).await?;
        fresh.advance(&Above::ReadableMoment { unix_ms }).await?;
        schema.sql("DELETE FROM keywright_worker")?;
        for spec in ["snowflake", "readable:ORD"] {
            let spec = KeySpec::parse(spec, None, None).expect("a spec");
            fresh.source(&spec)?.take(1, true).await?;
        }
        let bounds = schema.sql("SELECT hi_ms FROM keywright_worker")?;
        assert_eq!(bounds.len(), 2);
        for bound in bounds.concat() {
            assert!(bound.parse::<i64>()? > unix_ms, "{bound} {unix_ms}");
        }
        Ok(())
    })
}
