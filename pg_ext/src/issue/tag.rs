//! next_biz_id: ids of a tag from its segment in shared memory.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::segment::{Exhausted, SegmentWord};

use crate::cache::tag_entry::{Ids, TagEntry};
use crate::cache::{self, tag_entry};
use crate::catalog::damage;
use crate::durable::turn::Urgency;
use crate::failure::Failure;
use crate::refill::{fed, segment};
use crate::server::{changes, process};
use crate::shmem::key::Source;
use crate::shmem::reuse;
use crate::shmem::slot::Slot;
use crate::{guard, settings};

/// Numbers that were taken: `first` and the following that are ids.
#[derive(Clone, Copy)]
pub struct Taken {
    first: u64,
    ids: Ids,
}

impl Taken {
    /// The id that is the first, or `offset` after it.
    ///
    /// # Errors
    /// The tag hides its volume, and the number has no id of its bits.
    #[inline(always)]
    pub fn id(&self, offset: u64) -> Result<i64, Failure> {
        match self.ids {
            Ids::Plain => Ok((self.first + offset).cast_signed()),
            Ids::Of(class) => Ok((self.first + class.width_of(offset)).cast_signed()),
            Ids::Hidden(hiding) => match hiding.hide(self.first + offset) {
                Some(id) => Ok(id.cast_signed()),
                None => Err(damage::damaged(
                    "a number came that its hidden ids have no bits for",
                )),
            },
        }
    }
}

/// Takes `n` consecutive numbers of the tag named `text`.
///
/// # Errors
/// Any of the causes a tag can fail with; no id is lost to the caller's later rollback, only left out.
#[inline(always)]
pub fn take(text: &[u8], n: u64) -> Result<Taken, Failure> {
    if let Some((at, ids)) = tag_entry::hot(text)
        && !process::is_read_only()
        // What became of whoever closed it is looked at where there is time for it.
        && at.slot.closed_by().load(Ordering::Relaxed) == 0
        && let Ok(first) = take_from(&at.slot.word, n, ids)
        // Taken from a word that was passed on meanwhile, they are another's; left out.
        && at.is_current()
    {
        // Of a class a little late, by the numbers between its ids.
        if first + n > at.slot.refill_at.load(Ordering::Relaxed) {
            refill_early(text)?;
        }
        return Ok(Taken { first, ids });
    }
    take_slowly(text, n)
}

#[inline(always)]
fn take_from(word: &SegmentWord, n: u64, ids: Ids) -> Result<u64, Exhausted> {
    match ids {
        Ids::Plain | Ids::Hidden(_) => word.take(n),
        Ids::Of(class) => word.take_of(n, &class),
    }
}

#[cold]
fn take_slowly(text: &[u8], n: u64) -> Result<Taken, Failure> {
    guard::require_preload()?;
    guard::require_writable("next_biz_id")?;
    let mut entry = current(text)?;
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    let mut has_refilled = false;
    loop {
        let ids = entry.ids();
        let taken = take_from(&entry.slot().word, n, ids);
        if !entry.at.is_current() {
            cache::forget();
            entry = current(text)?;
            continue;
        }
        if let Ok(first) = taken {
            reuse::reopen_tag(entry.slot());
            // Whoever has just waited for one reservation leaves the next to the caller after him.
            if !has_refilled && first + n > entry.slot().refill_at.load(Ordering::Relaxed) {
                refill_early(text)?;
            }
            return Ok(Taken { first, ids });
        }
        has_refilled = true;
        match entry.key.source() {
            Source::Native => segment::refill(&entry, n, Urgency::Needed { deadline })?,
            Source::Fed => fed::refill(&entry, n, deadline)?,
        }
        // What the refill waited for may have been a change of this very tag.
        entry = current(text)?;
    }
}

/// The tag's entry, looked up anew where the tag was changed or dropped since, or may have been: within a transaction the server need not have said so.
fn current(text: &[u8]) -> Result<TagEntry, Failure> {
    let entry = tag_entry::of(text)?;
    if !reuse::is_closed(entry.slot()) && !reuse::is_forgotten(entry.slot()) {
        return Ok(entry);
    }
    changes::hear();
    cache::forget();
    tag_entry::of(text)
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
