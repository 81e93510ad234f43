//! A prepared INSERT that the server is to give a key of its own: after `SET insert_id`, which only a key that the server makes
//! uses up. What the client knows as its statement names the key, so the client's text is prepared beside it.

use keywright_rewrite::Unsupported;
use keywright_wire::answer::{End, Shape};
use keywright_wire::bulk::Bulk;
use keywright_wire::bytes::{Header, write_packet};
use keywright_wire::packets::write_command;
use keywright_wire::params::Execution;
use keywright_wire::protocol::COM_STMT_BULK_EXECUTE;

use crate::answer::after::After;
use crate::connection::Connection;
use crate::job::{Job, Next};
use crate::server::probe::Probe;
use crate::step::Step;

impl Connection {
    /// Executes a statement on a rule's table as its client wrote it.
    pub(crate) fn execute_as_is(
        &mut self,
        header: Header,
        id: u32,
        execution: &Execution<'_>,
    ) -> Next {
        let (number, after) = match self.as_is(header, id) {
            Ok(known) => known,
            Err(step) => return step.into(),
        };
        self.forget_command();
        let mut payload = Vec::new();
        execution.write(number, &execution.params, &mut payload);
        write_packet(&payload, 0, &mut self.up);
        self.answer.expect(execution.shape());
        Job::passing(after).with(Step::Consumed(header.total()))
    }

    /// The same of COM_STMT_BULK_EXECUTE, of which this follows the statement's number.
    pub(crate) fn bulk_as_is(&mut self, header: Header, id: u32, rest: &[u8]) -> Next {
        let (number, after) = match self.as_is(header, id) {
            Ok(known) => known,
            Err(step) => return step.into(),
        };
        self.forget_command();
        let mut payload = number.to_le_bytes().to_vec();
        let read = self.statements.ours.get_mut(&id).and_then(|statement| {
            let bulk = Bulk::read(rest, statement.parameters(), statement.types.as_deref()).ok()?;
            statement.types = Some(bulk.types.clone());
            Some(bulk)
        });
        match read {
            // Long data may have come while there were keys, and did not reach this text of the client's.
            Some(bulk) => bulk.write_with_types(&mut payload),
            // The server will say what is wrong with it.
            None => payload.extend_from_slice(rest),
        }
        write_command(COM_STMT_BULK_EXECUTE, &payload, &mut self.up);
        self.answer.expect(Shape::Results);
        Job::passing(after).with(Step::Consumed(header.total()))
    }

    /// The server's number for the client's text, and what its execution changes. `Err`: something comes first.
    fn as_is(&mut self, header: Header, id: u32) -> Result<(u32, After), Step> {
        let Some(of) = self.statements.text(id) else {
            return Err(self.refuse_execution(header, id, Unsupported::NotAsPlanned));
        };
        let Some(&number) = self.statements.as_is.get(&id) else {
            if let Some(what) = self.forbids_anew(&of) {
                return Err(match self.statements.selects.contains_key(&id) {
                    true => self.refuse_select_execution(header, id, what),
                    false => self.refuse_execution(header, id, what),
                });
            }
            let text = of.text.to_vec();
            return Err(self.ask_by_preparing(&text, Probe::AsIs(id)));
        };
        let effect = self.effect(of.text);
        if self.pending_last_insert_id.is_some() && effect.sees {
            return Err(self.update_last_insert_id(effect.counts));
        }
        Ok((number, self.note_effect(effect, After::Nothing)))
    }

    /// The client's text was prepared too.
    pub(crate) fn answer_as_is(&mut self, id: u32, end: Option<End>, answer: &[u8]) -> Job {
        match end {
            Some(End::Prepared {
                statement,
                parameters,
            }) => {
                let read = self.statements.parameters(id);
                if read.is_some_and(|read| read != usize::from(parameters)) {
                    return self.fail_other_parameters(statement, id);
                }
                self.statements.as_is.insert(id, statement);
                Job::Idle
            }
            Some(End::Ok(_) | End::Error) | None => self.fail_own(answer),
        }
    }
}
