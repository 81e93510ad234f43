//! A text of several statements of which each is sent by itself: where the text is cut, and how the packets of the answers are numbered as
//! one answer.

use std::ops::Range;

use keywright_rewrite::{
    CharsetClass, Modes, doubtful_quotes_end, reads_blanks_beyond_ascii, split_first,
};
use keywright_wire::bytes::{HEADER_BYTES, Header, Reader};
use keywright_wire::packets::write_query;
use keywright_wire::protocol::{EOF, MORE_RESULTS};

/// The statements of one text, and how far they were sent and answered.
#[derive(Debug)]
pub(crate) struct OneByOne {
    /// Goes with each of them.
    attributes: Vec<u8>,
    text: Vec<u8>,
    /// Up to here the text was cut.
    pub(crate) cut: usize,
    /// See [`plain_from`].
    pub(crate) plain_from: usize,
    /// See [`doubtful_quotes_end`].
    doubtful_until: usize,
    /// The command of one statement, of which so many bytes were consumed.
    command: Vec<u8>,
    pub(crate) consumed: usize,
    /// Number of the next packet to the client.
    sequence: u8,
    /// Bytes to come of the packet that the client gets now.
    left: usize,
    /// The last of them was answered, or the packets make no sense.
    pub(crate) is_over: bool,
}

impl OneByOne {
    /// The first is the next; the answers are numbered from there on.
    pub(crate) fn new(attributes: &[u8], text: &[u8], sequence: u8) -> Self {
        Self {
            attributes: attributes.to_vec(),
            text: text.to_vec(),
            cut: 0,
            plain_from: plain_from(text),
            doubtful_until: doubtful_quotes_end(text),
            command: Vec::new(),
            consumed: 0,
            sequence,
            left: 0,
            is_over: false,
        }
    }

    /// What was not cut yet.
    fn rest(&self) -> &[u8] {
        self.text.get(self.cut..).unwrap_or_default()
    }

    /// Whether another statement follows. White space between statements is none, for the server; a comment is one.
    pub(crate) fn has_more(&self) -> bool {
        !self.rest().iter().all(u8::is_ascii_whitespace)
    }

    /// What was not consumed yet of the command of the statement at hand.
    pub(crate) fn waiting(&self) -> &[u8] {
        self.command.get(self.consumed..).unwrap_or_default()
    }

    /// Makes the next statement the command at the front, or all of the rest where it cannot be told where that ends.
    pub(crate) fn cut_next(&mut self, modes: &Modes) {
        let is_doubtful = modes.charset == CharsetClass::TrailByteMayBeBackslash
            && self.cut < self.doubtful_until;
        let rest = self.cut..self.text.len();
        let piece = match is_doubtful {
            true => rest,
            false => match split_first(&self.text, self.cut, modes).range {
                // What is behind `--` and a blank may be a comment, up to another end.
                piece if self.has_blanks(&piece, modes) => rest,
                piece => piece,
            },
        };
        self.cut = piece.end;
        let piece = self.text.get(piece).unwrap_or_default();
        let statement = piece.strip_suffix(b";").unwrap_or(piece);
        self.command.clear();
        self.consumed = 0;
        write_query(&self.attributes, statement, &mut self.command);
    }

    /// Whether a part of the text has blanks beyond ASCII in it, so that the server may read it otherwise.
    fn has_blanks(&self, part: &Range<usize>, modes: &Modes) -> bool {
        let part = self.text.get(part.clone()).unwrap_or_default();
        reads_blanks_beyond_ascii(part, modes)
    }

    /// Numbers the packets of a part of an answer anew; where the last of them begins. Where another result follows, the end of column
    /// definitions says so too.
    pub(crate) fn number(&mut self, part: &mut [u8]) -> Option<usize> {
        let has_more = self.has_more();
        let mut at = self.left.min(part.len());
        self.left -= at;
        let mut last = None;
        while let Some(header) = part.get(at..).and_then(Header::read) {
            if let Some(sequence) = part.get_mut(at + HEADER_BYTES - 1) {
                *sequence = self.sequence;
            }
            self.sequence = self.sequence.wrapping_add(1);
            last = Some(at);
            let end = at.saturating_add(header.total());
            if has_more
                && let Some(packet) = part.get_mut(at..end)
                && is_eof(packet)
            {
                let _ = announce_more(packet);
            }
            self.left = end.saturating_sub(part.len());
            at = end.min(part.len());
        }
        last
    }
}

/// From where on neither sql_mode nor the character set makes a difference to where statements end and what they name. Found once for a
/// text, which may hold very many statements.
pub(crate) fn plain_from(text: &[u8]) -> usize {
    let quotes = memchr::memrchr2(b'"', b'\\', text).map_or(0, |at| at + 1);
    // A byte beyond ASCII may be a part of a character that ends in a quote, or a blank.
    let beyond_ascii = text.iter().rposition(|byte| !byte.is_ascii());
    let beyond_ascii = beyond_ascii.map_or(0, |at| at + 1);
    quotes.max(beyond_ascii).max(doubtful_quotes_end(text))
}

/// Whether a packet is an EOF packet. No row that begins so is as short.
fn is_eof(packet: &[u8]) -> bool {
    const EOF_BYTES: usize = HEADER_BYTES + 5;
    packet.len() == EOF_BYTES && packet.get(HEADER_BYTES) == Some(&EOF)
}

/// Says in an OK or EOF packet that another result follows.
pub(crate) fn announce_more(packet: &mut [u8]) -> Option<()> {
    let payload = packet.get(HEADER_BYTES..)?;
    let is_eof = is_eof(packet);
    let mut reader = Reader(payload);
    reader.u8()?;
    if is_eof {
        reader.u16()?;
    } else {
        reader.lenenc()?;
        reader.lenenc()?;
    }
    let at = packet.len() - reader.0.len();
    let status = reader.u16()? | MORE_RESULTS;
    packet
        .get_mut(at..at + 2)?
        .copy_from_slice(&status.to_le_bytes());
    Some(())
}
