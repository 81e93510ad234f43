//! What the two sockets take and give.

use std::io;
use std::task::Context;

use super::{Activity, Relay};
use crate::connection::side::{is_pending, poll_pass};

impl Relay {
    /// Writes what the sockets take.
    #[inline]
    pub(super) fn pass(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.pending() {
            (false, false) => Ok(()),
            pending => self.pass_pending(pending, context),
        }
    }

    fn pass_pending(
        &mut self,
        (up, down): (bool, bool),
        context: &mut Context<'_>,
    ) -> io::Result<()> {
        if up && let Err(error) = poll_pass(&mut self.client, &mut self.upstream, context) {
            // It has ended; what it said before is still to be read.
            self.span
                .in_scope(|| self.upstream.note(&error, "writing to the upstream"));
            self.upstream.is_deaf = true;
            poll_pass(&mut self.client, &mut self.upstream, context)?;
        }
        if down {
            poll_pass(&mut self.upstream, &mut self.client, context)?;
        }
        // A side whose bytes have all gone may say more.
        let (up_now, down_now) = self.pending();
        self.is_due |= (up && !up_now) || (down && !down_now);
        Ok(())
    }

    /// Whether something is on its way to the upstream, and to the client.
    #[inline]
    pub(super) fn pending(&self) -> (bool, bool) {
        (
            is_pending(&self.client, &self.upstream),
            is_pending(&self.upstream, &self.client),
        )
    }

    /// Reads what there is, from whom the other side is not behind; false when there was nothing.
    pub(super) fn read(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut was_read = false;
        if !is_pending(&self.upstream, &self.client) {
            was_read |= self.upstream.poll_read(context).unwrap_or_else(|error| {
                // Its last words are passed on as before any other end.
                self.span
                    .in_scope(|| self.upstream.note(&error, "reading from the upstream"));
                self.upstream.input.end();
                true
            });
        }
        if !is_pending(&self.client, &self.upstream) {
            was_read |= self.client.poll_read(context)?;
            self.read_to_end(context);
        }
        if was_read {
            self.activity = Activity::Active;
        }
        // A reset is no byte to be passed on.
        self.is_at_rest &= !was_read || self.upstream.was_reset;
        Ok(was_read)
    }
}
