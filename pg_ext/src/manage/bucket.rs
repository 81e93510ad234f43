//! The bucket of this database's readable ids: one of 256, which no other database may have. It comes with the worker id, unless
//! one was chosen, here or in the database that this one is a copy of: then only a choice gives another one.

use keywright_core::cause::Cause;
use keywright_core::readable;
use keywright_core::register::{Floor, Number, Register, Use};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{PgLogLevel, pg_extern};

use crate::cache;
use crate::catalog::{cached, node, tables};
use crate::failure::{Failure, OrRaise};
use crate::guard;
use crate::identity::claims::{self, Vouched};
use crate::identity::label::{Assignment, Bucket, IdentityLabel};
use crate::identity::overlap::{self, Comes};
use crate::identity::{bounds, numbers, register, uncommitted};
use crate::server::security_label::{self, Labelled};
use crate::server::{changes, process};
use crate::shmem::key::TimeKind;

const BUCKET_HINT: &str =
    "Give one from 0 to 255 that no other database has, on this server or any other.";

const CHOOSE_HINT: &str =
    "Before it issues readable ids choose one with SELECT keywright.set_readable_bucket(n).";

#[pg_extern(sql = false)]
fn keywright_set_readable_bucket(
    bucket: Option<i32>,
    above: Option<TimestampWithTimeZone>,
    unused: Option<bool>,
    force: Option<bool>,
) {
    let set = || {
        let (is_unused, is_forced) = (unused.unwrap_or(false), force.unwrap_or(false));
        set_readable_bucket(bucket, &Vouched::new(above, is_unused, is_forced)?)
    };
    set().or_raise();
}

fn set_readable_bucket(bucket: Option<i32>, vouched: &Vouched) -> Result<(), Failure> {
    guard::may_manage("set_readable_bucket")?;
    let extension = cached::extension()?;
    let bucket = bucket.ok_or_else(|| {
        Failure::new(Cause::ArgumentNull, "the readable bucket must not be null").hint(BUCKET_HINT)
    })?;
    let bucket = u8::try_from(bucket).map_err(|_| {
        Failure::new(
            Cause::ArgumentOutOfRange,
            format!(
                "a readable bucket is a number from 0 to {}, not {bucket}",
                readable::BUCKETS - 1
            ),
        )
        .hint(BUCKET_HINT)
    })?;
    require_before_end(vouched)?;
    let number = Number::Bucket(bucket);
    // Comes before the register.
    tables::lock(extension.node_table)?;
    register::lock()?;
    uncommitted::has_past()?;
    let mut register = register::read()?;
    let claim = register::claim(&register, number, vouched.above_ms.is_some())?;
    let label = numbers::label()?.filter(IdentityLabel::is_of_here);
    if is_had(&register, label, bucket)? {
        claims::tell_if_unused(number, vouched);
        if let Some(above_ms) = vouched.above_ms {
            bounds::raise(number, above_ms)?;
        }
    } else {
        let used = claims::used(number, &claim)?;
        move_to(&mut register, number, used, vouched)?;
    }
    // In the row of the layout, which goes into dumps and copies. The label does not, mostly.
    if node::read(&extension)?.bucket != Some(bucket) {
        node::set_bucket(bucket)?;
    }
    let worker = label.and_then(|label| label.worker);
    let assignment = label.map_or_else(Assignment::default, |label| label.assignment);
    let new_label = IdentityLabel::here(worker, Some(Bucket::Chosen(bucket)), assignment);
    if label != Some(new_label) {
        security_label::set(Labelled::Database, &new_label.to_string());
    }
    register::write(&register);
    changes::announce(extension.node_table);
    cache::forget();
    Ok(())
}

fn require_before_end(vouched: &Vouched) -> Result<(), Failure> {
    let zone = cached::zone()?;
    vouched.require_before(
        readable::end_ms(zone),
        &format!("the readable ids of time zone {zone}"),
    )
}

/// Whether the database has the bucket already.
fn is_had(register: &Register, label: Option<IdentityLabel>, bucket: u8) -> Result<bool, Failure> {
    let is_ours = label.is_some_and(|label| label.bucket_number() == Some(bucket));
    Ok(is_ours && register::has(register, Number::Bucket(bucket))?)
}

/// The label without a bucket that is another database's: one that was chosen belongs to the original of a database which a store found to be a
/// copy.
pub fn without_originals(label: IdentityLabel) -> IdentityLabel {
    let is_originals =
        label.assignment.is_suspended && matches!(label.bucket, Some(Bucket::Chosen(_)));
    IdentityLabel {
        bucket: label.bucket.filter(|_| !is_originals),
        ..label
    }
}

/// The bucket that was chosen, here or in the database that this one is a copy of. Where only the label says it, the row of keywright.node gets it: the label
/// is about to be replaced, by one that may not say it.
///
/// # Errors
/// The row cannot be written.
pub fn keep_chosen() -> Result<Option<u8>, Failure> {
    if let Some(noted) = node::read(&cached::extension()?)?.bucket {
        return Ok(Some(noted));
    }
    let Some(Bucket::Chosen(bucket)) = numbers::label()?.and_then(|label| label.bucket) else {
        return Ok(None);
    };
    node::set_bucket(bucket)?;
    Ok(Some(bucket))
}

/// Gives up the bucket that the database had and takes another.
fn move_to(
    register: &mut Register,
    number: Number,
    used: Option<Floor>,
    vouched: &Vouched,
) -> Result<(), Failure> {
    claims::give_up_others(register, TimeKind::Readable, Some(number))?;
    let layout = cached::zone()?.layout();
    let held = claims::take(number, layout, used, vouched)?;
    register.set(number, process::database().to_u32(), Use::Held(held));
    Ok(())
}

/// The bucket of a database that gets a worker id: the one that was chosen, or the one that the worker id names. Where that is
/// another's the database has none. Nor has it one where another was chosen that is not, or not certainly, its own any more.
///
/// # Errors
/// The row of keywright.node cannot be written. Another session holds a gate or the sequences for too long; a synchronous standby does not confirm in time.
pub fn follow_worker(
    register: &mut Register,
    label: Option<IdentityLabel>,
    worker: u32,
    vouched: &Vouched,
) -> Result<Option<Bucket>, Failure> {
    let earlier = keep_chosen()?;
    if let Some(chosen @ Bucket::Chosen(_)) = label.and_then(|label| label.bucket) {
        return Ok(Some(chosen));
    }
    if let Some(earlier) = earlier {
        claims::give_up_others(register, TimeKind::Readable, None)?;
        let failure = numbers::chosen_earlier(earlier);
        let advice = failure.advice().to_owned();
        tell_of(&failure, advice);
        return Ok(None);
    }
    let Ok(bucket) = u8::try_from(worker) else {
        claims::give_up_others(register, TimeKind::Readable, None)?;
        return Ok(None);
    };
    require_before_end(vouched)?;
    let number = Number::Bucket(bucket);
    if is_had(register, label, bucket)? {
        if let Some(above_ms) = vouched.above_ms {
            bounds::raise(number, above_ms)?;
        }
        return Ok(Some(Bucket::OfWorker));
    }
    let claim = match register::claim(register, number, vouched.above_ms.is_some()) {
        Ok(claim) => claim,
        Err(taken) if taken.cause() == Cause::WorkerIdInUse => {
            claims::give_up_others(register, TimeKind::Readable, None)?;
            tell_of(&taken, CHOOSE_HINT);
            return Ok(None);
        }
        Err(failure) => return Err(failure),
    };
    let used = claims::used(number, &claim)?;
    let name = numbers::name_of(number);
    if let Err(taken) =
        overlap::refuse_if_written(Comes::Bucket(&name), used, &cached::zone()?.layout())
    {
        claims::give_up_others(register, TimeKind::Readable, None)?;
        tell_of(&taken, CHOOSE_HINT);
        return Ok(None);
    }
    let vouched = Vouched {
        // That the worker id was not used says nothing of a bucket that somebody chose.
        is_unused: vouched.is_unused && used.is_none(),
        ..*vouched
    };
    move_to(register, number, used, &vouched)?;
    tell_that_it_comes(&name, worker);
    Ok(Some(Bucket::OfWorker))
}

/// A dump in part brings no word of a bucket that was chosen: only who restores it can know.
fn tell_that_it_comes(name: &str, worker: u32) {
    Failure::new(
        Cause::WorkerIdInUse,
        format!("{name} comes with worker id {worker}"),
    )
    .hint(
        "If another database has chosen that bucket, or this one's data is from a database that chose one, choose another with \
         SELECT keywright.set_readable_bucket(n) before it issues readable ids.",
    )
    .report(PgLogLevel::NOTICE);
}

fn tell_of(taken: &Failure, hint: impl Into<String>) {
    Failure::new(
        taken.cause(),
        format!("this database has no readable bucket: {}", taken.message()),
    )
    .hint(hint)
    .report(PgLogLevel::NOTICE);
}
