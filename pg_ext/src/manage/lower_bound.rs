//! keywright.lower_bound: a superuser vouches that no id dated at or after a moment was kept, so that ids which a wrong clock
//! or a wrong `above` sent into the far future come back to now.
//!
//! Everything that says otherwise changes with the transaction: the register, and the sequences, which get new contents as with
//! ALTER SEQUENCE … RESTART. The words in memory are closed as by a drop: they go on where they were if the transaction fails,
//! and begin anew if it commits. Those that are not in force give their places up.

use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use keywright_core::register::{Floor, Held, Number, Register, Use};
use keywright_core::writer::Note;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::{pg_extern, pg_sys};

use crate::cache::{self, time_entry};
use crate::catalog::statements::run;
use crate::catalog::{cached, sequences};
use crate::durable::locks::Wanted;
use crate::failure::{Failure, OrRaise};
use crate::identity::bounds::Sequences;
use crate::identity::{drops, register, uncommitted, writer};
use crate::server::{changes, clock, log, process, role, sequence, timestamp, transaction};
use crate::shmem::key::TimeKind;
use crate::shmem::reuse::Closing;
use crate::shmem::time_slot::TimeSlot;
use crate::shmem::{directory, reuse};
use crate::{guard, settings};

const KINDS: [TimeKind; 2] = [TimeKind::Snowflake, TimeKind::Readable];

/// Names of the bounds in schema keywright, and of the note beside each.
const SEQUENCES: [(&str, &str); 3] = [
    ("snowflake_bound", "snowflake_note"),
    ("snowflake_spare_bound", "snowflake_note"),
    ("readable_bound", "readable_note"),
];

#[pg_extern(sql = false)]
fn keywright_lower_bound(below: Option<TimestampWithTimeZone>) -> TimestampWithTimeZone {
    lower_bound(below).or_raise()
}

fn lower_bound(below: Option<TimestampWithTimeZone>) -> Result<TimestampWithTimeZone, Failure> {
    guard::may_manage("lower_bound")?;
    if !role::is_superuser() {
        return Err(
            Failure::new(Cause::Privilege, "permission denied for lower_bound()")
                .detail("Who lowers a bound vouches that ids which were issued will not meet those to come.")
                .hint("Let a superuser run it."),
        );
    }
    let below = below.ok_or_else(|| {
        Failure::new(Cause::ArgumentNull, "the moment must not be null")
            .hint("Name one such that no id dated at or after it was kept anywhere.")
    })?;
    let below_ms = timestamp::unix_ms(below)?;
    let extension = cached::extension()?;
    guard::require_preload()?;
    register::lock()?;
    uncommitted::note_past();
    let register = register::read()?;
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    // First the locks: who holds one that is waited for here may go on issuing, and end.
    hold(deadline)?;
    close_words(&register, deadline)?;
    // A clock that is behind would bring back ids from before the wrong ones: those are not vouched for.
    let to_ms = below_ms.max(clock::wall_ms());
    let register_ms = lower_register(register, to_ms);
    let sequence_ms = lower_sequences(to_ms)?;
    if register_ms.max(sequence_ms) <= Some(to_ms) {
        return Err(nothing_to_lower(below_ms == to_ms));
    }
    log::tell(&format!(
        "keywright.lower_bound() lowers the bounds of this database to {to_ms} ms since 1970"
    ));
    changes::announce(extension.node_table);
    cache::forget();
    timestamp::of_unix_ms(to_ms)
}

fn nothing_to_lower(is_named: bool) -> Failure {
    Failure::new(
        Cause::ArgumentOutOfRange,
        "no bound of this database lies above that moment",
    )
    .hint(if is_named {
        "Name an earlier moment; ids never start before now."
    } else {
        "Ids never start before now, as this server's clock has it: set the clock right first."
    })
}

/// Closes every word whose ids are vouched for. Each of this database's kinds has one afterwards, so that nobody begins with
/// another meanwhile.
fn close_words(register: &Register, deadline: Instant) -> Result<(), Failure> {
    for kind in KINDS {
        match time_entry::of(kind) {
            Err(failure) if failure.cause() == Cause::IdentityUncommitted => return Err(failure),
            // Without an identity nothing is issued.
            Ok(_) | Err(_) => {}
        }
    }
    let ours = process::database().to_u32();
    let numbers: Vec<Number> = register.held_by(ours).map(|(number, _)| number).collect();
    let transaction = transaction::subtransaction_number();
    // What was handed over to a word that is fed nothing here says.
    let words = directory::slots::<TimeSlot>(|_, key| {
        key.number()
            .is_some_and(|number| key.is_in(ours) || numbers.contains(&number))
    });
    let in_force = KINDS.map(|kind| time_entry::key(kind).ok());
    for (word, key) in words {
        let closing = match in_force.contains(&Some(key)) {
            true => Closing::Change,
            // Of an earlier layout or number: perhaps it never comes again, and what the register knows does not cover it any more.
            false => Closing::Drop,
        };
        let has_place_to_give_up = closing == Closing::Drop && !reuse::is_dropped(word.slot);
        if has_place_to_give_up || !reuse::is_closed(word.slot) {
            drops::close(word, &key, (transaction, closing), deadline)?;
        }
    }
    Ok(())
}

/// Keeps every other session from extending a bound until this transaction ends.
fn hold(deadline: Instant) -> Result<(), Failure> {
    let mut sequences = Vec::new();
    for kind in KINDS {
        sequences.extend(Sequences::of(kind)?.all());
    }
    Wanted::alone(&sequences).lock(deadline, &|| "the bounds of this database".to_owned())
}

/// Lowers what the register knows of this database's numbers, and says which moment was the latest.
fn lower_register(mut register: Register, to_ms: i64) -> Option<i64> {
    let ours = process::database().to_u32();
    let mut highest_ms = None;
    for (number, held) in register.held_by(ours).collect::<Vec<_>>() {
        highest_ms = highest_ms
            .max(held.from_ms)
            .max(held.floor.map(|floor| floor.bound_ms));
        let floor = held.floor.map(|floor| lowered(floor, to_ms));
        let lowered = Held {
            from_ms: held.from_ms.map(|from_ms| from_ms.min(to_ms)),
            // The bound comes down to where the number begins: that it is no higher says nothing any more.
            floor: if held.from_ms >= Some(to_ms) {
                Some(Floor::below_ms(held.layout, to_ms).higher(floor))
            } else {
                floor
            },
            ..held
        };
        register.set(number, ours, Use::Held(lowered));
    }
    if highest_ms > Some(to_ms) {
        register::write(&register);
    }
    highest_ms
}

fn lowered(floor: Floor, to_ms: i64) -> Floor {
    if floor.bound_ms > to_ms {
        Floor::below_ms(floor.layout, to_ms)
    } else {
        floor
    }
}

/// Gives those bounds that lie above the moment, and the notes beside them, new contents, and says which was the latest.
fn lower_sequences(to_ms: i64) -> Result<Option<i64>, Failure> {
    let mut highest_ms = None;
    let note = Note::new(writer::current(), to_ms, 1, 0).pack();
    for (bound, note_name) in SEQUENCES {
        let sequence = sequences::named(bound)?;
        let bound_ms = sequence::last(sequence);
        highest_ms = highest_ms.max(bound_ms);
        if bound_ms > Some(to_ms) {
            restart(bound, sequence, to_ms)?;
            restart(note_name, sequences::named(note_name)?, note)?;
        }
    }
    Ok(highest_ms)
}

/// Sets a sequence so that a rollback undoes it.
pub(super) fn restart(name: &str, sequence: pg_sys::Oid, last: i64) -> Result<(), Failure> {
    run(&format!("ALTER SEQUENCE keywright.{name} RESTART"), &[])?;
    sequence::set(sequence, last);
    Ok(())
}
