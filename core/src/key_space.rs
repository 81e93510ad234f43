//! Key spaces: 128 random bits that a store draws for what it gives. One that was made anew draws others.

/// What a sequence of PostgreSQL can hold of a key space: 63 of its random bits, and never 0.
pub fn key_space_mark(key_space: u128) -> u64 {
    let bits = u64::try_from(key_space >> (u64::BITS + 1)).unwrap_or(u64::MAX);
    bits.max(1)
}

/// The same of a key space as a store writes it. `None`: no database can keep it, because somebody made the row by hand, or in the table of another system.
pub fn written_key_space_mark(key_space: &str) -> Option<u64> {
    const DIGITS: usize = 32;
    let is_whole = key_space.len() == DIGITS && key_space.bytes().all(|b| b.is_ascii_hexdigit());
    let bits = u128::from_str_radix(key_space, 16).ok();
    bits.filter(|_| is_whole).map(key_space_mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_positive_and_tells_key_spaces_apart() {
        for key_space in [0, 1, u128::MAX, u128::MAX / 3] {
            let mark = key_space_mark(key_space);
            assert!(mark > 0 && i64::try_from(mark).is_ok(), "{key_space}");
        }
        assert_ne!(key_space_mark(7 << 65), key_space_mark(8 << 65));
    }

    #[test]
    fn only_what_a_store_writes_has_a_mark() {
        let written = "0123456789abcdef0123456789abcdef";
        let bits = u128::from_str_radix(written, 16).unwrap();
        assert_eq!(written_key_space_mark(written), Some(key_space_mark(bits)));
        for other in [
            "",
            "by hand",
            "0123456789abcdef",
            "+123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(written_key_space_mark(other), None, "{other}");
        }
    }
}
