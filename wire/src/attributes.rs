//! Query attributes: named values that a client of MySQL sends with a statement, before its text or behind its parameters.

use crate::bytes::Reader;
use crate::values::{BadValue, take, value};

/// Attributes of one statement, as the server counts them: parameters are among them.
pub const ATTRIBUTES_MAX: usize = 65_535;
/// What stands before a text without attributes: none of them, in one set.
pub const NO_ATTRIBUTES: &[u8] = &[0, 1];

/// How many bytes the attributes before a text take. `payload` begins behind the command byte.
///
/// # Errors
/// They end too early, are none, or one has a type whose length is not known.
pub fn front_bytes(payload: &[u8]) -> Result<usize, BadValue> {
    let mut reader = Reader(payload);
    let count = count(&mut reader)?;
    // More sets than one are for later versions of the protocol.
    if reader.lenenc() != Some(1) {
        return Err(BadValue::Malformed);
    }
    if count > 0 {
        let nulls = take(&mut reader, count.div_ceil(8))?;
        // Types always come: there is no statement to remember them.
        if reader.u8().is_none_or(|flag| flag == 0) {
            return Err(BadValue::Malformed);
        }
        let mut types = Vec::new();
        for _ in 0..count {
            types.push([
                reader.u8().ok_or(BadValue::Malformed)?,
                reader.u8().ok_or(BadValue::Malformed)?,
            ]);
            reader.text().ok_or(BadValue::Malformed)?;
        }
        for (index, of_type) in types.into_iter().enumerate() {
            if !is_null(nulls, index) {
                value(of_type, &mut reader)?;
            }
        }
    }
    Ok(payload.len() - reader.0.len())
}

/// How many parameters and attributes there are.
///
/// # Errors
/// It is no number, or more than there can be.
pub fn count(reader: &mut Reader<'_>) -> Result<usize, BadValue> {
    reader
        .lenenc()
        .and_then(|count| usize::try_from(count).ok())
        .filter(|count| *count <= ATTRIBUTES_MAX)
        .ok_or(BadValue::Malformed)
}

/// Whether a bit of the bitmap says NULL.
#[inline]
pub fn is_null(nulls: &[u8], index: usize) -> bool {
    nulls
        .get(index / 8)
        .is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::front_bytes;
    use crate::values::BadValue;

    #[test]
    fn a_text_is_found_behind_attributes_of_every_length() {
        // A string, NULL, an unsigned BIGINT, a date, and one without a name.
        let mut head = vec![5, 1, 0b10, 1];
        for (kind, name) in [(254, "a"), (3, "b"), (8, "n"), (10, "d"), (1, "")] {
            head.extend([kind, if kind == 8 { 0x80 } else { 0 }]);
            head.push(u8::try_from(name.len()).unwrap_or(0));
            head.extend(name.as_bytes());
        }
        head.extend(b"\xFC\x2C\x01");
        head.extend([b'x'; 300]);
        head.extend([7; 8]);
        head.extend([4, 1, 2, 3, 4]);
        head.push(9);
        let whole = [head.as_slice(), b"SELECT 1"].concat();
        assert_eq!(front_bytes(&whole), Ok(head.len()));
        for len in 0..head.len() {
            assert_eq!(front_bytes(&head[..len]), Err(BadValue::Malformed));
        }
    }

    #[test]
    fn what_is_no_head_of_attributes_is_told_from_what_is_not_known() {
        let typed = |kind: u8, flag: u8| [1, 1, 0, 1, kind, flag, 0, 0, 0, 0];
        for (kind, flag) in [(6, 0), (9, 0), (13, 0), (244, 0), (243, 0), (3, 1)] {
            assert_eq!(front_bytes(&typed(kind, flag)), Err(BadValue::Type));
        }
        for malformed in [
            b"".as_slice(),
            b"\x00",
            // Two sets, no types, more than there can be, no number at all.
            b"\x00\x02",
            b"\x01\x01\x00\x00",
            b"\xFD\x00\x00\x01\x01",
            b"\xFB\x01",
            b"\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
        ] {
            assert_eq!(front_bytes(malformed), Err(BadValue::Malformed));
        }
        // NULL needs no type that is known.
        assert_eq!(front_bytes(&[1, 1, 1, 1, 6, 0, 0]), Ok(7));
    }
}
