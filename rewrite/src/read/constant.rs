//! Which constants are 0 to the server once they are stored in an integer column.
//!
//! Measured on MariaDB 10.11 and MySQL 9.7: decimals and strings round half away from zero, doubles half to even. Strings that
//! are nearly numbers are read in many ways: `'0 '`, `'0e999'` and `'0' '\n'` are 0 even in strict mode, on one server or both.

use crate::refusal::KeyExpression;

/// What a value comes to in an integer column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsInteger {
    /// It is stored as 0: asks for a key unless `NO_AUTO_VALUE_ON_ZERO` is set.
    Zero,
    /// Below 0, but rounded to it: an UNSIGNED column may refuse it.
    NearlyZero,
    /// Below 0 when it is rounded: out of range in an UNSIGNED column, which is an error or becomes 0.
    Negative,
    /// It is stored as another number, or is too large, which never becomes 0.
    Other,
    /// A word: an error in strict mode, a 0 with a warning otherwise.
    Word,
    /// Nothing: the same, or NULL.
    Empty,
    /// No clean number.
    Unclean,
}

/// What is known of the column and of the server's care, beside the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Care {
    /// The column is known to have numbers below 0.
    pub is_signed: bool,
    /// 0 asks for no key: `NO_AUTO_VALUE_ON_ZERO`, if that is known.
    pub zero_is_value: Option<bool>,
    /// What does not fit the column is certainly an error, and not a warning.
    pub is_strict: bool,
    /// It is certainly a warning.
    pub is_lax: bool,
    /// `''` is NULL.
    pub empty_is_null: bool,
}

/// What a constant is to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// 0.
    Zero,
    /// The same as long as sql_mode is what it is.
    ZeroNow,
    /// The application's own key, or an error, whatever sql_mode is.
    Explicit,
    /// The same as long as sql_mode is what it is.
    ExplicitNow,
}

impl AsInteger {
    /// What it is to a row.
    ///
    /// # Errors
    /// It cannot be proved to be one of them.
    pub fn meaning(self, care: Care) -> Result<Meaning, KeyExpression> {
        // A number that is out of range does not become a key of the server's own.
        let stays = care.is_strict || care.zero_is_value == Some(true);
        match self {
            Self::Zero => Ok(Meaning::Zero),
            Self::Other => Ok(Meaning::Explicit),
            Self::NearlyZero if care.is_signed => Ok(Meaning::Zero),
            Self::Negative if care.is_signed => Ok(Meaning::Explicit),
            Self::NearlyZero if care.zero_is_value == Some(true) => Ok(Meaning::ExplicitNow),
            Self::Negative if stays => Ok(Meaning::ExplicitNow),
            Self::Empty if care.empty_is_null => Err(KeyExpression::NotNumber),
            Self::Word | Self::Empty if care.is_strict => Ok(Meaning::ExplicitNow),
            Self::Word | Self::Empty if care.is_lax && care.zero_is_value == Some(true) => {
                Ok(Meaning::ExplicitNow)
            }
            Self::Word | Self::Empty if care.is_lax && care.zero_is_value == Some(false) => {
                Ok(Meaning::ZeroNow)
            }
            Self::NearlyZero | Self::Negative => Err(KeyExpression::Negative),
            Self::Word | Self::Empty | Self::Unclean => Err(KeyExpression::NotNumber),
        }
    }

    /// The same below 0. `is_zero`: without rounding.
    pub(crate) fn negated(self, is_zero: bool) -> Self {
        match self {
            Self::Zero if is_zero => Self::Zero,
            Self::Zero | Self::NearlyZero => Self::NearlyZero,
            Self::Other | Self::Negative => Self::Negative,
            Self::Word | Self::Empty | Self::Unclean => Self::Unclean,
        }
    }
}

/// Digits beyond which a number with an exponent is left alone.
const DIGITS_MAX: usize = 60;

/// Whether a string, or a decimal parameter, asks for a key.
///
/// Clean are: blanks, a sign, digits with at most one point among them, an exponent of at most two digits.
pub fn text_as_integer(value: &[u8]) -> AsInteger {
    match value.first() {
        None => return AsInteger::Empty,
        Some(byte) if byte.is_ascii_alphabetic() => return AsInteger::Word,
        Some(_) => {}
    }
    let blanks = value.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    match value.get(blanks.count()..).unwrap_or_default() {
        [b'-', digits @ ..] => decimal_as_integer(digits).negated(is_zero(digits)),
        [b'+', digits @ ..] | digits => decimal_as_integer(digits),
    }
}

/// Whether a clean number has no digit but 0 before its exponent.
pub(crate) fn is_zero(value: &[u8]) -> bool {
    let mut mantissa = value.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    !mantissa.any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Whether an unsigned number, which rounds half away from zero, asks for a key.
pub(crate) fn decimal_as_integer(value: &[u8]) -> AsInteger {
    let (mantissa, exponent) = match value.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        None => (value, 0),
        Some(at) => match (
            value.split_at_checked(at),
            value.get(at + 1..).and_then(small),
        ) {
            (Some((mantissa, _)), Some(exponent)) if mantissa.len() <= DIGITS_MAX => {
                (mantissa, exponent)
            }
            _ => return AsInteger::Unclean,
        },
    };
    let points = mantissa.iter().filter(|byte| **byte == b'.').count();
    let digits = mantissa.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || points > 1 || digits + points != mantissa.len() {
        return AsInteger::Unclean;
    }
    match mantissa.iter().position(|byte| matches!(byte, b'1'..=b'9')) {
        None => AsInteger::Zero,
        Some(first) => rounds_to_zero(mantissa, first, exponent),
    }
}

/// Decides by the first digit that is not 0: the number is `0.d… × 10^scale`.
fn rounds_to_zero(mantissa: &[u8], first: usize, exponent: i32) -> AsInteger {
    let place = |index: usize| i32::try_from(index).unwrap_or(i32::MAX / 2);
    let point = mantissa
        .iter()
        .position(|byte| *byte == b'.')
        .unwrap_or(mantissa.len());
    let scale = if point < first {
        place(point) + 1 - place(first)
    } else {
        place(point) - place(first)
    };
    match scale.saturating_add(exponent) {
        i32::MIN..=-1 => AsInteger::Zero,
        0 if mantissa.get(first).is_some_and(|digit| *digit < b'5') => AsInteger::Zero,
        0.. => AsInteger::Other,
    }
}

/// An exponent of one or two digits.
fn small(exponent: &[u8]) -> Option<i32> {
    let (sign, digits) = match exponent {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let plain = matches!(digits.len(), 1 | 2) && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| plain)?;
    Some(sign * digits.parse::<i32>().ok()?)
}

/// Whether a double asks for a key: it is rounded half to even.
pub fn double_as_integer(value: f64) -> AsInteger {
    let ask = match value.abs() {
        nan if nan.is_nan() => AsInteger::Unclean,
        0.0..=0.5 => AsInteger::Zero,
        _ => AsInteger::Other,
    };
    match value < 0.0 {
        true => ask.negated(false),
        false => ask,
    }
}

/// Whether the hexadecimal or binary digits of a literal asks for a key.
pub(crate) fn digits_as_integer(digits: &[u8], per_byte: usize) -> AsInteger {
    let is_zero = digits.iter().all(|digit| *digit == b'0');
    match digits.len().div_ceil(per_byte) {
        1..=8 if is_zero => AsInteger::Zero,
        _ if is_zero => AsInteger::Unclean,
        _ => AsInteger::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::{AsInteger, Care, Meaning, double_as_integer, text_as_integer};
    use crate::refusal::KeyExpression;

    #[test]
    fn strings_round_half_away_from_zero() {
        for text in [
            "0", "00", "0.0", "0.", ".0", "+0", "-0", " 0", "\t0", "0.4", "-0.0", ".49999", "4e-1",
            "0e5", "04e-1", "0.04e1", "1e-30", "0.0004e3", "49e-2", "00.4",
        ] {
            assert_eq!(text_as_integer(text.as_bytes()), AsInteger::Zero, "{text}");
        }
        for text in [
            "1", "0.5", "5e-1", "+0.5", "10", "007", "0.05e1", "50e-2", "1e9", "4e0", "0.4e1",
            "12.0",
        ] {
            assert_eq!(text_as_integer(text.as_bytes()), AsInteger::Other, "{text}");
        }
        for text in [
            " ", ".", "0 ", " e", "0e", "0e+", "0x0", "- 0", "0\n", "\n0", "-abc", "0e999", "0\0",
        ] {
            assert_eq!(
                text_as_integer(text.as_bytes()),
                AsInteger::Unclean,
                "{text:?}"
            );
        }
        assert_eq!(text_as_integer(b""), AsInteger::Empty);
        for text in ["abc", "e", "e5", "x'", "nan"] {
            assert_eq!(
                text_as_integer(text.as_bytes()),
                AsInteger::Word,
                "{text:?}"
            );
        }
        for text in ["-1", " -0.5", "-5e-1"] {
            assert_eq!(
                text_as_integer(text.as_bytes()),
                AsInteger::Negative,
                "{text:?}"
            );
        }
        for text in ["-0.4", "-4e-1", "-1e-30"] {
            assert_eq!(
                text_as_integer(text.as_bytes()),
                AsInteger::NearlyZero,
                "{text:?}"
            );
        }
    }

    /// The rule: "explicit" and "the server refuses that itself" need proof.
    #[test]
    fn what_is_not_proved_is_refused() {
        let care = |is_signed, zero_is_value, is_strict| Care {
            is_signed,
            zero_is_value,
            is_strict,
            is_lax: false,
            empty_is_null: false,
        };
        let nothing = care(false, Some(false), false);
        let strict = care(false, Some(false), true);
        let signed = care(true, Some(false), false);
        let values = care(false, Some(true), false);
        for (ask, meanings) in [
            (AsInteger::Zero, [Ok(Meaning::Zero); 4]),
            (AsInteger::Other, [Ok(Meaning::Explicit); 4]),
            (AsInteger::Unclean, [Err(KeyExpression::NotNumber); 4]),
            (
                AsInteger::Word,
                [
                    Err(KeyExpression::NotNumber),
                    Ok(Meaning::ExplicitNow),
                    Err(KeyExpression::NotNumber),
                    Err(KeyExpression::NotNumber),
                ],
            ),
            (
                AsInteger::Negative,
                [
                    Err(KeyExpression::Negative),
                    Ok(Meaning::ExplicitNow),
                    Ok(Meaning::Explicit),
                    Ok(Meaning::ExplicitNow),
                ],
            ),
            (
                AsInteger::NearlyZero,
                [
                    Err(KeyExpression::Negative),
                    Err(KeyExpression::Negative),
                    Ok(Meaning::Zero),
                    Ok(Meaning::ExplicitNow),
                ],
            ),
        ] {
            let found = [nothing, strict, signed, values].map(|care| ask.meaning(care));
            assert_eq!(found, meanings, "{ask:?}");
        }
        // Where words are certainly stored as 0.
        for (zero_is_value, meaning) in [
            (Some(false), Ok(Meaning::ZeroNow)),
            (Some(true), Ok(Meaning::ExplicitNow)),
            (None, Err(KeyExpression::NotNumber)),
        ] {
            let lax = Care {
                is_lax: true,
                zero_is_value,
                ..nothing
            };
            assert_eq!(AsInteger::Word.meaning(lax), meaning);
            assert_eq!(AsInteger::Empty.meaning(lax), meaning);
            let unclean = AsInteger::Unclean.meaning(lax);
            assert_eq!(unclean, Err(KeyExpression::NotNumber));
        }
    }

    #[test]
    fn nothing_may_be_null() {
        for (is_strict, is_lax) in [(true, false), (false, true)] {
            let care = |empty_is_null| Care {
                is_signed: true,
                zero_is_value: Some(true),
                is_strict,
                is_lax,
                empty_is_null,
            };
            let found = AsInteger::Empty.meaning(care(false));
            assert_eq!(found, Ok(Meaning::ExplicitNow));
            let found = AsInteger::Empty.meaning(care(true));
            assert_eq!(found, Err(KeyExpression::NotNumber));
            let found = AsInteger::Word.meaning(care(true));
            assert_eq!(found, Ok(Meaning::ExplicitNow));
        }
    }

    #[test]
    fn doubles_round_half_to_even() {
        assert_eq!(double_as_integer(0.5), AsInteger::Zero);
        assert_eq!(double_as_integer(-0.0), AsInteger::Zero);
        assert_eq!(double_as_integer(-0.5), AsInteger::NearlyZero);
        assert_eq!(double_as_integer(0.50000001), AsInteger::Other);
        assert_eq!(double_as_integer(-0.50000001), AsInteger::Negative);
        assert_eq!(double_as_integer(f64::INFINITY), AsInteger::Other);
        assert_eq!(double_as_integer(f64::NAN), AsInteger::Unclean);
    }
}
