//! What a tag's row says whose bound was put back to an older state: a program that has seen more writes it there, so that no other program
//! reserves ids again that were issued. Only somebody who knows how far ids were given takes it away, by `advance` or `store restored`.

use std::sync::Arc;

use keywright_core::{Cause, Tag};

use super::{Row, Store, StoreError, column};
use crate::dialect::{Dialect, GONE_BACK};
use crate::failure::Failure;
use crate::reserve::TagRow;

/// Why nothing is reserved of a tag.
#[derive(Debug, Clone)]
pub(crate) struct GoneBack {
    pub(crate) failure: Failure,
    /// The row does not say so yet, or not of this bound.
    pub(super) untold: Option<Untold>,
}

/// What the row is to say, if it still is the one that was read.
#[derive(Debug, Clone)]
pub(super) struct Untold {
    pub(super) key_space: Arc<str>,
    pub(super) number: u64,
    /// The first id that was not reserved, as far as a program has seen.
    pub(super) seen: u64,
}

impl Untold {
    pub(super) fn mark(&self) -> String {
        format!("{GONE_BACK}{}", self.seen)
    }
}

/// The bound that was seen, where a row says that it has gone back behind it.
pub(super) fn behind(store: &Store, row: &Row) -> Result<Option<u64>, StoreError> {
    match store.dialect {
        Dialect::Keywright => {
            let server: Option<String> = column(row, "server")?;
            Ok(server.as_deref().and_then(marked))
        }
        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => Ok(None),
    }
}

/// A mark that was edited is one of some bound, too.
pub(super) fn marked(server: &str) -> Option<u64> {
    let seen = server.strip_prefix(GONE_BACK)?;
    Some(seen.parse().unwrap_or(0))
}

/// Others may have used what lies above the number, so only somebody who knows how far ids were given can mend it.
pub(super) fn failure(tag: &Tag, seen: u64, row: &TagRow) -> Failure {
    failure_above(tag, (seen, row.ends.first_free(row.number)), 0)
}

/// The same to somebody who knows of ids up to `id` himself. `free`: the first id that nobody was given, by the row.
pub(super) fn failure_above(tag: &Tag, (seen, free): (u64, u64), id: u64) -> Failure {
    let failure = Failure::new(
        Cause::BoundDamaged,
        format!("the store has gone back: the bound of tag \"{tag}\" was {seen}, and is {free}"),
    );
    failure.hint(format!(
        "is it an old backup? keywright advance {tag} --above {}, or the highest id in use if that is higher",
        seen.saturating_sub(1).max(id)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_no_server_is_one() {
        let untold = Untold {
            key_space: "k".into(),
            number: 1,
            seen: 4_001,
        };
        assert_eq!(marked(&untold.mark()), Some(4_001));
        assert_eq!(marked("gone back behind by hand"), Some(0));
        for server in ["uuid=7", "id=1 port=3306 host=a data=/", "restored 00"] {
            assert_eq!(marked(server), None);
        }
    }
}
