//! Settings of ordered tags that are the same for all programs of a store.

use keywright_core::slot::{SLOT_GROUPS_MAX, SlotGroups};

use super::problems::Problems;
use super::raw::RawStoreSettings;
use super::redis;
use crate::dialect::Dialect;

/// Into how many groups slots are divided; one where no tags are ordered.
pub(super) fn slot_groups(
    store: &RawStoreSettings,
    dialect: Dialect,
    problems: &mut Problems,
) -> SlotGroups {
    let wanted = u64::from(store.slot_groups);
    problems.within("store.slot_groups", wanted, 1, u64::from(SLOT_GROUPS_MAX));
    let has_ordered = dialect.is_own() && !redis::is_one(&store.url) && store.tags.is_empty();
    if wanted > 1 && !has_ordered {
        problems.add(
            "store.slot_groups",
            "is for the store that has ordered tags: one with Keywright's own table, and of several the one without tags",
        );
    }
    SlotGroups::new(wanted).unwrap_or(SlotGroups::ONE)
}
