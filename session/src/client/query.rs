//! A command that has come whole, and the text of a statement in it.

use std::borrow::Cow;

use keywright_rewrite::{Unsupported, without_empty_end, without_terminator};
use keywright_wire::bytes::{HEADER_BYTES, Header, Joined, joined};

use crate::client::attributes::attributes_of;
use crate::client::decode::Undecoded;
use crate::connection::Connection;

/// A command that has come whole.
pub(crate) struct Whole<'a> {
    /// Of all its packets.
    pub(crate) header: Header,
    /// The client's bytes, at whose front it is.
    bytes: &'a [u8],
    /// What follows the command's own byte.
    pub(crate) payload: Cow<'a, [u8]>,
}

impl<'a> Whole<'a> {
    pub(crate) fn new(header: Header, bytes: &'a [u8], payload: Cow<'a, [u8]>) -> Self {
        Self {
            header,
            bytes,
            payload,
        }
    }

    /// Its text, if that is to be prepared.
    pub(crate) fn to_prepare(&self) -> Query<'_> {
        Query {
            text: without_terminator(without_empty_end(&self.payload)),
            ..self.unread()
        }
    }

    /// Its text of so many bytes, behind so many of attributes, as it was read before.
    pub(crate) fn query(&self, front: usize, text_bytes: usize) -> Query<'_> {
        let text = self.payload.get(front..).unwrap_or_default();
        Query {
            front,
            text: text.get(..text_bytes).unwrap_or_default(),
            ..self.unread()
        }
    }

    /// One whose text is not found.
    pub(super) fn unread(&self) -> Query<'_> {
        Query {
            header: self.header,
            bytes: self.bytes,
            payload: &self.payload,
            front: 0,
            text: &[],
        }
    }
}

/// A statement sent as text, to be carried out or prepared, at the front of the client's bytes.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    pub(crate) header: Header,
    pub(crate) bytes: &'a [u8],
    payload: &'a [u8],
    /// Bytes of attributes before the text.
    pub(crate) front: usize,
    pub(crate) text: &'a [u8],
}

impl<'a> Query<'a> {
    /// What stands before the text, to be sent with what it is rewritten to.
    pub(crate) fn attributes(&self) -> Result<&'a [u8], Unsupported> {
        attributes_of(self.payload, self.front)
    }

    /// The same with another text in place of the client's.
    pub(crate) fn with_text<'b>(self, text: &'b [u8]) -> Query<'b>
    where
        'a: 'b,
    {
        Query { text, ..self }
    }

    /// Where the text begins in the client's bytes.
    pub(crate) fn text_at(&self) -> usize {
        self.front.saturating_add(HEADER_BYTES + 1)
    }
}

impl Connection {
    /// The text of a command, behind so many bytes of attributes.
    pub(crate) fn query_of<'a>(&self, whole: &'a Whole<'_>, front: usize) -> Query<'a> {
        Query {
            front,
            text: self.ended(whole.payload.get(front..).unwrap_or_default()),
            ..whole.unread()
        }
    }

    /// A text up to its end as the server has it.
    fn ended<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let text = without_empty_end(text);
        let ended = without_terminator(text);
        // What is behind a `;` is a statement of its own where there may be several, and an empty one is an error.
        let is_statement = self.allows_several() && ended.trim_ascii_end().ends_with(b";");
        if is_statement { text } else { ended }
    }

    /// The command at the front of a job, which has come whole before. Where there is no memory for it any more it is looked at anew.
    pub(crate) fn whole_command<'a>(&self, bytes: &'a [u8]) -> Result<Whole<'a>, Undecoded> {
        let header = Header::read(bytes).ok_or(Undecoded::Anew)?;
        match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => Ok(Whole::new(header, bytes, payload)),
            Joined::More(_) | Joined::TooLong => Err(Undecoded::Anew),
        }
    }
}
