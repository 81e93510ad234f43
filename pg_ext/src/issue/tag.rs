//! next_biz_id: ids of a tag from its segment in shared memory.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::cache::{self, tag_entry};
use crate::durable::turn::Urgency;
use crate::failure::Failure;
use crate::refill::{fed, segment};
use crate::server::process;
use crate::shmem::key::Source;
use crate::{guard, settings};

/// Takes `n` consecutive ids of the tag named `text` and returns the first.
///
/// # Errors
/// Any of the causes a tag can fail with; no id is lost to the caller's later rollback, only left out.
#[inline(always)]
pub fn take(text: &[u8], n: u64) -> Result<u64, Failure> {
    if let Some(at) = tag_entry::hot(text)
        && !process::is_read_only()
        && let Ok(first) = at.slot.word.take(n)
        // Taken from a word that was passed on meanwhile, they are another's; left out.
        && at.is_current()
    {
        if first + n <= at.slot.refill_at.load(Ordering::Relaxed) {
            return Ok(first);
        }
        refill_early(text)?;
        return Ok(first);
    }
    take_slowly(text, n)
}

#[cold]
fn take_slowly(text: &[u8], n: u64) -> Result<u64, Failure> {
    guard::require_preload()?;
    guard::require_writable("next_biz_id")?;
    let mut entry = tag_entry::of(text)?;
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    loop {
        let taken = entry.slot().word.take(n);
        if !entry.at.is_current() {
            cache::forget();
            entry = tag_entry::of(text)?;
            continue;
        }
        if let Ok(first) = taken {
            return Ok(first);
        }
        match entry.key.source() {
            Source::Native => segment::refill(&entry, n, Urgency::Needed { deadline })?,
            Source::Fed => fed::refill(&entry, n, deadline)?,
        }
        // What the refill waited for may have been a change of this very tag.
        entry = tag_entry::of(text)?;
    }
}

/// The caller's id crossed the threshold: make the next segment durable before anybody has to wait for it.
#[cold]
fn refill_early(text: &[u8]) -> Result<(), Failure> {
    if process::is_parallel() {
        return Ok(());
    }
    let entry = tag_entry::of(text)?;
    match entry.key.source() {
        Source::Native => segment::refill(&entry, 1, Urgency::Early),
        // The next range was asked for when this one was taken into use.
        Source::Fed => Ok(()),
    }
}
