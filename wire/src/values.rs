//! Values of the binary protocol whose length all servers read alike.

use crate::bytes::Reader;

/// Why values cannot be stepped over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadValue {
    /// They end too early, or are none.
    Malformed,
    /// How long a value of this type is only the server knows.
    Type,
}

/// The bytes of a value that is not NULL, as its type says.
///
/// # Errors
/// It ends too early, or how long it is cannot be told.
pub fn value<'a>(of_type: [u8; 2], reader: &mut Reader<'a>) -> Result<&'a [u8], BadValue> {
    let [kind, flag] = of_type;
    if flag & !0x80 != 0 {
        return Err(BadValue::Type);
    }
    let fixed = match kind {
        1 => 1,
        2 => 2,
        3 | 4 => 4,
        5 | 8 => 8,
        // Decimals, dates and times, VARCHAR, BIT, VECTOR, JSON, ENUM, SET, strings and blobs, geometries.
        0 | 7 | 10..=12 | 15 | 16 | 242 | 245..=255 => {
            let from = reader.0;
            reader.text().ok_or(BadValue::Malformed)?;
            let bytes = from.len() - reader.0.len();
            return from.get(..bytes).ok_or(BadValue::Malformed);
        }
        _ => return Err(BadValue::Type),
    };
    take(reader, fixed)
}

/// The next `count` bytes.
///
/// # Errors
/// There are not so many.
#[inline]
pub fn take<'a>(reader: &mut Reader<'a>, count: usize) -> Result<&'a [u8], BadValue> {
    reader.take(count).ok_or(BadValue::Malformed)
}
