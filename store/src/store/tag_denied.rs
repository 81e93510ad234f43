//! Why nothing is reserved of a tag, as those who ask are told.

use keywright_core::{Cause, Tag, written_key_space_mark};

use super::Store;
use super::look_back::SETTLE_MS;
use super::tag_request::{Denied, Receiver};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::home::{OtherStore, not_closed_in};
use crate::reserve::TagRow;

/// Why nobody who has these other stores reserves of a tag that lists those in which it is closed.
pub(crate) fn may_be_open(
    others: &[OtherStore],
    closed_in: Option<&str>,
    tag: &Tag,
) -> Option<Failure> {
    let other = not_closed_in(others, closed_in).into_iter().next()?;
    Some(unsettled(tag, &other.name))
}

/// Why nobody reserves of a tag that may be open in that store too.
pub(crate) fn unsettled(tag: &Tag, other: &str) -> Failure {
    let message = format!(
        "tag \"{tag}\" is not known to be closed in store \"{other}\", which would give the same ids"
    );
    let failure = Failure::new(Cause::TagHomeUnknown, message);
    failure.hint("keywright init closes it there, once that store answers")
}

/// Why a tag's ids are not given where their order cannot be kept.
pub(crate) fn ordered(tag: &Tag) -> Failure {
    let failure = Failure::new(
        Cause::TagOrdered,
        format!("tag \"{tag}\" is ordered, and its order cannot be kept here"),
    );
    failure.hint("only a [[listener]] of the Redis protocol with cluster_address gives its ids; another tag gives ids everywhere")
}

/// What the caller has of the other one may be given here again: it is dropped, and nothing is taken before somebody has looked.
pub(super) fn another_key_space(tag: &Tag) -> Failure {
    let failure = Failure::new(
        Cause::BoundDamaged,
        format!(
            "tag \"{tag}\" is another one in the store now than before: it was made anew, or the store was"
        ),
    );
    failure.hint("start the program again if the tag was moved to another store and back; else keywright advance above all that was given first")
}

/// What to do with a database that keeps the key space of another store.
pub(super) const OF_ANOTHER_STORE: &str = "feed it from the store of before, whose ids those of this one may repeat; if that is lost: \"Databases that were fed\" in \
     docs/operations/store.md";

/// Why a database takes no ids of a tag that is of this key space: what is reserved for it would be lost.
pub(super) fn untaken(tag: &Tag, receiver: Receiver, key_space: &str) -> Option<Failure> {
    let Some(mark) = written_key_space_mark(key_space) else {
        let message = format!(
            "tag \"{tag}\" has no key_space_id that a database can keep, so none takes its ids: its row was not made by Keywright"
        );
        let failure = Failure::new(Cause::HandOverRefused, message);
        return Some(failure.hint("feed a tag that keywright init has made"));
    };
    let is_of_another = receiver.mark.is_some_and(|known| known != mark);
    is_of_another.then(|| {
        let message = format!(
            "a database was handed ids of tag \"{tag}\" out of another store, or out of this one before the tag was made anew: it takes none of this tag"
        );
        Failure::new(Cause::HandOverRefused, message).hint(OF_ANOTHER_STORE)
    })
}

/// Who has seen more than a store that was put back tells it first.
pub(super) fn settling() -> Failure {
    let message = format!(
        "the store's server was started a moment ago, or has taken another's place: programs first compare what it says with what they have seen, and reserve nothing for {SETTLE_MS} ms"
    );
    Failure::new(Cause::StoreUnavailable, message)
}

/// What another server may have given away since is all that there is. Whoever knows better can say so.
///
/// How large the gap is is not said: it grows with time, and a text that is another one each time is logged each time.
pub(super) fn eaten(tag: &Tag, row: &TagRow) -> Denied {
    let failure = Failure::new(
        Cause::TagExhausted,
        format!(
            "tag \"{tag}\" is exhausted: another server wrote its bound {}, or the store was restored, and the safety gap above it ends beyond {}",
            row.number, row.id_max
        ),
    );
    Denied::Other(failure.hint(
        "a larger id_max, if its columns hold larger ids; else, where the highest id that was given is known, stop all programs, set hi above it and server to \
         NULL in the tag's row, and remove its rows of keywright_returned",
    ))
}

/// Tables went over to the tag, or left it, and the caller does not know yet.
pub(super) fn superseded(tag: &Tag, followed: u64, generation: u64) -> Denied {
    let failure = Failure::new(
        Cause::Suspended,
        format!(
            "tag \"{tag}\" is of generation {generation} now, and this program follows generation {followed}"
        ),
    );
    Denied::Superseded(failure.hint("it goes on when it has read which tables the tag is for now"))
}

/// A tag that has no row.
pub(crate) fn unknown(store: &Store, tag: &Tag) -> Failure {
    let table = store.segment_table.plain();
    let failure = Failure::new(
        Cause::TagUnknown,
        format!("tag \"{tag}\" is not in {table}"),
    );
    failure.hint(match store.dialect {
        Dialect::Keywright => "keywright init makes it; or correct the name in the configuration",
        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => {
            "make it as the other system does; or correct the name in the configuration"
        }
    })
}

/// A tag whose row is there for one that may be made later.
pub(super) fn dropped(tag: &Tag) -> Failure {
    let failure = Failure::new(Cause::TagUnknown, format!("tag \"{tag}\" was dropped"));
    failure.hint("made anew, by keywright init or KEYWRIGHT CREATE, it goes on above all that was reserved of it")
}

/// A tag that has several rows.
pub(super) fn ambiguous(store: &Store, tag: &Tag) -> Denied {
    let table = store.segment_table.plain();
    let failure = Failure::new(
        Cause::BoundDamaged,
        format!("tag \"{tag}\" is in {table} more than once"),
    );
    Denied::Other(failure.hint("leave the row with the largest number only"))
}
