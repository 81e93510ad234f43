//! What is known of a client.

use std::sync::Arc;

use keywright_resp::reply::Protocol;
use keywright_store::Failure;
use keywright_store::users::User;

use crate::port::access::Who;
use crate::port::keys::PortKeys;
use crate::users::turns::Line;

/// Wrong passwords of one connection, after which it ends.
const LOGIN_FAILURES_MAX: u32 = 5;
/// Requests of a client that has not said who it is, after which its connection ends: drivers begin with a dozen at most, all at once.
const REFUSALS_MAX: u32 = 32;

/// Who is connected, and how answers are written for it.
#[derive(Debug)]
pub(super) struct Client {
    number: u64,
    protocol: Protocol,
    name: Vec<u8>,
    who: Who,
    line: Line,
    login_failures: u32,
    /// Requests that were refused since nobody knows who it is.
    refusals: u32,
    /// Whether the listener says that it is in a cluster.
    is_in_cluster: bool,
}

impl Client {
    /// The connection with this number, of whoever it is at first. `line`: where it waits with its passwords.
    pub(super) fn new((number, line): (u64, Line), who: Who, is_in_cluster: bool) -> Self {
        Self {
            number,
            line,
            protocol: Protocol::default(),
            name: Vec::new(),
            who,
            login_failures: 0,
            refusals: 0,
            is_in_cluster,
        }
    }

    /// The connection's number, as in the log.
    pub(super) fn id(&self) -> i64 {
        i64::try_from(self.number).unwrap_or(i64::MAX)
    }

    /// Where it waits until a password is looked at.
    pub(super) fn line(&self) -> Line {
        self.line
    }

    /// Whether the listener says that it is in a cluster.
    pub(super) fn is_in_cluster(&self) -> bool {
        self.is_in_cluster
    }

    /// What it calls itself.
    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(super) fn set_name(&mut self, name: &[u8]) {
        name.clone_into(&mut self.name);
    }

    /// How answers are written.
    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(super) fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Who it is.
    pub(super) fn who(&self) -> &Who {
        &self.who
    }

    /// Whether it may ask for anything.
    pub(super) fn is_let_in(&self) -> bool {
        match self.who {
            Who::Anybody | Who::User(_) => true,
            Who::Stranger => false,
        }
    }

    /// It knows the password of the listener.
    pub(super) fn let_in(&mut self) {
        self.who = Who::Anybody;
        self.refusals = 0;
    }

    /// It has said who it is.
    pub(super) fn is_user(&mut self, user: Arc<User>) {
        self.who = Who::User(user);
        self.refusals = 0;
    }

    /// Looks who it is by now: rights follow the store.
    ///
    /// # Errors
    /// Its user is no more, or has another password; or nobody knows.
    pub(super) fn look_again(&mut self, keys: &PortKeys) -> Result<(), Failure> {
        if let Who::User(_) = self.who {
            self.who = self.who.now(keys)?;
        }
        Ok(())
    }

    /// It said a wrong password. True: too often.
    pub(super) fn has_failed(&mut self) -> bool {
        self.login_failures = self.login_failures.saturating_add(1);
        self.login_failures >= LOGIN_FAILURES_MAX
    }

    /// It was refused something because nobody knows who it is. True: too often.
    pub(super) fn was_refused(&mut self) -> bool {
        self.refusals = self.refusals.saturating_add(1);
        self.refusals >= REFUSALS_MAX
    }

    /// As it began, but for what it has tried.
    pub(super) fn reset(&mut self, who: Who) {
        *self = Self {
            login_failures: self.login_failures,
            refusals: self.refusals,
            ..Self::new((self.number, self.line), who, self.is_in_cluster)
        };
    }
}
