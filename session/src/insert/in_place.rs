//! A long INSERT that is rewritten in the driver's buffer, where the client's bytes lie, and passed on from there.

use keywright_core::KeyBatch;
use keywright_rewrite::{InPlace, Plan};
use keywright_wire::bytes::{BODY_BYTES_MAX, HEADER_BYTES};

use crate::client::text::Query;
use crate::connection::Connection;

/// Shortest text that is rewritten in place, bytes: a shorter one is copied as quickly.
const IN_PLACE_BYTES_MIN: usize = 32 << 10;

/// The client's bytes in the driver's buffer.
pub trait Room {
    /// What was not consumed yet.
    fn there(&self) -> &[u8];
    /// The same, lengthened to so many bytes; the contents of the new ones do not matter.
    fn stretch(&mut self, bytes: usize) -> &mut [u8];
}

impl Room for Vec<u8> {
    fn there(&self) -> &[u8] {
        self
    }

    fn stretch(&mut self, bytes: usize) -> &mut [u8] {
        self.resize(bytes, 0);
        self
    }
}

/// A statement that is to be rewritten where it lies.
#[derive(Debug)]
pub(crate) struct Rewriting {
    plan: Plan,
    how: InPlace,
    /// Where its text begins.
    at: usize,
}

impl Rewriting {
    /// Rewrites it; `None` if that is not what lies there.
    pub(crate) fn write(&self, bytes: &mut impl Room) -> Option<usize> {
        let total = self.at.checked_add(self.how.new_bytes())?;
        let room = bytes.stretch(total);
        let len = u32::try_from(total.checked_sub(HEADER_BYTES)?).ok()?;
        let [a, b, c, _] = len.to_le_bytes();
        room.get_mut(..3)?.copy_from_slice(&[a, b, c]);
        let text = room.get_mut(self.at..)?;
        self.plan.write_in_place(&self.how, text).ok()?;
        Some(total)
    }
}

impl Connection {
    /// How an INSERT is rewritten where it lies, if it is.
    pub(crate) fn in_place(
        &self,
        query: Query<'_>,
        plan: &Plan,
        keys: &KeyBatch,
    ) -> Option<InPlace> {
        // What follows it would have to move as well.
        let is_alone = query.bytes.len() == query.header.total() && query.header.sequence == 0;
        if !self.writes_in_place || !is_alone || query.text.len() < IN_PLACE_BYTES_MIN {
            return None;
        }
        query.attributes().ok()?;
        let how = plan.in_place(query.text, keys)?;
        let total = query.text_at().checked_add(how.new_bytes())?;
        let is_one_packet = total - HEADER_BYTES < BODY_BYTES_MAX;
        // Memory was taken for a copy.
        let fits = how.more_bytes() <= query.text.len();
        (is_one_packet && fits && total >= query.bytes.len()).then_some(how)
    }

    /// Writes it there as soon as the driver lets it.
    pub(crate) fn rewrite_in_place(&mut self, query: Query<'_>, plan: Plan, how: InPlace) {
        let at = query.text_at();
        self.rewriting = Some(Rewriting { plan, how, at });
    }
}
