//! Key spaces: 128 random bits that a store draws for what it gives. One that was made anew draws others.

/// What a sequence of PostgreSQL can hold of a key space: 63 of its random bits, and never 0.
pub fn key_space_mark(key_space: u128) -> u64 {
    let bits = u64::try_from(key_space >> (u64::BITS + 1)).unwrap_or(u64::MAX);
    bits.max(1)
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
}
