//! How a statement is made to fail for want of keys: with a number out of range, by which the server's error is known.

/// Multiplied twice with a row's number it is out of every range; by it the error is known.
pub(crate) const OUT_OF_RANGE: &str = "7046029254386353131";

/// Number of the server's error for a number out of range.
pub(crate) const ER_DATA_OUT_OF_RANGE: u16 = 1690;

/// Whether an error says that there were more rows than keys.
pub fn is_out_of_range(number: u16, message: &[u8]) -> bool {
    number == ER_DATA_OUT_OF_RANGE && names(message, OUT_OF_RANGE)
}

/// As [`OUT_OF_RANGE`], for a row that brings its own key.
pub(crate) const GIVEN: &str = "6364136223846793005";

/// Whether an error says that a row brought its own key although none may.
pub fn is_given_key(number: u16, message: &[u8]) -> bool {
    number == ER_DATA_OUT_OF_RANGE && names(message, GIVEN)
}

/// As [`OUT_OF_RANGE`], for a row whose key a query takes out of a column, where it is 0 or NULL.
pub(crate) const NO_KEY: &str = "3935559000370003845";

/// Whether an error says that a row was to bring its own key and has none.
pub fn is_no_key(number: u16, message: &[u8]) -> bool {
    number == ER_DATA_OUT_OF_RANGE && names(message, NO_KEY)
}

/// Whether an error may be one of these although its message does not say so: servers cut it off at its first byte of 0, which comes early in
/// results of utf16, utf16le, utf32 and ucs2. A whole message quotes what is out of range.
pub fn is_cut_off(number: u16, message: &[u8]) -> bool {
    number == ER_DATA_OUT_OF_RANGE && !message.contains(&b'\'')
}

/// Whether a message has this number.
fn names(message: &[u8], number: &str) -> bool {
    memchr::memmem::find(message, number.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::{is_cut_off, is_given_key, is_no_key, is_out_of_range};

    #[test]
    fn the_errors_of_ours_are_told_apart() {
        let message = b"BIGINT value is out of range in '(`d`.`u`.`id` is null or `d`.`u`.`id` = 0) * 3935559000370003845'";
        assert!(is_no_key(1690, message));
        assert!(!is_no_key(1264, message));
        assert!(!is_out_of_range(1690, message) && !is_given_key(1690, message));
        assert!(!is_cut_off(1690, message));
    }

    /// As by `SET character_set_results = utf16`, `ucs2`, `utf32` and `utf16le`.
    #[test]
    fn an_error_that_the_server_cuts_off_may_be_one_of_ours() {
        for message in [&b"#22003"[..], b"#22003B", b""] {
            assert!(is_cut_off(1690, message));
            assert!(!is_cut_off(1062, message));
            assert!(!is_out_of_range(1690, message) && !is_given_key(1690, message));
            assert!(!is_no_key(1690, message));
        }
        // The application's own.
        let whole = b"#22003BIGINT value is out of range in '9223372036854775807 + `t`.`a`'";
        assert!(!is_cut_off(1690, whole));
    }

    const ROW_BEYOND: &[u8] =
        b"BIGINT UNSIGNED value is out of range in 'rownum() * 7046029254386353131'";
    const ROW_WITH_KEY: &[u8] =
        b"BIGINT value is out of range in 'cast(`d`.`t`.`id` as signed) * 6364136223846793005'";

    #[test]
    fn only_an_error_of_ours_says_that_there_were_too_few_keys() {
        assert!(is_out_of_range(1690, ROW_BEYOND));
        assert!(is_out_of_range(1690, b"7046029254386353131"));
        // The application's own value, or its key.
        for (number, message) in [
            (
                1690,
                &b"BIGINT value is out of range in '9223372036854775807 + `t`.`a`'"[..],
            ),
            (
                1690,
                b"BIGINT value is out of range in '704602925438635313 * 2'",
            ),
            (1690, b""),
            (
                1062,
                b"Duplicate entry '7046029254386353131' for key 'PRIMARY'",
            ),
            (1264, ROW_BEYOND),
        ] {
            assert!(!is_out_of_range(number, message), "{number}");
        }
    }

    #[test]
    fn only_an_error_of_ours_says_that_a_row_brings_its_own_key() {
        assert!(is_given_key(1690, ROW_WITH_KEY));
        assert!(is_given_key(1690, b"6364136223846793005"));
        for (number, message) in [
            (1690, &b"BIGINT value is out of range in 'cast(`d`.`t`.`a` as signed) * 2'"[..]),
            (1690, b"BIGINT UNSIGNED value is out of range in 'last_insert_id() * 7046029254386353131'"),
            (1690, b""),
            (1062, b"Duplicate entry '6364136223846793005' for key 'PRIMARY'"),
            (1264, ROW_WITH_KEY),
        ] {
            assert!(!is_given_key(number, message), "{number}");
        }
    }
}
