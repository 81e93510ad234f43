//! An INSERT or REPLACE sent as text: whichever way it goes out.

use keywright_rewrite::Kind;

use crate::answer::after::After;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::values::Decided;
use crate::job::Next;

impl Connection {
    /// An INSERT or REPLACE, sent as text.
    pub(crate) fn insert(&mut self, query: Query<'_>, kind: Kind) -> Next {
        match self.decide(query, query.text) {
            Decided::Keys(rule, plan) => self.insert_of_keys(query, (rule, plan), None),
            Decided::Query(rule, plan) => self.select(query, rule, plan),
            Decided::Pass | Decided::Bound(_) => self.pass_kind(kind, query, After::Nothing),
            Decided::Unread(rule, what) => self.insert_computed((query, kind), rule, what),
            Decided::Not(next) => next,
        }
    }
}
