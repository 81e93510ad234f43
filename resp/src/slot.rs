//! The slot of a name: clusters say by it which of them serves the name.

/// How many there are.
pub const SLOTS: u16 = 16_384;

/// The slot of a name: of what stands between the first `{` and the next `}`, if that is anything, else of all.
#[must_use]
pub fn of(name: &[u8]) -> u16 {
    let begin = name.iter().position(|byte| *byte == b'{');
    let inside = begin.and_then(|begin| name.get(begin.saturating_add(1)..));
    let tag = inside.and_then(|inside| {
        let end = inside.iter().position(|byte| *byte == b'}')?;
        inside.get(..end)
    });
    checksum(tag.filter(|tag| !tag.is_empty()).unwrap_or(name)) % SLOTS
}

/// CRC-16/XMODEM.
fn checksum(bytes: &[u8]) -> u16 {
    const POLYNOMIAL: u16 = 0x1021;
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
            let shifted = sum << 1;
            if sum & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ POLYNOMIAL
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{checksum, of};

    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(checksum(b"123456789"), 0x31C3);
        for (name, slot) in [("foo", 12_182), ("bar", 5_061), ("", 0)] {
            assert_eq!(of(name.as_bytes()), slot, "{name}");
        }
        assert_eq!(of(b"{foo}.orders"), of(b"foo"));
        assert_eq!(of(b"a{foo}{bar}"), of(b"foo"));
        assert_eq!(of(b"foo{}{bar}"), checksum(b"foo{}{bar}") % super::SLOTS);
        assert_eq!(of(b"foo{bar"), checksum(b"foo{bar") % super::SLOTS);
    }
}
