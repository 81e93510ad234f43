//! How SHOW KEYWRIGHT is answered. The server does not see the statement, so warnings, ROW_COUNT() and FOUND_ROWS() stay those of the
//! statement before.

use keywright_wire::bytes::{HEADER_BYTES, Header, whole};
use keywright_wire::capability::EXTENDED_METADATA;
use keywright_wire::protocol::{
    AUTOCOMMIT, COM_QUERY, IN_READ_ONLY_TRANSACTION, IN_TRANSACTION, NO_BACKSLASH_ESCAPES,
};
use keywright_wire::rows::TextResult;

use crate::client::show::{List, Listing, Show};
use crate::job::Job;
use crate::session::Session;
use crate::step::Step;

/// Status flags of the session rather than of one statement: in a transaction, autocommit, no backslash escapes, read only.
const STATUS_OF_SESSION: u16 =
    IN_TRANSACTION | AUTOCOMMIT | NO_BACKSLASH_ESCAPES | IN_READ_ONLY_TRANSACTION;
/// utf8mb4_general_ci, for clients that name no collation.
const COLLATION: u16 = 45;

impl Session {
    /// Whether this client gets an answer to `SHOW KEYWRIGHT …`. Others get the server's, which knows no such statement.
    pub fn allow_status(&mut self, is_allowed: bool) {
        self.sees_status = is_allowed;
    }

    /// The step if such a statement is at the front.
    pub(super) fn show_asked(&mut self, bytes: &[u8]) -> Option<Step> {
        let is_turn = self.sees_status
            && self.is_clients_turn()
            && !self.has_several()
            && !matches!(self.job, Job::Answered);
        if !is_turn || bytes.get(HEADER_BYTES) != Some(&COM_QUERY) {
            return None;
        }
        let header = Header::read(bytes)?;
        let payload = whole(header, bytes)?;
        let text = payload.get(self.connection.front_of(payload).ok()?..)?;
        let show = Show::read(std::str::from_utf8(text).ok()?)?;
        self.show = Some(Box::new(show));
        Some(Step::Show(header.total()))
    }

    /// What [`Step::Show`] was about.
    pub fn shown(&self) -> Option<Listing> {
        self.show.as_ref().map(|show| show.listing)
    }

    /// Answers it with those rows that the client asks for.
    pub fn show(&mut self, list: &List) {
        let Some(show) = self.show.take() else {
            return;
        };
        let columns: Vec<&[u8]> = list.columns.iter().map(|name| name.as_bytes()).collect();
        let made = TextResult {
            sequence: 1,
            deprecate_eof: self.connection.deprecates_eof(),
            extended: self.connection.facts.capabilities & EXTENDED_METADATA != 0,
            status: self.connection.last_status & STATUS_OF_SESSION,
            collation: match self.connection.facts.collation {
                0 => COLLATION,
                chosen => chosen,
            },
            columns: &columns,
        };
        let rows = list.rows.iter().filter(|row| show.wants(row));
        let rows = rows.map(|row| {
            let values = row.iter();
            values
                .map(|value| value.as_deref().map(str::as_bytes))
                .collect()
        });
        made.write(rows, &mut self.connection.down);
    }
}
