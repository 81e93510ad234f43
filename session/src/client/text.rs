//! A statement sent as text: what it is, and whether it can be passed on untouched.

use keywright_wire::bytes::{Header, Joined, joined};
use keywright_wire::values::BadValue;

use crate::answer::after::After;
use crate::client::attributes::UNKNOWN_TYPE;
use crate::client::decode::Undecoded;
use crate::client::query::{Query, Whole};
use crate::client::reading::Reading;
use crate::connection::Connection;
use crate::job::Next;

impl Connection {
    pub(crate) fn query(&mut self, header: Header, bytes: &[u8]) -> Result<Next, Undecoded> {
        let (header, payload) = match joined(header, bytes, self.gather_bytes_max()) {
            Joined::Whole(header, payload) => (header, payload),
            Joined::More(_) if self.is_for_no_rule(header, bytes) => {
                return Ok(self.pass_unread(header, bytes, self.after_unread_insert()));
            }
            Joined::More(at_least) => return Err(Undecoded::More { at_least }),
            Joined::TooLong => return Ok(self.long_query(header, bytes)),
        };
        let whole = Whole::new(header, bytes, payload);
        match self.front_of(&whole.payload) {
            Ok(front) => Ok(self.whole_query(self.query_of(&whole, front))),
            Err(BadValue::Malformed) => Err(Undecoded::OutOfOrder),
            // Its text is not found.
            Err(BadValue::Type) => Ok(self.unsupported(whole.unread(), None, UNKNOWN_TYPE)),
        }
    }

    /// One that has come whole.
    fn whole_query(&mut self, query: Query<'_>) -> Next {
        let is_several = self.is_several(query.text);
        match self.is_beyond_reading(query.text, is_several) {
            Ok(None) => {}
            Ok(Some(what)) => {
                return self.unsupported_then(query, None, what, After::ANYTHING);
            }
            Err(step) => return step.into(),
        }
        if is_several && let Some(next) = self.several(query) {
            return next;
        }
        self.one(query)
    }

    /// One statement.
    fn one(&mut self, query: Query<'_>) -> Next {
        let kind = self.statement_kind(query.text);
        match self.read_kind(kind, query.text) {
            Err(()) => self.ask_context().into(),
            // The context is known here: otherwise the statement would not be read as an INSERT.
            Ok(Reading::Insert) if self.context.insert_id_set => {
                self.pass_query(query, After::Nothing)
            }
            Ok(Reading::Insert) => self.insert(query, kind),
            Ok(Reading::Load(table)) => self.load(query, &table),
            Ok(Reading::NextValue(next)) => self.next_value(query, next),
            Ok(Reading::Pass(after)) => match self.enter_named(query.header, query.text) {
                Some(step) => step.into(),
                None => self.pass_kind(kind, query, after),
            },
            Ok(Reading::Unsupported(table, what, after)) => {
                let rule = match after.names_text() {
                    true => self.rule_behind(&table),
                    false => match self.rule_now(&table) {
                        Ok(rule) => rule,
                        Err(question) => return self.ask(&question).into(),
                    },
                };
                match rule {
                    Some(_) => self.unsupported_then(query, rule, what, after),
                    None => self.pass_query(query, after),
                }
            }
            Ok(Reading::Hidden(what)) => self.unsupported_then(query, None, what, After::ANYTHING),
            Ok(Reading::Prepare(statement)) => self.prepare_text(query, *statement),
            Ok(Reading::Execute(name)) => self.execute_text(query, &name),
        }
    }
}
