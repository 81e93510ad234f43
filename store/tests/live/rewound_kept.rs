//! A file of kept ranges tells whoever has seen nothing that the store is older than what it has given away.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use keywright_core::Cause;
use keywright_store::{Above, Keys, RawStoreSettings};
use keywright_testkit::{Result, scratch_dir};

use crate::common::{Engine, IssuedLog, Schema, open, runtime, segment, small_steps, tag, until};
use crate::rewound::{GOES_ON_MAX, take, take_until_refused};

/// A program that keeps how far tags have come, and uses nothing that was kept.
pub fn start_keeping(raw: &RawStoreSettings) -> Result<Keys> {
    let keys = open(raw)?;
    keys.keep_ranges("configuration", 60_000);
    keys.drop_kept_ranges();
    Ok(keys)
}

/// The same, once the program before has let go of the file: here it does so a moment after its end.
pub async fn start_keeping_behind(raw: &RawStoreSettings) -> Result<Keys> {
    let path = raw.kept_ranges_file.clone().unwrap_or_default();
    until("the file of kept ranges to be free", || {
        File::open(&path).is_ok_and(|file| file.try_lock().is_ok())
    })
    .await;
    start_keeping(raw)
}

/// Who starts on it has seen nothing, but the program before it on this machine has, and was stopped while the store answered.
#[test]
fn a_file_of_kept_ranges_tells_that_a_store_went_back() -> Result<()> {
    for engine in [Engine::MariaDb, Engine::Postgres, Engine::File] {
        let schema = Schema::of(engine, "kw_rewound_kept")?;
        let scratch = scratch_dir()?;
        let raw = RawStoreSettings {
            kept_ranges_file: Some(scratch.path().join("ranges")),
            any_file_system: true,
            ..schema.raw()
        };
        runtime()?.block_on(async {
            let first = start_keeping(&raw)?;
            first.init().await?;
            first.create_tag(&tag("a"), &small_steps(100)).await?;
            let log = IssuedLog::default();
            take(&first.source(&segment("a"))?, &log, "first", 30).await?;
            assert!(first.stop_keeping());
            first.hand_back().await;
            drop(first);
            let bound = schema.number("SELECT hi FROM keywright_segment WHERE tag = 'a'")?;
            schema.sql("UPDATE keywright_segment SET hi = 8 WHERE tag = 'a'")?;
            schema.sql("DELETE FROM keywright_returned")?;

            let next = start_keeping_behind(&raw).await?;
            let source = next.source(&segment("a"))?;
            let failure = take_until_refused(&source, &log, "next").await;
            assert_eq!(failure.cause(), Cause::BoundDamaged, "{failure}");
            let told = failure.to_string();
            assert!(told.contains("the store has gone back"), "{told}");
            let id = bound - 1;
            let advance = Above::Tag { tag: tag("a"), id };
            open(&schema.raw())?.advance(&advance).await?;
            tokio::time::timeout(GOES_ON_MAX, async {
                while take(&source, &log, "next", 1).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            })
            .await?;
            next.hand_back().await;
            drop(next);

            // Made anew it is another tag, of which that says nothing.
            schema.sql("UPDATE keywright_segment SET hi = 8, key_space_id = 'another'")?;
            schema.sql("DELETE FROM keywright_returned")?;
            let anew = start_keeping_behind(&raw).await?;
            anew.source(&segment("a"))?.take(1, true).await?;
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}

/// As after a take-over: who takes the file later has begun while its predecessor had it, and was never given an id of the tag.
#[test]
fn a_file_of_kept_ranges_that_is_taken_later_tells_it_too() -> Result<()> {
    let schema = Schema::of(Engine::File, "kw_rewound_later")?;
    let scratch = scratch_dir()?;
    let path = scratch.path().join("ranges");
    let raw = RawStoreSettings {
        kept_ranges_file: Some(path.clone()),
        any_file_system: true,
        ..schema.raw()
    };
    runtime()?.block_on(async {
        let start = || start_keeping(&raw);
        let first = start()?;
        first.init().await?;
        first.create_tag(&tag("a"), &small_steps(100)).await?;
        let log = IssuedLog::default();
        take(&first.source(&segment("a"))?, &log, "first", 30).await?;
        let second = start()?;
        assert!(first.stop_keeping());
        first.hand_back().await;
        drop(first);
        is_had(&path).await?;
        schema.sql("UPDATE keywright_segment SET hi = 8 WHERE tag = 'a'")?;
        schema.sql("DELETE FROM keywright_returned")?;
        is_refused(&second).await?;
        assert!(second.stop_keeping());
        second.hand_back().await;
        drop(second);
        // Nor has it forgotten what it was told.
        is_refused(&start()?).await
    })
}

/// Waits until a program has the file, and has read it.
async fn is_had(path: &Path) -> Result<()> {
    let is_free = || Ok::<bool, std::io::Error>(File::open(path)?.try_lock().is_ok());
    tokio::time::timeout(GOES_ON_MAX, async {
        while is_free()? {
            tokio::time::sleep(Duration::from_millis(70)).await;
        }
        Ok::<(), std::io::Error>(())
    })
    .await??;
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(())
}

async fn is_refused(keys: &Keys) -> Result<()> {
    let refused = keys.source(&segment("a"))?.take(7, true).await.err();
    let cause = refused.map(|failure| failure.cause());
    assert_eq!(cause, Some(Cause::BoundDamaged));
    Ok(())
}
