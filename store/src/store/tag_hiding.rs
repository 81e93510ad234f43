//! The permutation that a tag's row names: whoever is given ids of the tag has the same, or is given nothing.

use keywright_core::hiding::{HideBits, Hiding};
use keywright_core::{Cause, Tag};

use super::{Row, Store, StoreError, column};
use crate::dialect::Dialect;
use crate::failure::Failure;

/// What a row says of the permutation of its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagHiding {
    /// How wide the keys are.
    pub bits: HideBits,
    /// What tells the permutation from others.
    pub fingerprint: String,
}

impl TagHiding {
    pub(crate) fn of(hiding: &Hiding) -> Self {
        Self {
            bits: hiding.bits(),
            fingerprint: hiding.fingerprint().to_string(),
        }
    }
}

/// What a row says. `None`: keys are the numbers.
///
/// # Errors
/// Inside: there stands what is none.
pub(super) fn hiding_of(
    store: &Store,
    row: &Row,
    tag: &Tag,
) -> Result<Result<Option<TagHiding>, Failure>, StoreError> {
    match store.dialect {
        Dialect::Keywright => {
            let read = read(row)?;
            Ok(read.map_err(|problem| {
                let message = format!("tag \"{tag}\" is unusable: {problem}");
                Failure::new(Cause::BoundDamaged, message)
            }))
        }
        Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => Ok(Ok(None)),
    }
}

/// The same of a row that says it. Inside: what is wrong with it.
pub(super) fn read(row: &Row) -> Result<Result<Option<TagHiding>, String>, StoreError> {
    let bits: Option<i64> = column(row, "hide_bits")?;
    let fingerprint: Option<String> = column(row, "hide_fingerprint")?;
    Ok(match (bits, fingerprint) {
        (None, None) => Ok(None),
        (Some(bits), Some(fingerprint)) => match HideBits::new(bits) {
            Ok(bits) => Ok(Some(TagHiding { bits, fingerprint })),
            Err(error) => Err(error.to_string()),
        },
        (Some(_), None) | (None, Some(_)) => {
            Err("hide_bits and hide_fingerprint belong together".to_owned())
        }
    })
}

/// That the caller sends its numbers through the permutation of the tag, where this has one, and through none where it has none: keys of
/// several permutations meet.
///
/// # Errors
/// [`Cause::HideKeyMismatch`].
pub(crate) fn refuse_other(
    tag: &Tag,
    row: Option<&TagHiding>,
    caller: Option<&Hiding>,
) -> Result<(), Failure> {
    let refuse = |message: String, hint: String| {
        Err(Failure::new(Cause::HideKeyMismatch, message).hint(hint))
    };
    match (row, caller.map(TagHiding::of)) {
        (None, None) => Ok(()),
        (Some(row), Some(caller)) if *row == caller => Ok(()),
        (Some(row), None) => {
            let bits = row.bits.get();
            refuse(
                format!("tag \"{tag}\" hides its volume, and this program has no key for that"),
                format!("a [[hidden_tag]] section with hide_bits = {bits} and the key that the tag was made with; fed databases have no such tags"),
            )
        }
        (None, Some(_)) => refuse(
            format!("tag \"{tag}\" does not hide its volume: its keys are its numbers"),
            "take its [[hidden_tag]] section away, or use another tag: keywright init makes a tag that hides its volume, and no other becomes one".to_owned(),
        ),
        (Some(row), Some(caller)) if row.bits != caller.bits => refuse(
            format!(
                "keys of tag \"{tag}\" have hide_bits = {}, and here {}",
                row.bits.get(),
                caller.bits.get()
            ),
            "the bits of a tag never change: say those that it was made with, or use another tag".to_owned(),
        ),
        (Some(row), Some(caller)) => refuse(
            format!("tag \"{tag}\" was made with another hide key"),
            format!(
                "the fingerprint of the tag is {}, that of this key {}: bring the key back with which the tag was made",
                row.fingerprint, caller.fingerprint
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use keywright_core::hiding::{HideBits, HideKey, Hiding};
    use keywright_core::{Cause, Tag};

    use super::{TagHiding, refuse_other};

    fn hiding(byte: u8, bits: i64) -> Hiding {
        Hiding::new(
            &HideKey::new([byte; HideKey::BYTES]),
            HideBits::new(bits).unwrap(),
        )
    }

    #[test]
    fn only_the_same_permutation_is_given_numbers() {
        let tag = Tag::parse("orders").unwrap();
        let all = [
            None,
            Some(hiding(1, 63)),
            Some(hiding(1, 53)),
            Some(hiding(2, 53)),
        ];
        for (at, row) in all.iter().enumerate() {
            for (by, caller) in all.iter().enumerate() {
                let row = row.as_ref().map(TagHiding::of);
                let found = refuse_other(&tag, row.as_ref(), caller.as_ref());
                assert_eq!(found.is_ok(), at == by, "{row:?} {caller:?}");
                if let Err(failure) = found {
                    assert_eq!(failure.cause(), Cause::HideKeyMismatch);
                }
            }
        }
    }
}
