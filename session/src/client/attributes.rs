//! Query attributes of a text: they stay as they were, byte for byte, whatever becomes of the statement.

use keywright_rewrite::{AttributesConstruct, Unsupported};
use keywright_wire::attributes::{NO_ATTRIBUTES, front_bytes};
use keywright_wire::bytes::{HEADER_BYTES, Header};
use keywright_wire::capability::QUERY_ATTRIBUTES;
use keywright_wire::values::BadValue;

use crate::connection::Connection;

/// Longest attributes of a text that are sent again with what it is rewritten to, bytes.
const ATTRIBUTES_BYTES_MAX: usize = 64 << 10;
/// Bytes of a long text that are read before the rest has come.
pub(crate) const HEAD_BYTES_MAX: usize = 4096;

/// Why a text behind attributes, or an execution with them, gets no keys.
pub(crate) const UNKNOWN_TYPE: Unsupported =
    Unsupported::Attributes(AttributesConstruct::UnknownType);

impl Connection {
    /// Whether statements come with attributes.
    pub(crate) fn has_attributes(&self) -> bool {
        self.facts.capabilities & QUERY_ATTRIBUTES != 0
    }

    /// How many bytes stand before the text in COM_QUERY's payload.
    pub(crate) fn front_of(&self, payload: &[u8]) -> Result<usize, BadValue> {
        match self.has_attributes() {
            false => Ok(0),
            true if payload.starts_with(NO_ATTRIBUTES) => Ok(NO_ATTRIBUTES.len()),
            true => front_bytes(payload),
        }
    }

    /// As much of a text as is read before the rest has come.
    pub(crate) fn beginning<'a>(
        &self,
        header: Header,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], BadValue> {
        let end = beginning_end(header).min(bytes.len());
        let payload = bytes.get(HEADER_BYTES + 1..end).unwrap_or_default();
        let front = self.front_of(payload)?;
        let text = payload.get(front..).ok_or(BadValue::Malformed)?;
        // However much more has come: what becomes of a statement is no matter of how its bytes arrive.
        Ok(text.get(..HEAD_BYTES_MAX).unwrap_or(text))
    }

    /// What stands before a text of our own.
    pub(crate) fn no_attributes(&self) -> &'static [u8] {
        match self.has_attributes() {
            false => &[],
            true => NO_ATTRIBUTES,
        }
    }
}

/// The attributes at the front of a payload, so many bytes, to be sent with what the text behind them is rewritten to.
pub(crate) fn attributes_of(payload: &[u8], front: usize) -> Result<&[u8], Unsupported> {
    payload
        .get(..front)
        .filter(|_| front <= ATTRIBUTES_BYTES_MAX)
        .ok_or(Unsupported::Attributes(AttributesConstruct::Long))
}

/// Where the beginning of a long text ends: in its first packet, however long that is.
pub(crate) fn beginning_end(header: Header) -> usize {
    let front = HEADER_BYTES + 1 + ATTRIBUTES_BYTES_MAX;
    header.total().min(front + HEAD_BYTES_MAX)
}
