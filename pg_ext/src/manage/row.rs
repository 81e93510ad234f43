//! The row of a tag, changed by one transaction at a time. Whoever changes a tag's row, sequences or privileges locks the row first: the server itself
//! refuses the second of two that alter a sequence or its privileges, with an error of its insides.

use keywright_core::tag::Tag;
use pgrx::datum::DatumWithOid;

use crate::catalog::damage;
use crate::catalog::extension::Extension;
use crate::catalog::statements::{change, run, unchanged};
use crate::catalog::suggest;
use crate::catalog::tag_rows::{self, Known};
use crate::failure::Failure;
use crate::server::changes;

/// Waits for whoever changes the tag, keeps others from it until this transaction ends, and reads what is there then: dropped or not.
///
/// # Errors
/// It cannot be read; or the transaction is above READ COMMITTED, and it was changed since that began.
pub fn locked(tag: &Tag, extension: &Extension) -> Result<Option<Known>, Failure> {
    const ROW: &str =
        "SELECT FROM keywright.tag WHERE id OPERATOR(pg_catalog.=) $1 FOR NO KEY UPDATE";
    let mut missed = None;
    while let Some(known) = tag_rows::known(tag, extension)? {
        let found = run(ROW, &[known.id.into()])?;
        changes::hear();
        if found == 1 {
            return tag_rows::known(tag, extension);
        }
        // Another row of the same tag has come meanwhile; one that is there and was not found came after the transaction's snapshot.
        if missed.replace(known.id) == Some(known.id) {
            return Err(damage::changed_meanwhile(&format!("tag \"{tag}\"")));
        }
    }
    Ok(None)
}

/// The same of a tag that is not dropped.
///
/// # Errors
/// As [`locked`], or there is none.
pub(super) fn locked_existing(tag: &Tag, extension: &Extension) -> Result<Known, Failure> {
    locked(tag, extension)?
        .filter(|known| !known.dropped)
        .ok_or_else(|| suggest::unknown_tag(tag))
}

/// Changes the one row of a tag, or fails: a transaction above READ COMMITTED may see a state in which it is another's. A row that it sees and did
/// not change some rule or trigger holds.
pub(super) fn change_row(
    (tag, id): (&Tag, i32),
    statement: &str,
    arguments: &[DatumWithOid],
) -> Result<(), Failure> {
    if change("tag", statement, arguments)? == 1 {
        return Ok(());
    }
    let row = "SELECT true FROM keywright.tag WHERE id OPERATOR(pg_catalog.=) $1";
    let what = format!("tag \"{tag}\"");
    Err(unchanged("tag", row, &[id.into()], &what))
}
