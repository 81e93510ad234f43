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

/// Whether a message has this number. The client may have chosen a character set with two or four bytes for each digit.
fn names(message: &[u8], number: &str) -> bool {
    let is_in = |text: &[u8]| memchr::memmem::find(text, number.as_bytes()).is_some();
    is_in(message)
        || (message.contains(&0)
            && is_in(
                &message
                    .iter()
                    .copied()
                    .filter(|byte| *byte != 0)
                    .collect::<Vec<u8>>(),
            ))
}

#[cfg(test)]
mod tests {
    use super::{is_given_key, is_no_key, is_out_of_range};

    #[test]
    fn the_errors_of_ours_are_told_apart() {
        let message = b"BIGINT value is out of range in '(`d`.`u`.`id` is null or `d`.`u`.`id` = 0) * 3935559000370003845'";
        assert!(is_no_key(1690, message));
        assert!(!is_no_key(1264, message));
        assert!(!is_out_of_range(1690, message) && !is_given_key(1690, message));
    }

    /// As by `SET character_set_results = utf16`, `utf16le` and `utf32`.
    #[test]
    fn an_error_of_ours_is_known_in_each_character_set() {
        for (before, behind) in [(1, 0), (0, 1), (3, 0)] {
            let wide = |message: &[u8]| {
                let wide = message.iter().flat_map(|byte| {
                    let mut wide = vec![0; before];
                    wide.push(*byte);
                    wide.resize(before + 1 + behind, 0);
                    wide
                });
                [b"#22003".to_vec(), wide.collect()].concat()
            };
            assert!(is_out_of_range(1690, &wide(ROW_BEYOND)));
            assert!(is_given_key(1690, &wide(ROW_WITH_KEY)));
            assert!(is_no_key(1690, &wide(b"0 * 3935559000370003845")));
            assert!(!is_out_of_range(1690, &wide(ROW_WITH_KEY)));
        }
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
