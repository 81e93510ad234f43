//! What is known of a client.

use keywright_resp::reply::Protocol;

/// Who is connected, and how answers are written for it.
#[derive(Debug)]
pub(super) struct Client {
    number: u64,
    protocol: Protocol,
    name: Vec<u8>,
    is_let_in: bool,
}

impl Client {
    /// The connection with this number; it must say a password unless it is let in.
    pub(super) fn new(number: u64, is_let_in: bool) -> Self {
        Self {
            number,
            protocol: Protocol::default(),
            name: Vec::new(),
            is_let_in,
        }
    }

    /// The connection's number, as in the log.
    pub(super) fn id(&self) -> i64 {
        i64::try_from(self.number).unwrap_or(i64::MAX)
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

    /// Whether it may ask for keys.
    pub(super) fn is_let_in(&self) -> bool {
        self.is_let_in
    }

    pub(super) fn let_in(&mut self) {
        self.is_let_in = true;
    }

    /// As it began.
    pub(super) fn reset(&mut self, is_let_in: bool) {
        *self = Self::new(self.number, is_let_in);
    }
}
