//! A session: what a connection knows, its job, and what becomes of the bytes of both sides.

mod follow;
mod several;
mod show;
mod turns;

use std::sync::Arc;

use keywright_core::{Cause, KeyBatch};
use keywright_wire::capability::MULTI_STATEMENTS;
use keywright_wire::protocol::IN_TRANSACTION;

use crate::answer::errors::write_error;
use crate::budget::Budget;
use crate::client::show::Show;
use crate::connection::Connection;
use crate::flow::{Flow, Rest};
use crate::job::{Job, Turn};
use crate::rules::Rules;
use crate::step::{Event, KeyFailure, SessionFacts};

pub use follow::RulesUpdate;

/// One connection after its authentication.
pub struct Session {
    pub(crate) connection: Connection,
    pub(crate) job: Job,
    /// The job of the statement at hand, where [`Job::Several`] are under way.
    pub(crate) child: Job,
    /// Whether the client gets an answer to SHOW KEYWRIGHT.
    pub(crate) sees_status: bool,
    /// The list that the client has asked for.
    pub(crate) show: Option<Box<Show>>,
}

impl Session {
    /// A session whose authentication has just succeeded. Without rules it is a passthrough.
    pub fn new(rules: Arc<Rules>, facts: SessionFacts) -> Self {
        Self {
            job: match rules.is_empty() {
                true => Job::Passthrough(Flow::new(facts.status)),
                false => Job::Idle,
            },
            child: Job::Idle,
            connection: Connection::new(rules, facts),
            sees_status: false,
            show: None,
        }
    }

    /// The same, but never a passthrough: whoever authenticates on this connection does so through the driver.
    #[must_use]
    pub fn must_see_change_user(mut self) -> Self {
        self.job = Job::Idle;
        self.connection.must_see_change_user = true;
        self
    }

    /// The same, whose prepared statements take their memory from there.
    #[must_use]
    pub fn with_budget(mut self, budget: Arc<dyn Budget>) -> Self {
        self.connection.budget = Some(budget);
        self
    }

    /// The driver has no memory for the bytes that the session asked for. The client's command is passed on if its beginning
    /// suffices to judge it, and refused otherwise.
    pub fn memory_full(&mut self) {
        self.connection.memory_full = true;
    }

    /// Starts over after COM_CHANGE_USER, which the driver has carried out. An earlier COM_SET_OPTION stays in force.
    pub fn reset(&mut self, facts: SessionFacts) {
        let before = &mut self.connection;
        let several = before.facts.capabilities & MULTI_STATEMENTS;
        let facts = SessionFacts {
            capabilities: facts.capabilities & !MULTI_STATEMENTS | several,
            ..facts
        };
        let mut fresh = Self::new(Arc::clone(&before.rules), facts);
        fresh.connection.budget = before.budget.take();
        // The driver may not have heard yet of what came before.
        fresh.connection.events = std::mem::take(&mut before.events);
        *self = match before.must_see_change_user {
            true => fresh.must_see_change_user(),
            false => fresh,
        };
    }

    /// Starts over after the server has refused COM_CHANGE_USER: user and database stay, everything else has to be asked for.
    pub fn refused(&mut self) {
        let sees_status = self.sees_status;
        let facts = SessionFacts {
            database: self.connection.context.database.clone(),
            ..self.connection.facts.clone()
        };
        self.reset(facts);
        self.sees_status = sees_status;
        self.connection.last_insert_id = None;
    }

    /// Gives back what is kept to be quicker with the next statement: none has come for a while.
    pub fn release(&mut self) {
        self.connection.release();
    }

    /// Bytes to be sent to the upstream before anything else.
    pub fn to_upstream(&mut self) -> &mut Vec<u8> {
        &mut self.connection.up
    }

    /// Bytes to be sent to the client before anything else.
    pub fn to_client(&mut self) -> &mut Vec<u8> {
        &mut self.connection.down
    }

    /// What happened since the driver last emptied it.
    pub fn events(&mut self) -> &mut Vec<Event> {
        &mut self.connection.events
    }

    /// Whether statements of one text wait, or the last of them is not answered yet.
    pub(crate) fn has_several(&self) -> bool {
        matches!(self.job, Job::Several(_))
    }

    /// What is under way for the statement at hand.
    pub(crate) fn at_hand(&self) -> &Job {
        match self.has_several() {
            true => &self.child,
            false => &self.job,
        }
    }

    pub(crate) fn at_hand_mut(&mut self) -> &mut Job {
        match self.has_several() {
            true => &mut self.child,
            false => &mut self.job,
        }
    }

    /// Whether it is the client's turn, and nothing is asked of the server.
    pub(crate) fn is_clients_turn(&self) -> bool {
        let connection = &self.connection;
        self.at_hand().turn() == Turn::Command
            && !connection.has_rest()
            && connection.probe.is_none()
    }

    /// Whether neither a command nor a transaction is under way, so that the connection can be ended here.
    pub fn is_between_commands(&self) -> bool {
        self.is_clients_turn()
            && !self.has_several()
            && self.connection.last_status & IN_TRANSACTION == 0
    }

    /// What a connection in passthrough is doing.
    pub fn rest(&self) -> Rest {
        self.at_hand().rest()
    }

    /// Whether the command at the front was refused at the fence, and waits for other rules.
    pub fn is_at_fence(&self) -> bool {
        self.at_hand().is_at_fence()
    }

    /// Whether the client is to send a file now.
    pub(crate) fn awaits_file(&self) -> bool {
        self.at_hand().awaits_file(&self.connection)
    }

    /// Keys, or why there are none; afterwards the client's side is asked again.
    pub fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        self.at_hand_mut().on_keys(keys);
    }

    /// Tells a client between two commands that the program is stopping. It is numbered as the answer to the next command, which
    /// is on its way already, or meets a closed connection otherwise.
    pub fn tell_stopping(&mut self) {
        let why = "Server shutdown in progress: keywright is stopping";
        write_error(Cause::Draining, why, 1, &mut self.connection.down);
    }

    /// The same, where the rules have changed and the connection cannot follow them.
    pub fn tell_outdated(&mut self) {
        let why = "Server shutdown in progress: the rules have changed, and this connection, or what it has prepared, goes by the old ones: connect again";
        write_error(Cause::Draining, why, 1, &mut self.connection.down);
    }
}
