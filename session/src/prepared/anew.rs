//! Whether a prepared statement's text can be prepared anew, in other words or as its client wrote it: the server reads it where it is
//! then, and what it has of the client's was read at PREPARE.

use keywright_rewrite::Unsupported;

use crate::connection::Connection;
use crate::prepared::statements::ClientText;
use crate::server::text_modes::TextModes;

impl Connection {
    /// What forbids it, if anything does.
    pub(crate) fn forbids_anew(&self, of: &ClientText<'_>) -> Option<Unsupported> {
        if self.means_others(of) {
            return Some(Unsupported::Elsewhere);
        }
        self.reads_otherwise(of.read_in, of.text)
            .then_some(Unsupported::ReadOtherwise)
    }

    /// Whether the server may read a text otherwise now than in that state.
    pub(crate) fn reads_otherwise(&self, read_in: &TextModes, text: &[u8]) -> bool {
        read_in.reads_otherwise(&self.context.text_modes, text)
    }
}
