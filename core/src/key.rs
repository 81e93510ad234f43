//! Keys taken for the rows of one statement, in row order, and how SQL spells them.

/// The keys of one statement: one per row that needs one, in row order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyBatch {
    /// Numbers `first`, `first + spacing`, …: drivers compute the ids of a statement's rows in this way from the first.
    Numbers {
        /// Key of the first row.
        first: u64,
        /// Distance of neighbouring keys.
        spacing: u64,
        /// How many.
        count: u64,
    },
    /// Numbers without a common distance: keys of a statement that gives contiguity up.
    Listed(Vec<u64>),
    /// Keys that are text: UUIDs, readable ids.
    Texts(Vec<String>),
    /// Keys that are 16 bytes: UUIDs in `BINARY(16)`.
    Bytes(Vec<[u8; 16]>),
}

impl KeyBatch {
    /// How many keys there are.
    pub fn len(&self) -> u64 {
        let len = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
        match self {
            Self::Numbers { count, .. } => *count,
            Self::Listed(numbers) => len(numbers.len()),
            Self::Texts(texts) => len(texts.len()),
            Self::Bytes(bytes) => len(bytes.len()),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of row `index` as a number; `None` beyond the last one and for keys that are none.
    pub fn number(&self, index: u64) -> Option<u64> {
        match self {
            Self::Numbers {
                first,
                spacing,
                count,
            } if index < *count => first.checked_add(spacing.checked_mul(index)?),
            Self::Listed(numbers) => at(numbers, index).copied(),
            Self::Numbers { .. } | Self::Texts(_) | Self::Bytes(_) => None,
        }
    }

    /// Appends the key of row `index` as an SQL literal that means the same in every SQL mode and character set: decimal,
    /// `'text'` or `x'hex'`. False, and nothing appended, beyond the last key.
    pub fn write_literal(&self, index: u64, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Numbers { .. } | Self::Listed(_) => match self.number(index) {
                Some(number) => write_decimal(number, out),
                None => return false,
            },
            Self::Texts(texts) => match at(texts, index) {
                Some(text) => {
                    out.push(b'\'');
                    out.extend_from_slice(text.as_bytes());
                    out.push(b'\'');
                }
                None => return false,
            },
            Self::Bytes(bytes) => match at(bytes, index) {
                Some(bytes) => {
                    out.extend_from_slice(b"x'");
                    for byte in bytes {
                        out.extend([byte >> 4, byte & 15].map(hex_digit));
                    }
                    out.push(b'\'');
                }
                None => return false,
            },
        }
        true
    }
}

fn at<T>(items: &[T], index: u64) -> Option<&T> {
    items.get(usize::try_from(index).ok()?)
}

fn hex_digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        10..=u8::MAX => b'a' + (value - 10),
    }
}

/// Appends a number in decimal, without the machinery of formatting: this runs once per row of a bulk insert.
fn write_decimal(mut number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    loop {
        let digit = u8::try_from(number % 10).unwrap_or(0);
        out.push(b'0' + digit);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    if let Some(digits) = out.get_mut(start..) {
        digits.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::KeyBatch;

    fn literal(keys: &KeyBatch, index: u64) -> Option<String> {
        let mut out = Vec::new();
        keys.write_literal(index, &mut out)
            .then(|| String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn numbers_are_spaced_and_end() {
        let keys = KeyBatch::Numbers {
            first: u64::MAX - 3,
            spacing: 3,
            count: 2,
        };
        assert_eq!(literal(&keys, 0).as_deref(), Some("18446744073709551612"));
        assert_eq!(literal(&keys, 1).as_deref(), Some("18446744073709551615"));
        assert_eq!(literal(&keys, 2), None);
        assert_eq!(keys.number(2), None);
        assert_eq!(keys.len(), 2);
    }

    #[test]
    fn listed_numbers_keep_their_order() {
        let keys = KeyBatch::Listed(vec![7, 9, 8]);
        let all: Vec<_> = (0..4).map(|index| keys.number(index)).collect();
        assert_eq!(all, [Some(7), Some(9), Some(8), None]);
        assert_eq!(literal(&keys, 1).as_deref(), Some("9"));
        assert_eq!(keys.len(), 3);
    }

    #[test]
    fn zero_is_a_digit() {
        let keys = KeyBatch::Numbers {
            first: 0,
            spacing: 10,
            count: 2,
        };
        assert_eq!(literal(&keys, 0).as_deref(), Some("0"));
        assert_eq!(literal(&keys, 1).as_deref(), Some("10"));
    }

    #[test]
    fn texts_are_quoted_and_bytes_are_hexadecimal() {
        let texts = KeyBatch::Texts(vec!["0192-af".to_owned()]);
        assert_eq!(literal(&texts, 0).as_deref(), Some("'0192-af'"));
        assert_eq!(literal(&texts, 1), None);
        assert_eq!(texts.number(0), None);
        let mut key = [0; 16];
        key[1] = 0xaf;
        let bytes = KeyBatch::Bytes(vec![key]);
        let hex = "x'00af0000000000000000000000000000'";
        assert_eq!(literal(&bytes, 0).as_deref(), Some(hex));
        assert!(!bytes.is_empty());
    }
}
