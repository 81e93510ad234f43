//! Another user on a connection, who logs in on both sides.

use std::io;

use super::{Of, Relay};
use crate::handshake::{self, Change};

impl Relay {
    /// COM_CHANGE_USER; false if the connection cannot go on. The client waits for its end, so whatever else it has sent breaks the
    /// protocol.
    pub(super) async fn change_user(&mut self, count: usize) -> io::Result<bool> {
        let there = self.client.input.there();
        let command = there.get(..count).unwrap_or_default().to_vec();
        if let Err(overrun) = self.client.input.drop_front(count) {
            self.overran(Of::Client, overrun);
            return Ok(false);
        }
        if !self.client.input.there().is_empty() {
            return Ok(false);
        }
        self.keep_alive();
        let (client, upstream) = (&mut self.client.stream, &mut self.upstream.stream);
        let change =
            handshake::change_user(client, upstream, &command, &mut self.login, &self.span);
        match change.await? {
            Change::Entered => {
                let sees_status = self.context.allows_status(&self.login.facts);
                self.session.reset(self.login.facts.clone());
                self.session.allow_status(sees_status);
                if let Some(entered) = &self.context.entered {
                    entered.is_user(&self.login.facts.user);
                }
                Ok(true)
            }
            Change::Refused => {
                self.session.refused();
                Ok(true)
            }
            Change::Over => Ok(false),
        }
    }
}
