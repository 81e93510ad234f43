//! Statements whose keys the server makes, for a rule that may go over: that is counted, and what the fence leaves out is looked for.

use keywright_rewrite::Flavour;

use crate::connection::Connection;
use crate::job::Next;
use crate::step::StatementOutcome;

impl Connection {
    /// A command is passed on that cannot go out again, of a rule that may not give keys yet: MariaDB's warnings are looked at before its
    /// client hears that it succeeded.
    pub(crate) fn watch_fence(&self, next: Next, rule: usize) -> Next {
        let is_maria = self.facts.server.flavour == Flavour::MariaDb;
        match is_maria && self.rules.is_switched(rule) && !self.rewrites(rule) {
            true => next.watching_fence(),
            false => next,
        }
    }

    /// The server makes ids for a statement of a rule that gives none.
    pub(crate) fn note_native(&mut self, rule: usize, rows_max: Option<u64>) {
        if !self.rewrites(rule) {
            let ids = rows_max.map(|rows| rows.saturating_mul(self.context.increment.max(1)));
            self.note(Some(rule), StatementOutcome::Native(ids));
        }
    }
}
