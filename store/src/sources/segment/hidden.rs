//! Keys of a tag that hides how many there are: each number goes out through the tag's permutation, whoever takes it.

use keywright_core::hiding::Hiding;
use keywright_core::{Cause, KeyBatch, Tag};

use crate::failure::Failure;

/// The keys of so many numbers from `first` on.
pub(super) fn keys(hiding: &Hiding, first: u64, count: u64) -> Option<KeyBatch> {
    if count == 1 {
        return hiding.hide(first).map(|first| KeyBatch::Numbers {
            first,
            spacing: 1,
            count,
        });
    }
    let numbers = first..first.checked_add(count)?;
    let keys: Option<Vec<u64>> = numbers.map(|number| hiding.hide(number)).collect();
    keys.map(KeyBatch::Listed)
}

/// Why several keys cannot be had at once by whoever may compute them from the first.
pub(super) fn apart(tag: &Tag) -> Failure {
    let failure = Failure::new(
        Cause::StatementUnsupported,
        format!(
            "keys of tag \"{tag}\" hide how many there are, so several of them do not follow from the first, from which drivers compute them"
        ),
    );
    failure.hint(
        "one key at a time; or, where nobody computes them, on_several_rows = \"allow\" in the rule",
    )
}

#[cfg(test)]
mod tests {
    use keywright_core::KeyBatch;
    use keywright_core::hiding::{HideBits, HideKey, Hiding};

    use super::keys;

    #[test]
    fn keys_come_in_the_order_of_their_numbers() {
        let bits = HideBits::new(31).unwrap();
        let hiding = Hiding::new(&HideKey::new([7; HideKey::BYTES]), bits);
        let numbers = |batch: &KeyBatch| -> Vec<u64> {
            let all = (0..batch.len()).filter_map(|at| batch.number(at));
            all.filter_map(|key| hiding.reveal(key)).collect()
        };
        assert_eq!(numbers(&keys(&hiding, 5, 1).unwrap()), [5]);
        assert_eq!(numbers(&keys(&hiding, 5, 3).unwrap()), [5, 6, 7]);
        // Beyond the last one there is none, so there are none at all.
        assert_eq!(keys(&hiding, bits.largest(), 2), None);
        assert_eq!(keys(&hiding, u64::MAX, 2), None);
    }
}
