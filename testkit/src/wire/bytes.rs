//! Reading and writing the protocol's integers and strings.

use anyhow::Context;

use crate::Result;

/// What is left of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, tail) = self
            .bytes
            .split_at_checked(n)
            .with_context(|| format!("{n} bytes wanted, the packet has {}", self.bytes.len()))?;
        self.bytes = tail;
        Ok(head)
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.take(N)?;
        bytes.try_into().context("an integer")
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer.
    pub(super) fn integer(&mut self) -> Result<u64> {
        match self.u8()? {
            0xfc => self.u16().map(u64::from),
            0xfd => {
                let [a, b, c] = self.array()?;
                Ok(u64::from(u32::from_le_bytes([a, b, c, 0])))
            }
            0xfe => self.u64(),
            small => Ok(u64::from(small)),
        }
    }

    /// A length-encoded string.
    pub(super) fn string(&mut self) -> Result<&'a [u8]> {
        let len = usize::try_from(self.integer()?)?;
        self.take(len)
    }

    /// A string up to a zero byte, or the end.
    pub(super) fn string0(&mut self) -> Result<&'a [u8]> {
        let len = self.bytes.iter().position(|&byte| byte == 0);
        let string = self.take(len.unwrap_or(self.bytes.len()))?;
        if len.is_some() {
            self.u8()?;
        }
        Ok(string)
    }
}

/// Appends a length-encoded integer.
pub(super) fn put_integer(to: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    let [a, b, c, ..] = bytes;
    match value {
        0..=0xfa => to.push(a),
        0xfb..=0xffff => to.extend([0xfc, a, b]),
        0x1_0000..=0xff_ffff => to.extend([0xfd, a, b, c]),
        _ => {
            to.push(0xfe);
            to.extend(bytes);
        }
    }
}

/// Appends a length-encoded string.
pub(super) fn put_string(to: &mut Vec<u8>, string: &[u8]) {
    put_integer(to, string.len() as u64);
    to.extend(string);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back() -> Result<()> {
        for value in [0, 250, 251, 65_535, 65_536, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut bytes = Vec::new();
            put_integer(&mut bytes, value);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.integer()?, value);
            assert!(reader.is_empty());
        }
        Ok(())
    }
}
