//! Which constants are 0 to the server once they are stored in an integer column.
//!
//! Measured on MariaDB 10.11 and MySQL 9.7: decimals and strings round half away from zero, doubles half to even.

/// Whether a value asks for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// It is stored as 0: asks for a key unless `NO_AUTO_VALUE_ON_ZERO` is set.
    Yes,
    /// It is stored as another number, or is an error.
    No,
    /// No clean number: an error in strict mode, otherwise perhaps a 0 with a warning.
    Unclean,
}

/// Digits beyond which a number with an exponent is left alone.
const DIGITS_MAX: usize = 60;

/// Whether a string, or a decimal parameter, asks for a key.
///
/// Clean are: blanks, a sign, digits with at most one point among them, an exponent of at most two digits.
pub fn text_asks(value: &[u8]) -> Ask {
    let blanks = value.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    let value = value.get(blanks.count()..).unwrap_or_default();
    let value = match value {
        [b'+' | b'-', rest @ ..] => rest,
        rest => rest,
    };
    decimal_asks(value)
}

/// Whether an unsigned number, which rounds half away from zero, asks for a key.
pub(crate) fn decimal_asks(value: &[u8]) -> Ask {
    let (mantissa, exponent) = match value.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        None => (value, 0),
        Some(at) => match (
            value.split_at_checked(at),
            value.get(at + 1..).and_then(small),
        ) {
            (Some((mantissa, _)), Some(exponent)) if mantissa.len() <= DIGITS_MAX => {
                (mantissa, exponent)
            }
            _ => return Ask::Unclean,
        },
    };
    let points = mantissa.iter().filter(|byte| **byte == b'.').count();
    let digits = mantissa.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || points > 1 || digits + points != mantissa.len() {
        return Ask::Unclean;
    }
    match mantissa.iter().position(|byte| matches!(byte, b'1'..=b'9')) {
        None => Ask::Yes,
        Some(first) => rounds_to_zero(mantissa, first, exponent),
    }
}

/// Decides by the first digit that is not 0: the number is `0.d… × 10^scale`.
fn rounds_to_zero(mantissa: &[u8], first: usize, exponent: i32) -> Ask {
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
        i32::MIN..=-1 => Ask::Yes,
        0 if mantissa.get(first).is_some_and(|digit| *digit < b'5') => Ask::Yes,
        0.. => Ask::No,
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
pub fn double_asks(value: f64) -> Ask {
    if value.abs() <= 0.5 {
        Ask::Yes
    } else {
        Ask::No
    }
}

/// Whether the hexadecimal or binary digits of a literal asks for a key.
pub(crate) fn digits_ask(digits: &[u8], per_byte: usize) -> Ask {
    match digits.len().div_ceil(per_byte) {
        0 => Ask::Unclean,
        1..=8 if digits.iter().all(|digit| *digit == b'0') => Ask::Yes,
        1..=8 => Ask::No,
        _ if digits.iter().all(|digit| *digit == b'0') => Ask::Unclean,
        _ => Ask::No,
    }
}

#[cfg(test)]
mod tests {
    use super::{Ask, double_asks, text_asks};

    #[test]
    fn strings_round_half_away_from_zero() {
        for text in [
            "0", "00", "0.0", "0.", ".0", "+0", "-0", " 0", "\t0", "0.4", "-0.4", ".49999", "4e-1",
            "0e5", "0.04e1", "1e-30", "0.0004e3", "49e-2", "00.4",
        ] {
            assert_eq!(text_asks(text.as_bytes()), Ask::Yes, "{text}");
        }
        for text in [
            "1", "0.5", "5e-1", "-0.5", "10", "007", "0.05e1", "50e-2", "1e9", "4e0", "0.4e1",
            "12.0",
        ] {
            assert_eq!(text_asks(text.as_bytes()), Ask::No, "{text}");
        }
        for text in [
            "", " ", ".", "0 ", "e", "0e", "0e+", "0x0", "- 0", "0\n", "abc", "0e999", "0\0",
        ] {
            assert_eq!(text_asks(text.as_bytes()), Ask::Unclean, "{text:?}");
        }
    }

    #[test]
    fn doubles_round_half_to_even() {
        assert_eq!(double_asks(0.5), Ask::Yes);
        assert_eq!(double_asks(-0.5), Ask::Yes);
        assert_eq!(double_asks(0.50000001), Ask::No);
        assert_eq!(double_asks(f64::NAN), Ask::No);
    }
}
