//! Other texts of a prepared INSERT: which one serves an execution, and how it is prepared upstream.

use keywright_rewrite::{LastInsertId, Unread, Unsupported, Variant};
use keywright_wire::answer::End;
use keywright_wire::bytes::Header;
use keywright_wire::packets::write_close;

use crate::connection::Connection;
use crate::job::Job;
use crate::prepared::statements::{Made, Statement};
use crate::server::probe::Probe;
use crate::step::Step;

impl Connection {
    pub(crate) fn prepare_variant(&mut self, header: Header, id: u32, variant: Variant) -> Step {
        let Some(statement) = self.statements.ours.get(&id) else {
            return self.refuse_execution(header, id, Unsupported::NotAsPlanned);
        };
        let of = self.statements.text(id);
        let forbids = of.map_or(Some(Unsupported::NotAsPlanned), |of| self.forbids_anew(&of));
        if let Some(what) = forbids {
            return self.refuse_execution(header, id, what);
        }
        let spacing = self.spacing_of(statement.rule);
        let prepared = statement.plan.prepare(&statement.text, variant, spacing);
        match prepared {
            Ok(mut prepared) => {
                let text = std::mem::take(&mut prepared.text);
                let made = Made {
                    variant,
                    spacing,
                    number: 0,
                    prepared,
                    is_outdated: false,
                };
                self.ask_by_preparing(&text, Probe::Variant(id, Box::new(made)))
            }
            Err(Unread::Unsupported(what)) => {
                self.refuse_unsupported(header, self.rule_of_statement(id), what)
            }
            Err(Unread::Refused) => {
                let what = Unsupported::NotAsPlanned;
                self.refuse_unsupported(header, self.rule_of_statement(id), what)
            }
        }
    }

    pub(crate) fn answer_variant(
        &mut self,
        id: u32,
        made: Made,
        end: Option<End>,
        answer: &[u8],
    ) -> Job {
        match end {
            Some(End::Prepared {
                statement: number,
                parameters,
            }) => {
                let ours = self.statements.ours.get(&id);
                let read = ours.map(|statement| statement.parameters_of(&made.prepared));
                if read.is_some_and(|read| read != usize::from(parameters)) {
                    return self.fail_other_parameters(number, id);
                }
                let made = Made { number, ..made };
                let ours = self.statements.ours.get_mut(&id);
                if let Some(old) = ours.and_then(|statement| statement.add_variant(made)) {
                    write_close(old.number, &mut self.up);
                }
                Job::Idle
            }
            Some(End::Ok(_) | End::Error) | None => self.fail_own(answer),
        }
    }
}

/// The text for an execution: its first key is that of a row whose key is written, or of the first that asks for one.
pub(crate) fn variant_of(
    statement: &Statement,
    asking: Option<u32>,
    last_insert_id: LastInsertId,
) -> Variant {
    match last_insert_id {
        LastInsertId::Wrapped => statement.plan.variant(asking),
        LastInsertId::Literal | LastInsertId::None => Variant::LITERAL,
    }
}
