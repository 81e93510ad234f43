//! What this session knows of the tags and words that it uses, so that taking an id needs no look-up.

pub mod permutations;
pub mod tag_entry;
pub mod time_entry;

use crate::catalog::cached;

/// Forgets what was looked up: after this session changed it itself.
pub fn forget() {
    cached::forget();
    permutations::forget();
    tag_entry::forget();
    time_entry::forget();
}
