//! A statement on a rule's table whose PREPARE is under way.

use keywright_wire::answer::End;
use keywright_wire::bytes::Header;
use keywright_wire::packets::{without_injected, write_close};

use crate::client::decode::Undecoded;
use crate::connection::Connection;
use crate::job::{Job, Next, Turn, Work};
use crate::prepared::select_statement::SelectStatement;
use crate::prepared::statements::{NextValueStatement, Statement};
use crate::step::Step;

/// A statement whose PREPARE is under way, with room for its keys.
#[derive(Debug)]
pub(crate) enum Preparing {
    /// It has rows.
    Rows(Statement),
    /// Its rows come from a query.
    Query(SelectStatement),
    /// It asks for keys.
    NextValue(NextValueStatement),
}

impl Work for Preparing {
    fn turn(&self) -> Turn {
        Turn::Upstream
    }

    fn on_client(
        self: Box<Self>,
        _connection: &mut Connection,
        _bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        Ok(Job::Work(self).with(Step::Blocked))
    }

    /// The upstream's answer has come whole.
    fn on_reply(
        self: Box<Self>,
        connection: &mut Connection,
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        match *self {
            Self::Rows(mut statement) => {
                let of = (Some(statement.rule), statement.parameters());
                let hidden = statement.hidden();
                let Some(made) = statement.variants.first_mut() else {
                    return Job::Idle;
                };
                if let Some(number) = connection.tell_prepared(end, answer, of, &hidden) {
                    made.number = number;
                    connection.statements.ours.insert(number, statement);
                }
            }
            Self::Query(select) => {
                let (of, injected) = ((Some(select.rule), select.parameters()), select.injected());
                if let Some(number) = connection.tell_prepared(end, answer, of, &injected) {
                    connection.statements.selects.insert(number, select);
                }
            }
            Self::NextValue(next) => {
                let of = (connection.rule_behind(&next.next.table), 0);
                if let Some(number) = connection.tell_prepared(end, answer, of, &next.injected()) {
                    connection.statements.next_values.insert(number, next);
                }
            }
        }
        Job::Idle
    }
}

impl Connection {
    /// Sends the client the answer to its PREPARE, without the parameters that were put in. `own` is how many the client knows of. Returns
    /// the statement's number if it succeeded.
    fn tell_prepared(
        &mut self,
        end: Option<End>,
        answer: &[u8],
        (rule, own): (Option<usize>, usize),
        injected: &[u16],
    ) -> Option<u32> {
        let Some(End::Prepared {
            statement,
            parameters,
        }) = end
        else {
            self.down.extend_from_slice(answer);
            return None;
        };
        if usize::from(parameters) != own.saturating_add(injected.len()) {
            let sequence = Header::read(answer).map_or(1, |header| header.sequence);
            self.refuse_other_parameters(statement, rule, sequence);
            return None;
        }
        let deprecates = self.deprecates_eof();
        if injected.is_empty() {
            self.down.extend_from_slice(answer);
        } else if without_injected(answer, injected, deprecates, &mut self.down).is_none() {
            write_close(statement, &mut self.up);
            self.tell_out_of_order();
            return None;
        }
        self.statements.last = statement;
        Some(statement)
    }
}
