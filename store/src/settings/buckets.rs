//! Which buckets of readable ids each of several stores leases.

use keywright_core::readable::BUCKETS;

use super::problems::Problems;
use super::{RawSnowflakeSettings, RawStoreSettings, redis};
use crate::worker_ids::IdRange;

const SETTING: &str = "store.readable_buckets";

/// The range. One that is none is told among the problems.
pub(super) fn settings(store: &RawStoreSettings, problems: &mut Problems) -> Option<IdRange> {
    let text = store.readable_buckets.as_deref()?;
    let range = IdRange::parse(text).map_err(|_| {
        problems.add(
            SETTING,
            format!("\"{text}\" is no range of buckets, such as 0-127"),
        );
    });
    let range = range.ok()?;
    if range.last >= BUCKETS {
        problems.add(
            SETTING,
            format!("ends above {}, the largest bucket", BUCKETS - 1),
        );
    }
    if redis::is_one(&store.url) {
        problems.add(SETTING, "redis:// leases none: it gives ranges of tags");
    }
    if store.name.is_empty() {
        problems.add(
            SETTING,
            "is for one of several stores: the only one leases all buckets",
        );
    }
    Some(range)
}

/// What a store that has tags needs of the settings of snowflake keys to lease buckets: not its worker ids.
pub(super) fn snowflake(its: &RawSnowflakeSettings) -> RawSnowflakeSettings {
    RawSnowflakeSettings {
        worker_id: None,
        worker_id_env: None,
        worker_id_from_host: false,
        worker_id_table: None,
        leased_worker_ids: None,
        fed_worker_ids: None,
        assigned_worker_ids: None,
        ..its.clone()
    }
}

/// That no two stores, each with its name, have a bucket in common, and none but the store without tags, `main`, one that databases are assigned.
pub(super) fn check(
    ranges: &[(&str, IdRange)],
    (main, assigned): (&str, Option<IdRange>),
    problems: &mut Problems,
) {
    for (place, (name, range)) in ranges.iter().enumerate() {
        let setting = format!("store \"{name}\": readable_buckets");
        for (other, its) in ranges.iter().take(place) {
            if range.meets(its) {
                problems.add(
                    &setting,
                    format!(
                        "{range} and those of store \"{other}\", {its}, have buckets in common"
                    ),
                );
            }
        }
        let assigned = assigned.filter(|its| *name != main && its.meets(range));
        if let Some(assigned) = assigned {
            problems.add(
                &setting,
                format!("{range} and assigned_worker_ids, {assigned}, have numbers in common: a database has the bucket of its number"),
            );
        }
    }
}
