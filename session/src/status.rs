//! What the proxy says of itself: that it is stopping, and the answer to `SHOW KEYWRIGHT STATUS`, for users who may see it.
//! The server never learns of either, so what it remembers of the statement before stays: warnings, ROW_COUNT(), FOUND_ROWS().

use keywright_core::Cause;
use keywright_wire::bytes::{HEADER_BYTES, Header, whole};
use keywright_wire::protocol::{
    AUTOCOMMIT, COM_QUERY, IN_READ_ONLY_TRANSACTION, IN_TRANSACTION, NO_BACKSLASH_ESCAPES,
};
use keywright_wire::rows::Made;

use crate::errors::write_error;
use crate::session::{Session, Turn};
use crate::step::Step;

/// The statement.
const WORDS: [&str; 3] = ["SHOW", "KEYWRIGHT", "STATUS"];
/// Status flags that tell of the session and not of one statement: in a transaction, autocommit, no backslash escapes, read only.
const STATUS_OF_SESSION: u16 =
    IN_TRANSACTION | AUTOCOMMIT | NO_BACKSLASH_ESCAPES | IN_READ_ONLY_TRANSACTION;
/// MariaDB's capability: definitions of columns say more of their types.
pub(crate) const EXTENDED_METADATA: u64 = 1 << 35;
/// utf8mb4_general_ci, for clients that name no collation.
const COLLATION: u16 = 45;

impl Session {
    /// Whether this client gets an answer to `SHOW KEYWRIGHT STATUS`. Others get the server's, which knows no such statement.
    pub fn allow_status(&mut self, is_allowed: bool) {
        self.sees_status = is_allowed;
    }

    /// The step if that statement is at the front.
    pub(crate) fn status_asked(&self, bytes: &[u8]) -> Option<Step> {
        let is_turn = self.sees_status && matches!(self.turn, Turn::Command) && !self.is_passing();
        if !is_turn || self.drop_command || bytes.get(HEADER_BYTES) != Some(&COM_QUERY) {
            return None;
        }
        let header = Header::read(bytes)?;
        let payload = whole(header, bytes)?;
        let text = payload.get(self.front_of(payload).ok()?..)?;
        let text = std::str::from_utf8(text).ok()?;
        let text = text.trim_end();
        let text = text.strip_suffix(';').unwrap_or(text);
        let mut words = text.split_ascii_whitespace();
        let is_it = WORDS.iter().all(|expected| {
            words
                .next()
                .is_some_and(|word| word.eq_ignore_ascii_case(expected))
        });
        (is_it && words.next().is_none()).then(|| Step::Status(header.total()))
    }

    /// Answers it with names and values.
    pub fn tell_status(&mut self, rows: &[(String, String)]) {
        let made = Made {
            sequence: 1,
            deprecate_eof: self.deprecates_eof(),
            extended: self.facts.capabilities & EXTENDED_METADATA != 0,
            status: self.last_status & STATUS_OF_SESSION,
            collation: match self.facts.collation {
                0 => COLLATION,
                chosen => chosen,
            },
            columns: &[b"Variable_name", b"Value"],
        };
        let rows = rows
            .iter()
            .map(|(name, value)| vec![Some(name.as_bytes()), Some(value.as_bytes())]);
        made.write(rows, &mut self.down);
    }

    /// Tells a client between two commands that the proxy is stopping. It is numbered as the answer to the next command, which
    /// is on its way already, or meets a closed connection otherwise.
    pub fn tell_stopping(&mut self) {
        let why = "Server shutdown in progress: the proxy is stopping";
        write_error(Cause::Draining, why, 1, &mut self.down);
    }

    /// The same, where the rules have changed and the connection cannot follow them.
    pub fn tell_outdated(&mut self) {
        let why = "Server shutdown in progress: the rules have changed, and what this connection has prepared goes by the old ones: connect again";
        write_error(Cause::Draining, why, 1, &mut self.down);
    }
}
