//! One side's bytes are shown to the session, and what it says is carried out.

use keywright_core::KeyBatch;
use keywright_session::Step;

use super::{Halt, Moved, Of, Relay, Waits};
use crate::connection::input::Overrun;
use crate::connection::side::{Wants, is_pending};
use crate::in_force::key_log::log_keys;

impl Relay {
    /// Shows the session what there is of one side.
    pub(super) fn step(&mut self, of: Of) -> Moved {
        let (from, to) = match of {
            Of::Client => (&mut self.client, &mut self.upstream),
            Of::Upstream => (&mut self.upstream, &mut self.client),
        };
        if is_pending(from, to) {
            return Moved::No;
        }
        if matches!(of, Of::Client) && from.is_behind() {
            // Its commands would be answered by the session itself, into memory. Once it has read, it is asked again.
            from.wants = Wants::Other;
            return Moved::No;
        }
        let says_nothing = match of {
            Of::Client => self.session.needs_client_bytes(),
            Of::Upstream => true,
        };
        if says_nothing && from.input.is_empty() {
            // The session has nothing to say to that. What it has said meanwhile, as of keys that there are not, goes out.
            from.wants = Wants::More(1);
            self.take_said();
            return Moved::No;
        }
        let is_goodbye = matches!(of, Of::Client) && self.says_goodbye();
        let from = match of {
            Of::Client => &mut self.client,
            Of::Upstream => &mut self.upstream,
        };
        let is_starved = from.input.is_starved();
        if is_starved {
            self.session.memory_full();
        }
        let step = match of {
            Of::Client => self.session.on_client_in_place(&mut from.input),
            Of::Upstream => self.session.on_upstream(from.input.there()),
        };
        self.take_said();
        self.carry_out(of, step, (is_starved, is_goodbye))
    }

    /// Takes over what the session itself has to say to both sides.
    #[inline]
    fn take_said(&mut self) {
        self.upstream
            .take_own(&mut self.client, self.session.to_upstream());
        self.client
            .take_own(&mut self.upstream, self.session.to_client());
    }

    /// Does what the session has said of one side. `is_starved`: it has no memory for more; `is_goodbye`: it says COM_QUIT.
    fn carry_out(&mut self, of: Of, step: Step, (is_starved, is_goodbye): (bool, bool)) -> Moved {
        let from = match of {
            Of::Client => &mut self.client,
            Of::Upstream => &mut self.upstream,
        };
        from.wants = Wants::More(1);
        match step {
            Step::Forward(count) => {
                if let Err(overrun) = from.input.clear(count) {
                    return self.overran(of, overrun);
                }
                if matches!(of, Of::Client) {
                    self.has_said_goodbye = is_goodbye;
                    self.upstream.is_to_close = self.has_left();
                }
                self.end_waits(of);
                Moved::Yes
            }
            Step::Consumed(count) => {
                if let Err(overrun) = from.input.drop_front(count) {
                    return self.overran(of, overrun);
                }
                self.end_waits(of);
                Moved::Yes
            }
            // The client has got the error, and still sends more.
            Step::More { .. } if is_starved => Moved::Halt(Halt::Close),
            Step::More { at_least } => {
                from.wants = Wants::More(at_least);
                Moved::No
            }
            Step::Blocked => {
                from.wants = Wants::Other;
                Moved::No
            }
            Step::Wait => Moved::Halt(Halt::Wait),
            Step::Keys(request) => match self.context.try_keys(request) {
                Some(keys) => {
                    self.log_keys(request.rule, &keys);
                    self.session.on_keys(Ok(keys));
                    Moved::Yes
                }
                None => Moved::Halt(Halt::Keys(request)),
            },
            Step::Show(count) => {
                if let Err(overrun) = from.input.drop_front(count) {
                    return self.overran(of, overrun);
                }
                self.show();
                Moved::Yes
            }
            Step::Authenticate(count) if self.is_quiet() => Moved::Halt(Halt::Authenticate(count)),
            // What was said before goes out before.
            Step::Authenticate(_) => {
                self.client.wants = Wants::Other;
                Moved::No
            }
            Step::Close => Moved::Halt(Halt::Close),
        }
    }

    /// Something was passed on of one side. What the server has said of a statement is no news of one that it has refused at the fence: that is sent
    /// again, and would begin to wait anew for ever.
    fn end_waits(&mut self, of: Of) {
        let at_fence = match of {
            Of::Client => None,
            Of::Upstream => self.waits.at_fence,
        };
        self.waits = Waits {
            at_fence,
            ..Waits::default()
        };
    }

    /// Where the rule says so, the log tells which keys a statement gets.
    pub(super) fn log_keys(&self, rule: usize, keys: &KeyBatch) {
        if let Some(rule) = self.context.logged(rule) {
            self.span.in_scope(|| log_keys(rule, keys));
        }
    }

    /// The session has spoken of more than has come: nobody knows any more where the next packet begins.
    pub(super) fn overran(&self, of: Of, overrun: Overrun) -> Moved {
        self.span.in_scope(|| {
            let cause = "session_overran";
            tracing::error!(cause, side = ?of, "connection ended by a fault of keywright's: {overrun}");
        });
        Moved::Halt(Halt::Close)
    }

    fn show(&mut self) {
        if let (Some(status), Some(listing)) = (&self.context.status, self.session.shown()) {
            self.session.show(&status.list(listing));
        }
        self.client
            .take_own(&mut self.upstream, self.session.to_client());
    }
}
