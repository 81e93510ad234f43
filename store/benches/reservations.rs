//! How many reservations a store carries: `reservations URL PROGRAMS MS` prints how many there were in so many milliseconds. `cargo xtask bench store`
//! runs it beside each kind of store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use keywright_core::{Cause, Step, Tag};
use keywright_store::{
    KeySpec, Keys, RawSnowflakeSettings, RawStoreSettings, StoreSettings, TagOptions,
};

/// How long a reservation may take, milliseconds.
const WAIT_MS_MAX: u64 = 30_000;

fn main() -> Result<()> {
    // Cargo adds an option of its own.
    let arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let arguments: Vec<String> = arguments.collect();
    let [url, programs, ms] = arguments.as_slice() else {
        bail!("usage: reservations URL PROGRAMS MS");
    };
    let (programs, ms) = (programs.parse()?, ms.parse()?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    println!("{}", runtime.block_on(reservations(url, programs, ms))?);
    Ok(())
}

/// Each program reserves one key after the other.
async fn reservations(url: &str, programs: usize, ms: u64) -> Result<u64> {
    let raw = RawStoreSettings {
        url: url.to_owned(),
        // Only a file has a file system that may be a doubtful one.
        any_file_system: url.starts_with("file:"),
        store_ms_max: WAIT_MS_MAX,
        wait_ms_max: WAIT_MS_MAX,
        ..RawStoreSettings::default()
    };
    let settings = StoreSettings::new(&raw, &RawSnowflakeSettings::default())?;
    let all = (0..programs).map(|_| Keys::open(settings.clone()));
    let all: Vec<Keys> = all.collect::<Result<_, _>>()?;
    let first = all.first().context("no program")?;
    first.init().await?;
    let (tag, step) = (Tag::parse("bench")?, Step::new(1)?);
    let options = TagOptions {
        step_max: step,
        ..TagOptions::with_step(step)
    };
    match first.create_tag(&tag, &options).await {
        Err(failure) if failure.cause() != Cause::TagExists => return Err(failure.into()),
        Ok(()) | Err(_) => {}
    }
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::with_capacity(all.len());
    for keys in &all {
        let source = keys.source(&KeySpec::Segment(tag.clone()))?;
        source.take(1, true).await?;
        let over = Arc::clone(&over);
        tasks.push(tokio::spawn(async move {
            let mut taken = 0_u64;
            while !over.load(Ordering::Relaxed) {
                source.take(1, true).await?;
                taken += 1;
            }
            anyhow::Ok(taken)
        }));
    }
    tokio::time::sleep(Duration::from_millis(ms)).await;
    over.store(true, Ordering::Relaxed);
    let mut taken = 0;
    for task in tasks {
        taken += task.await??;
    }
    Ok(taken)
}
