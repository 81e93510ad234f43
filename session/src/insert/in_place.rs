//! A long INSERT that is rewritten in the driver's buffer, where the client's bytes lie, and passed on from there.

use keywright_rewrite::{InPlace, Plan};
use keywright_wire::bytes::HEADER_BYTES;

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

/// Whether the client's bytes may be written to where they lie, and whether they are to be.
#[derive(Debug, Default)]
pub(crate) enum WritesInPlace {
    #[default]
    No,
    /// The driver lets it.
    May,
    /// The statement at the front is rewritten so.
    Will(Box<Rewriting>),
}

impl WritesInPlace {
    /// Whether a statement may be rewritten where it lies.
    pub(crate) fn may(&self) -> bool {
        match self {
            Self::No | Self::Will(_) => false,
            Self::May => true,
        }
    }
}

/// A statement that is to be rewritten where it lies.
#[derive(Debug)]
pub(crate) struct Rewriting {
    pub(crate) plan: Plan,
    pub(crate) how: InPlace,
    /// Where its text begins.
    pub(crate) at: usize,
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
