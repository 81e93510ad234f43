//! Words of one tag whose creation, or that of the extension, was rolled back and done again: what they issued may have been shown to
//! somebody.

use keywright_core::cause::Cause;

use crate::failure::Failure;
use crate::shmem::key::TagKey;
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::{directory, reuse};

/// Such words with their keys, and the end of what each published. A committed DROP EXTENSION forgets.
fn of(key: &TagKey) -> impl Iterator<Item = (TagKey, u64)> {
    directory::slots::<TagSlot>()
        .into_iter()
        .filter(move |(tag, its)| {
            its.shares_ids_with(key) && its != key && !reuse::is_dropped(tag.slot)
        })
        .map(|(tag, its)| (its, tag.slot.word.hi()))
}

/// The first number above all that they issued.
pub fn highest(key: &TagKey) -> u64 {
    of(key).map(|(_, hi)| hi).max().unwrap_or(0)
}

/// Another permutation of the same numbers, or none, may give the same ids.
///
/// # Errors
/// One of them issued so.
pub fn refuse_if_hidden_otherwise(key: &TagKey) -> Result<(), Failure> {
    if of(key).all(|(its, hi)| hi == 0 || its.hides_like(key)) {
        return Ok(());
    }
    let tag = key.tag();
    Err(Failure::new(
        Cause::HideKeyMismatch,
        format!("tag \"{tag}\" has issued ids with another hide key, or none"),
    )
    .detail("In a transaction that was rolled back, or before keywright's tables were changed by hand. These ids could come again.")
    .hint(format!(
        "SELECT keywright.create_tag('{tag}', …) with the hide_bits and the hide_key of then; or, if no such id is kept anywhere, with \
         forget_issued => true."
    )))
}
