//! Words of one tag whose creation, or that of the extension, was rolled back and done again: what they issued may have been shown to
//! somebody.

use keywright_core::cause::Cause;
use keywright_core::tag::Tag;
use pgrx::pg_sys;

use crate::failure::Failure;
use crate::server::process;
use crate::shmem::key::TagKey;
use crate::shmem::tag_slot::TagSlot;
use crate::shmem::{directory, reuse};

/// Such words with their keys, and the end of what each published. A committed DROP EXTENSION forgets.
fn of(key: &TagKey) -> impl Iterator<Item = (TagKey, u64)> {
    directory::slots::<TagSlot>(|_, its| its.shares_ids_with(key) && its != key)
        .into_iter()
        .filter(|(tag, _)| !reuse::is_closed(tag.slot))
        .map(|(tag, its)| (its, tag.slot.word.hi()))
}

/// The first number above all that they issued.
pub fn highest(key: &TagKey) -> u64 {
    of(key).map(|(_, hi)| hi).max().unwrap_or(0)
}

/// The first number above all that this server's memory knows to be reserved of one life of a tag, whatever sequence was its bound: also of one that was
/// dropped by itself. 0 if it knows nothing.
pub fn known_end(tag: &Tag, extension: pg_sys::Oid, generation: u32) -> u64 {
    let database = process::database();
    let is_meant = |key: &TagKey| {
        key.is_of(database, extension)
            && key.generation() == generation
            && key.tag_bytes() == tag.as_bytes()
    };
    let words = directory::slots::<TagSlot>(|_, key| is_meant(key)).into_iter();
    let ends = words.filter_map(|(word, _)| {
        let left_end = word.slot.left.get().map_or(0, |(_, end, _)| end);
        let end = word.slot.word.hi().max(left_end);
        // Else it was passed on meanwhile, and this is another tag's.
        word.is_current().then_some(end)
    });
    ends.max().unwrap_or(0)
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
        "SELECT keywright.create_tag('{tag}', ...) with the hide_bits and the hide_key of then; or, if no such id is kept anywhere, with \
         forget_issued => true."
    )))
}
