//! An execution of a prepared INSERT that waits for its keys, with one row of parameters or many.

use keywright_core::KeyBatch;
use keywright_wire::answer::End;

use crate::client::decode::Undecoded;
use crate::connection::Connection;
use crate::insert::keys::Awaited;
use crate::job::{Job, Next, Turn, Work};
use crate::step::{KeyFailure, Step};

/// An execution under way, until it goes out.
#[derive(Debug)]
pub(crate) struct KeyedExecution {
    /// The statement's number.
    id: u32,
    /// It has many rows of parameters.
    is_bulk: bool,
    keys: Awaited,
}

impl KeyedExecution {
    /// Asks for so many keys of a rule.
    pub(crate) fn begin(
        connection: &Connection,
        (id, is_bulk): (u32, bool),
        rule: usize,
        keys: u64,
    ) -> Next {
        let step = connection.keys_step(rule, keys);
        let keys = Awaited::Asked;
        Job::Work(Box::new(Self { id, is_bulk, keys })).with(step)
    }
}

impl Work for KeyedExecution {
    fn turn(&self) -> Turn {
        self.keys.turn()
    }

    fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        self.keys = Awaited::Here(keys);
    }

    /// The command is still at the front: it goes out with its keys.
    fn on_client(
        mut self: Box<Self>,
        connection: &mut Connection,
        bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        let Some(keys) = self.keys.take() else {
            return Ok(Job::Work(self).with(Step::Blocked));
        };
        let whole = connection.whole_command(bytes)?;
        let (id, header) = (self.id, whole.header);
        let rest = whole.payload.get(4..).unwrap_or_default();
        if self.is_bulk {
            return Ok(connection.bulk_with_keys(header, id, rest, keys)?);
        }
        let computed = match connection.computed_params(header, id) {
            Ok(computed) => computed,
            Err(step) => return Ok(step.into()),
        };
        Ok(match connection.read_keyed(header, id, rest, &computed) {
            Ok(execution) => connection.execute_with(header, id, &execution, keys),
            Err(step) => step.into(),
        })
    }

    fn on_reply(
        self: Box<Self>,
        _connection: &mut Connection,
        _end: Option<End>,
        _answer: &[u8],
    ) -> Job {
        Job::Work(self)
    }
}
