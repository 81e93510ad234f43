//! The log of keys, for rules that ask for it: who looks for a row after a broken connection finds which keys the connection got.

use std::fmt::Write;

use keywright_core::KeyBatch;

/// Most keys of one line that are listed; numbers at even distances are told by the first, the distance and how many.
const LISTED_MAX: u64 = 100;

/// Writes a line of the log for keys that a statement gets, or some lines. `rule`: the rule's name.
pub(crate) fn log_keys(rule: &str, keys: &KeyBatch) {
    match keys {
        KeyBatch::Numbers {
            first,
            spacing,
            count,
        } => tracing::info!(rule, first, spacing, count, "keys given"),
        KeyBatch::Listed(_) | KeyBatch::Texts(_) | KeyBatch::Bytes(_) => {
            let mut from = 0;
            while from < keys.len() {
                let behind = keys.len().min(from.saturating_add(LISTED_MAX));
                let keys = listed(keys, from..behind);
                tracing::info!(rule, keys, "keys given");
                from = behind;
            }
        }
    }
}

/// Some of them, with a comma between.
fn listed(keys: &KeyBatch, which: std::ops::Range<u64>) -> String {
    let mut list = String::new();
    for at in which {
        if !list.is_empty() {
            list.push(',');
        }
        let index = usize::try_from(at).unwrap_or(usize::MAX);
        match keys {
            KeyBatch::Numbers { .. } | KeyBatch::Listed(_) => {
                if let Some(number) = keys.number(at) {
                    // Nothing can go wrong where a text is written to.
                    let _ = write!(list, "{number}");
                }
            }
            KeyBatch::Texts(texts) => list.push_str(texts.get(index).map_or("", String::as_str)),
            KeyBatch::Bytes(bytes) => {
                for byte in bytes.get(index).map(|key| &key[..]).unwrap_or_default() {
                    let _ = write!(list, "{byte:02x}");
                }
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::listed;
    use keywright_core::KeyBatch;

    #[test]
    fn keys_are_listed_as_statements_have_them() {
        for (keys, expected) in [
            (KeyBatch::Listed(vec![7, 9, 8]), "9,8"),
            (
                KeyBatch::Texts(["a", "b", "c"].map(str::to_owned).to_vec()),
                "b,c",
            ),
            (
                KeyBatch::Bytes(vec![[0; 16], [1; 16], [0xFF; 16]]),
                "01010101010101010101010101010101,ffffffffffffffffffffffffffffffff",
            ),
        ] {
            assert_eq!(listed(&keys, 1..3), expected);
        }
    }
}
