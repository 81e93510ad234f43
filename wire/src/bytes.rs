//! Checked reading of packets, and writing them: headers, payloads of several packets, fields.

use std::borrow::Cow;

/// Longest body of one packet; a longer payload continues in the next.
pub const BODY_BYTES_MAX: usize = 0xFF_FFFF;
/// Bytes of a packet's header.
pub const HEADER_BYTES: usize = 4;

/// A packet's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the body.
    pub len: usize,
    /// Its number in the exchange.
    pub sequence: u8,
}

impl Header {
    /// Reads it; `None` while there are fewer than four bytes.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, sequence, ..] = *bytes else {
            return None;
        };
        let len = u32::from_le_bytes([a, b, c, 0]);
        Some(Self {
            len: usize::try_from(len).ok()?,
            sequence,
        })
    }

    /// Header and body together.
    #[inline]
    pub fn total(&self) -> usize {
        self.len + HEADER_BYTES
    }

    /// Whether the payload goes on in the next packet.
    #[inline]
    pub fn continues(&self) -> bool {
        self.len == BODY_BYTES_MAX
    }
}

/// A command of one packet or several, as far as it has come.
#[derive(Debug)]
pub enum Joined<'a> {
    /// All of it: its payload after the command byte, and a header for all its packets together.
    Whole(Header, Cow<'a, [u8]>),
    /// The buffer must hold so many bytes before more can be said.
    More(usize),
    /// It is longer than what is gathered.
    TooLong,
}

/// Puts a command's packets together, if its payload is not longer than `bytes_max`.
pub fn joined(first: Header, bytes: &[u8], bytes_max: usize) -> Joined<'_> {
    let (mut end, mut len, mut header) = (0_usize, 0_usize, first);
    loop {
        len = len.saturating_add(header.len);
        if len > bytes_max {
            return Joined::TooLong;
        }
        end = end.saturating_add(header.total());
        if !header.continues() {
            break;
        }
        match bytes.get(end..).and_then(Header::read) {
            Some(next) => header = next,
            None => return Joined::More(end.saturating_add(HEADER_BYTES)),
        }
    }
    let Some(all) = bytes.get(..end) else {
        return Joined::More(end);
    };
    let payload = match first.continues() {
        false => Cow::Borrowed(all.get(HEADER_BYTES + 1..).unwrap_or_default()),
        true => {
            let mut payload = Vec::with_capacity(len);
            for packet in all.chunks(BODY_BYTES_MAX + HEADER_BYTES) {
                payload.extend_from_slice(packet.get(HEADER_BYTES..).unwrap_or_default());
            }
            payload.drain(..1);
            Cow::Owned(payload)
        }
    };
    let whole = Header {
        len: end.saturating_sub(HEADER_BYTES),
        sequence: header.sequence,
    };
    Joined::Whole(whole, payload)
}

/// The payload after the command byte of a short command, if its packet has come whole.
#[inline]
pub fn whole(header: Header, bytes: &[u8]) -> Option<&[u8]> {
    if header.continues() {
        return None;
    }
    bytes.get(HEADER_BYTES + 1..header.total())
}

/// Appends `payload` as one packet, or several if it is long; returns the number after the last.
pub fn write_packet(payload: &[u8], mut sequence: u8, out: &mut Vec<u8>) -> u8 {
    let mut rest = payload;
    loop {
        let (body, after) = rest.split_at(rest.len().min(BODY_BYTES_MAX));
        let len = u32::try_from(body.len()).unwrap_or(0).to_le_bytes();
        out.extend([len[0], len[1], len[2], sequence]);
        out.extend_from_slice(body);
        sequence = sequence.wrapping_add(1);
        if body.len() < BODY_BYTES_MAX {
            return sequence;
        }
        rest = after;
    }
}

/// Makes what lies in `out` from `start` on, behind room for a header, one packet numbered 0, or several if it is long; the
/// number of the last.
pub fn make_packet(start: usize, out: &mut Vec<u8>) -> u8 {
    let body = out.len().saturating_sub(start).saturating_sub(HEADER_BYTES);
    if body >= BODY_BYTES_MAX {
        let payload = out.split_off(start.saturating_add(HEADER_BYTES));
        out.truncate(start);
        return write_packet(&payload, 0, out).wrapping_sub(1);
    }
    let len = u32::try_from(body).unwrap_or(0).to_le_bytes();
    if let Some(header) = out.get_mut(start..start.saturating_add(3)) {
        header.copy_from_slice(&len[..3]);
    }
    0
}

/// As [`make_packet`], for what goes out in place of a client's packets, the last of which has this number. False if it would take more packets
/// or fewer: then nothing is left in `out` from `start` on.
pub fn replace_packet(start: usize, number: u8, out: &mut Vec<u8>) -> bool {
    let is_as_many = make_packet(start, out) == number;
    if !is_as_many {
        out.truncate(start);
    }
    is_as_many
}

/// As [`write_packet`], for what goes out in place of a client's packets, the last of which has this number. False if it would take more packets
/// or fewer: then nothing was appended.
pub fn write_as_many(payload: &[u8], number: u8, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let is_as_many = write_packet(payload, 0, out).wrapping_sub(1) == number;
    if !is_as_many {
        out.truncate(start);
    }
    is_as_many
}

/// Reads fields from the front of a payload; `None` as soon as one is not there whole.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(
    /// What is not read yet.
    pub &'a [u8],
);

impl<'a> Reader<'a> {
    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    #[inline]
    fn uint(&mut self, bytes: usize) -> Option<u64> {
        let mut value = [0; 8];
        value.get_mut(..bytes)?.copy_from_slice(self.take(bytes)?);
        Some(u64::from_le_bytes(value))
    }

    /// Two bytes, the low one first.
    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        u16::try_from(self.uint(2)?).ok()
    }

    /// Four bytes, the low one first.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        u32::try_from(self.uint(4)?).ok()
    }

    /// A length-encoded integer; `None` also for NULL, and for what begins no number.
    #[inline]
    pub fn lenenc(&mut self) -> Option<u64> {
        match self.u8()? {
            0xFC => self.uint(2),
            0xFD => self.uint(3),
            0xFE => self.uint(8),
            0xFB | 0xFF => None,
            small => Some(u64::from(small)),
        }
    }

    /// A length-encoded string.
    #[inline]
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.lenenc()?).ok()?;
        self.take(len)
    }
}

/// Appends a length-encoded integer.
#[inline]
pub fn write_lenenc(value: u64, out: &mut Vec<u8>) {
    let bytes = value.to_le_bytes();
    let (prefix, count) = match value {
        0..=0xFA => (None, 1),
        0xFB..=0xFFFF => (Some(0xFC), 2),
        0x1_0000..=0xFF_FFFF => (Some(0xFD), 3),
        0x100_0000..=u64::MAX => (Some(0xFE), 8),
    };
    out.extend(prefix);
    out.extend(bytes.iter().take(count));
}
