//! The permutations of tags that hide their volume, as this session knows them: one of each fingerprint, which never changes.

use std::cell::RefCell;
use std::collections::HashMap;

use keywright_core::hiding::Hiding;
use keywright_core::tag::Tag;

use crate::catalog::{cached, secrets, suggest, tag_rows};
use crate::failure::Failure;
use crate::server::changes;

/// What was looked up to read ids with, under which number of changes.
#[derive(Default)]
struct Read {
    changes: u32,
    of_tags: HashMap<Tag, Option<&'static Hiding>>,
}

thread_local! {
    static KNOWN: RefCell<HashMap<[u8; 8], &'static Hiding>> = RefCell::default();
    static READ: RefCell<Read> = RefCell::default();
}

/// A permutation that lives as long as this backend.
pub fn interned(hiding: Hiding) -> &'static Hiding {
    KNOWN.with_borrow_mut(|known| {
        let fingerprint = hiding.fingerprint().bytes();
        *known
            .entry(fingerprint)
            .or_insert_with(|| Box::leak(Box::new(hiding)))
    })
}

/// The permutation that ids of a tag are read with, dropped or not; `None` if it hides nothing.
///
/// # Errors
/// There is no such tag, or its secret is not there or another.
pub fn of_tag(tag: &Tag) -> Result<Option<&'static Hiding>, Failure> {
    let extension = cached::extension()?;
    let changes = changes::count();
    let known = READ.with_borrow(|read| {
        (read.changes == changes)
            .then(|| read.of_tags.get(tag).copied())
            .flatten()
    });
    if let Some(known) = known {
        return Ok(known);
    }
    let row = tag_rows::known(tag, &extension)?.ok_or_else(|| suggest::unknown_tag(tag))?;
    let hiding = row
        .hidden
        .map(|hidden| secrets::hiding(tag.as_str(), row.id, &hidden, extension.owner).map(interned))
        .transpose()?;
    READ.with_borrow_mut(|read| {
        if read.changes != changes {
            read.of_tags.clear();
            read.changes = changes;
        }
        read.of_tags.insert(tag.clone(), hiding);
    });
    Ok(hiding)
}

/// Forgets what was looked up.
pub fn forget() {
    READ.with_borrow_mut(|read| read.of_tags.clear());
}
