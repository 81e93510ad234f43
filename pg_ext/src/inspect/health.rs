//! keywright.health: what the promise depends on, and whether it is in force.

mod finding;
mod guards;
mod tags;

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use keywright_core::cause::Cause;
use keywright_core::evidence::{Loss, Word};
use keywright_core::layout::TimeLeft;
use keywright_core::policy::ClockPolicy;
use keywright_core::register::Number;
use pgrx::datum::{DatumWithOid, FromDatum, IntoDatum};
use pgrx::iter::TableIterator;
use pgrx::spi::Spi;
use pgrx::{name, pg_extern};

use crate::cache::time_entry;
use crate::catalog::{cached, damage, node, sequences};
use crate::failure::{Failure, OrRaise};
use crate::identity::bounds::{self, Sequences};
use crate::identity::promotion::{self, Kept, Status};
use crate::identity::{numbers, register};
use crate::refill::fed_mark;
use crate::server::{clock, process, sequence, timestamp};
use crate::settings;
use crate::shmem::key::{Source, TimeKey, TimeKind};
use crate::shmem::reuse;
use crate::shmem::slot::Attached;
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::time_slot::TimeSlot;
use crate::shmem::{area, directory};
use finding::{Finding, Severity};

/// One line of the view: its name, and the function that it tells of.
type Check = (&'static str, fn() -> Result<Finding, Failure>);

const CHECKS: [Check; 16] = [
    ("preloaded", preloaded),
    ("fsync", fsync),
    ("replication", replication),
    ("promotion", promotion),
    ("worker id", worker),
    ("readable bucket", bucket),
    ("guards", guards::guards),
    ("tags", tags::tags),
    ("feeding", tags::feeding),
    ("source", tags::source),
    ("hide keys", tags::hide_keys),
    ("layout", layout_time),
    ("lead over the clock", || Ok(lead(TimeKind::Snowflake))),
    ("lead of readable ids", || Ok(lead(TimeKind::Readable))),
    ("clock", clock_followed),
    ("shared memory", room),
];

type Checks = TableIterator<
    'static,
    (
        name!(name, String),
        name!(ok, bool),
        name!(severity, String),
        name!(detail, String),
        name!(hint, Option<String>),
    ),
>;

#[pg_extern(sql = false)]
fn keywright_health_checks() -> Checks {
    let rows = CHECKS.into_iter().map(|(name, check)| {
        let finding = check().or_else(damage).or_raise();
        let severity = finding.severity;
        let has_hint = severity != Severity::Ok && !finding.hint.is_empty();
        (
            name.to_owned(),
            severity.is_fine(),
            severity.name().to_owned(),
            finding.detail,
            has_hint.then(|| finding.hint.into_owned()),
        )
    });
    TableIterator::new(rows.collect::<Vec<_>>())
}

/// Tables that do not hold what they must are a finding, and no reason to say nothing of the rest.
fn damage(failure: Failure) -> Result<Finding, Failure> {
    if failure.cause() != Cause::BoundDamaged {
        return Err(failure);
    }
    Ok(Finding {
        severity: Severity::Error,
        detail: failure.message().to_owned(),
        hint: failure.advice().to_owned().into(),
    })
}

fn preloaded() -> Result<Finding, Failure> {
    Ok(Finding {
        severity: Severity::Error.unless(area::is_there()),
        detail: "ids are issued from shared memory that is set up at server start".to_owned(),
        hint: "Add keywright to shared_preload_libraries and restart the server.".into(),
    })
}

fn fsync() -> Result<Finding, Failure> {
    Ok(Finding {
        severity: Severity::Error.unless(process::fsync_is_on()),
        detail: format!(
            "fsync is {}",
            if process::fsync_is_on() { "on" } else { "off" }
        ),
        hint: "With fsync off a power loss can bring issued ids back; set fsync = on.".into(),
    })
}

/// One value. `Spi::get_one` would take a transaction id first, which a standby has none of and looking need not cost.
fn one_value<T: FromDatum + IntoDatum>(
    query: &str,
    arguments: &[DatumWithOid],
) -> Result<Option<T>, Failure> {
    Spi::connect(|client| client.select(query, Some(1), arguments)?.first().get_one())
        .map_err(|error| damage::damaged(&error.to_string()))
}

fn setting(name: &str) -> Result<String, Failure> {
    let value = one_value("SELECT pg_catalog.current_setting($1)", &[name.into()])?;
    Ok(value.unwrap_or_default())
}

fn replication() -> Result<Finding, Failure> {
    let standbys = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication";
    let standbys = one_value::<i64>(standbys, &[])?.unwrap_or(0);
    let names = setting("synchronous_standby_names")?;
    let synchronous = !names.is_empty();
    Ok(Finding {
        severity: Severity::Info.unless(synchronous || standbys == 0),
        detail: if synchronous {
            format!("bounds wait for synchronous_standby_names = '{names}'")
        } else if standbys == 0 {
            "no standby is connected".to_owned()
        } else {
            format!("{standbys} standby(s) replicate asynchronously")
        },
        hint: "A promoted asynchronous standby leaves out ids by estimate; only synchronous_standby_names makes the promise \
               unconditional.".into(),
    })
}

fn promotion() -> Result<Finding, Failure> {
    let (severity, detail) = match promotion::status()? {
        Status::None => (
            Severity::Ok,
            "what is kept here was written by this server, on its present timeline".to_owned(),
        ),
        Status::Unnoticed { is_reset: true } => return Ok(reset(Severity::Warning, WAL_RESET)),
        Status::Unnoticed { is_reset: false } => (
            Severity::Warning,
            "this server was promoted, or is a copy; nothing was issued here since".to_owned(),
        ),
        Status::Noticed(kept, left_out) => {
            let at = timestamp::of_unix_ms(kept.promotion.noticed_ms())?.to_string();
            if kept.promotion.is_reset {
                let severity = Severity::Warning.unless(kept.promotion.is_acknowledged);
                return Ok(reset(severity, &format!("{WAL_RESET}, as noticed at {at}")));
            }
            let by = match kept.promotion.word {
                Word::Estimate => "by estimate",
                Word::Owner => "by the owner's word",
            };
            (
                Severity::Warning.unless(kept.promotion.is_acknowledged),
                format!(
                    "this server was promoted, or is a copy, as noticed at {at}; tags left out {left_out} ids since, {by}: {}",
                    lasted(&kept)
                ),
            )
        }
    };
    Ok(Finding {
        severity,
        detail,
        hint: "If you know for how long the lost primary went on alone, run SELECT keywright.promoted(lost => interval '3 s'); \
               if the estimate will do, run SELECT keywright.acknowledge_promotion().".into(),
    })
}

/// What is known where this server's log was reset. A file that is damaged says the same.
const WAL_RESET: &str =
    "the WAL of this server was reset (pg_resetwal), or nothing says that it was not";

fn reset(severity: Severity, what: &str) -> Finding {
    Finding {
        severity,
        detail: format!("{what}: bounds and other changes that stood only there may be lost"),
        hint: "Advance the tags that row tags names. Look whether worker id, bucket, layout, increments and moves of tags are those that \
               were set last. Then run SELECT keywright.acknowledge_promotion()."
            .into(),
    }
}

fn lasted(kept: &Kept) -> String {
    if kept.loss.ms == Loss::MS_MAX {
        "the original went on after each note by itself".to_owned()
    } else {
        format!("the original went on for {} ms at most", kept.loss.ms)
    }
}

fn worker() -> Result<Finding, Failure> {
    let extension = cached::extension()?;
    let node = node::read(&extension)?;
    let layout = node.layout;
    if node.source == Source::Fed {
        let worker = slot_of(TimeKind::Snowflake).and_then(|(_, key)| key.fed_worker());
        return Ok(Finding {
            severity: Severity::Ok,
            detail: match worker {
                Some(worker) => format!("worker id {worker} was handed over, with its time"),
                None => "the worker id is handed over when ids are needed".to_owned(),
            },
            hint: "".into(),
        });
    }
    let worker = numbers::worker(&layout)
        .and_then(|worker| may_issue(Number::Worker(worker.get())).map(|()| worker));
    let advice = own_advice(worker.as_ref().err());
    let is_unset = matches!(&worker, Err(failure) if failure.cause() == Cause::WorkerIdUnset);
    // A database of tags alone needs none, and an alert would stay for good.
    let is_unneeded = is_unset && !may_have_issued_snowflakes()?;
    Ok(Finding {
        severity: match &worker {
            Ok(_) => Severity::Ok,
            Err(_) if is_unneeded => Severity::Info,
            Err(_) if is_unset => Severity::Warning,
            Err(_) => Severity::Error,
        },
        detail: match worker {
            Ok(worker) => format!(
                "worker id {} of 0 to {}",
                worker.get(),
                layout.worker_id_max()
            ),
            Err(failure) if is_unneeded => format!(
                "{}, and nothing says that it ever had one or issued snowflake ids",
                failure.message()
            ),
            Err(failure) => failure.message().to_owned(),
        },
        hint: advice.unwrap_or_else(|| {
            "Before snowflake ids are issued, run SELECT keywright.set_worker_id(n) with an id that no other database has, here or \
             elsewhere; where a store assigns them, keywright worker assign.".into()
        }),
    })
}

/// Whether a bound or a note tells of snowflake ids, or the mark of a hand-over: also those of the original of a copy or a dump.
fn may_have_issued_snowflakes() -> Result<bool, Failure> {
    let key_space = sequences::named(fed_mark::KEY_SPACE)?;
    Ok(bounds::is_noted(TimeKind::Snowflake)? || sequence::last(key_space).is_some())
}

/// What the failure itself says to do: where another number would mend nothing, or where it says which one.
fn own_advice(failure: Option<&Failure>) -> Option<Cow<'static, str>> {
    let of_its_own =
        failure.filter(|of| matches!(of.cause(), Cause::BoundDamaged | Cause::Suspended))?;
    Some(of_its_own.advice().to_owned().into())
}

/// Whether what the first id of a number looks at is there.
fn may_issue(number: Number) -> Result<(), Failure> {
    Sequences::of(TimeKind::of(number))?;
    register::held_here(number).map(drop)
}

fn bucket() -> Result<Finding, Failure> {
    let node = node::read(&cached::extension()?)?;
    let zone = node.zone;
    let bucket = numbers::bucket(node.bucket)
        .and_then(|bucket| may_issue(Number::Bucket(bucket)).map(|()| bucket));
    // A copy may never issue a readable id.
    let is_chosen_earlier = bucket.is_err() && numbers::is_chosen_earlier(node.bucket)?;
    let advice = own_advice(bucket.as_ref().err());
    Ok(Finding {
        severity: match &bucket {
            Ok(_) => Severity::Ok,
            // Few databases have a use for readable ids.
            Err(failure) if failure.cause() == Cause::WorkerIdUnset => Severity::Info,
            Err(_) if is_chosen_earlier => Severity::Warning,
            Err(_) => Severity::Error,
        },
        detail: match bucket {
            Ok(bucket) => format!("bucket {bucket} of 0 to {}, time zone {zone}", u8::MAX),
            Err(failure) if is_chosen_earlier => format!(
                "{}: readable ids are refused, and nothing else",
                failure.message()
            ),
            Err(failure) => failure.message().to_owned(),
        },
        hint: advice.unwrap_or_else(|| {
            "Run SELECT keywright.set_readable_bucket(n) with one that no other database has, here or elsewhere, before \
             readable ids are issued.".into()
        }),
    })
}

fn layout_time() -> Result<Finding, Failure> {
    let layout = cached::layout()?;
    if settings::clock_policy() == ClockPolicy::SpareWorker && !layout.has_spare() {
        return Ok(Finding {
            severity: Severity::Error,
            detail: format!(
                "keywright.clock_policy is spare_worker, and layout \"{layout}\" has no spare bit: no snowflake ids are issued"
            ),
            hint: "Choose another keywright.clock_policy, or a layout with spare=1 through SELECT keywright.set_layout(...).".into(),
        });
    }
    let left = layout.check_time_left(clock::wall_ms());
    Ok(Finding {
        severity: match left {
            Ok(TimeLeft::Ample) => Severity::Ok,
            Ok(TimeLeft::WithinAYear { .. }) => Severity::Warning,
            Err(_) => Severity::Error,
        },
        detail: match left {
            Ok(TimeLeft::Ample) => format!("layout \"{layout}\" has more than a year left"),
            Ok(TimeLeft::WithinAYear { .. }) => {
                format!("layout \"{layout}\" runs out within a year")
            }
            Err(error) => format!("layout \"{layout}\": {error}"),
        },
        hint: "Choose a layout with SELECT keywright.set_layout(...), or a later epoch.".into(),
    })
}

/// The word of one kind, where it was used since the server started.
fn slot_of(kind: TimeKind) -> Option<(Attached<TimeSlot>, TimeKey)> {
    let key = time_entry::key(kind).ok()?;
    let key = time_entry::in_memory(&key).unwrap_or(key);
    Some((directory::find::<TimeSlot>(&key)?, key))
}

fn lead(kind: TimeKind) -> Finding {
    let found = slot_of(kind);
    let found = found.map(|(word, key)| (word, key.layout));
    let lead_ms = found.map_or(0, |(word, layout)| {
        let slot = word.slot;
        let next = slot.main.word.next() >> layout.sequence_bits();
        if slot.taken_over.load(Ordering::Relaxed) {
            layout.unix_ms_of(next) - clock::wall_ms()
        } else {
            0
        }
    });
    let what = match kind {
        TimeKind::Snowflake => "snowflake id",
        TimeKind::Readable => "readable id",
    };
    Finding {
        severity: Severity::Warning.unless(lead_ms <= settings::lead_ms_max().cast_signed()),
        detail: format!("the next {what} lies {} ms ahead of the clock", lead_ms.max(0)),
        hint: "Times in ids are ahead by this much, and the clock comes to them by itself. Ids begin ahead after set_worker_id, a \
               promotion or a restore; else the clock stepped back, or a burst ran ahead. If a wrong time led so far, a superuser can \
               run SELECT keywright.lower_bound(below)."
            .into(),
    }
}

fn clock_followed() -> Result<Finding, Failure> {
    let skew_ms = [TimeKind::Snowflake, TimeKind::Readable]
        .map(|kind| slot_of(kind).map_or(0, |(word, _)| word.slot.skew_ms.load(Ordering::Relaxed)));
    let skew_ms = skew_ms.into_iter().max().unwrap_or(0);
    Ok(Finding {
        severity: Severity::Warning.unless(skew_ms == 0),
        detail: if skew_ms == 0 {
            "ids follow the clock".to_owned()
        } else {
            format!("the clock jumped; ids are dated {skew_ms} ms before what it reads")
        },
        hint: "Set the clock right. If it is right, and nothing was issued for so long before the start, raise \
               keywright.start_jump_days_max; after a jump while the server ran, restart it.".into(),
    })
}

fn room() -> Result<Finding, Failure> {
    let tags = directory::slots::<TagSlot>(|slot, _| !reuse::is_only_left(slot)).len();
    let words = directory::used::<TimeSlot>();
    let (tags_max, words_max) = (settings::tags_max(), settings::workers_max());
    Ok(Finding {
        severity: Severity::Warning
            .unless(tags * 10 <= tags_max * 9 && words * 10 <= words_max * 9),
        detail: format!("{tags} of {tags_max} tags and {words} of {words_max} worker ids and readable buckets are in use"),
        hint: "Raise keywright.tags_max or keywright.workers_max and restart the server before they run out.".into(),
    })
}
