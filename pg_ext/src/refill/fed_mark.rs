//! What a database keeps of the time of snowflake ids that it is handed: the store's key space, and until when it had which worker id. It tells
//! a store that has gone back, or is another one.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::register::Number;
use pgrx::pg_sys;

use crate::cache::time_entry::TimeEntry;
use crate::durable::flush;
use crate::durable::turn::Urgency;
use crate::failure::Failure;
use crate::identity::{numbers, register};
use crate::refill::fed::LOST_STORE;
use crate::server::role::AsOwner;
use crate::server::sequence;
use crate::settings;
use crate::shmem::fed_time::HandedTime;

/// The sequence that holds the key space.
pub const KEY_SPACE: &str = "snowflake_key_space";
/// The one that holds which worker id was handed over last, and until when.
pub const MARK: &str = "snowflake_handed";

/// How many bits of the mark are the worker id; the others are the moment, in seconds.
const MARK_WORKER_BITS: u32 = 30;

/// What the database keeps of a hand-over; the moment is the second in which it lies.
pub fn mark_of(worker: u32, until_ms: i64) -> i64 {
    (until_ms.max(0) / 1_000) << MARK_WORKER_BITS | i64::from(worker)
}

/// The worker id of a mark, and the moment, unix milliseconds.
pub fn read_mark(mark: i64) -> Option<(u32, i64)> {
    let worker = u32::try_from(mark & ((1 << MARK_WORKER_BITS) - 1)).ok()?;
    let until_ms = (mark >> MARK_WORKER_BITS).checked_mul(1_000)?;
    (until_ms > 0).then_some((worker, until_ms))
}

/// Why time cannot be used. The database may have learnt of it after it was handed over.
pub(super) fn refusal(
    time: &HandedTime,
    noted: Option<u64>,
    known: Option<(u32, i64)>,
) -> Result<Option<Failure>, Failure> {
    if noted.is_some_and(|noted| noted != time.key_space) {
        return Ok(Some(another_key_space()));
    }
    if let Some((worker, until_ms)) = known
        && worker == time.worker
        && time.from_ms < until_ms
    {
        return Ok(Some(gone_back(worker, until_ms)));
    }
    let number = Number::Worker(time.worker);
    Ok(register::read()?.find(number).map(|_| {
        Failure::new(
            Cause::WorkerIdInUse,
            format!(
                "{} was handed over, and a database of this server has it, or had it",
                numbers::name_of(number)
            ),
        )
        .hint("Have other numbers in fed_worker_ids than those that are set by hand or assigned.")
    }))
}

/// The failure of a store that hands over what it handed over before.
pub fn gone_back(worker: u32, until_ms: i64) -> Failure {
    Failure::new(
        Cause::BoundDamaged,
        format!(
            "the store has gone back: worker id {worker} was handed over until {until_ms}, unix milliseconds, and now from an earlier moment"
        ),
    )
    .hint("Is it an old backup? Run keywright store restored where the store is.")
}

/// The failure of a database that was fed from one store and is handed time of another.
pub fn another_key_space() -> Failure {
    Failure::new(
        Cause::HandOverRefused,
        "snowflake ids were handed time of another key space than before",
    )
    .detail("The store is another one, or was made anew; its ids may repeat those that were issued here.")
    .hint(format!(
        "Feed this database from the store of before. If that is lost: {LOST_STORE}."
    ))
}

/// Before the first id is published the database knows for good of which key space it is.
pub(super) fn keep_key_space(
    entry: &TimeEntry,
    sequence: pg_sys::Oid,
    time: &HandedTime,
    urgency: Urgency,
) -> Result<(), Failure> {
    {
        let _owner = AsOwner::new(entry.owner);
        sequence::set(sequence, time.key_space.cast_signed());
    }
    let urgency = match urgency {
        Urgency::Early => Urgency::Needed {
            deadline: Instant::now() + Duration::from_millis(settings::refill_wait_ms_max()),
        },
        Urgency::Needed { deadline } => Urgency::Needed { deadline },
    };
    flush::make_durable(urgency, &|| "the key space of snowflake ids".to_owned())?;
    let fed = &entry.slot().fed;
    fed.key_space.store(time.key_space, Ordering::Relaxed);
    fed.kept_key_space.store(time.key_space, Ordering::Relaxed);
    Ok(())
}
