//! What a program does about replies with ids of a strict tag: the decisions are the program's own.

use keywright_store::order::Written;
use keywright_store::order::confirm::Confirmations;

use super::{Flaw, LEASE_MS_MAX, Node, Pending, Reply};
use crate::store::Ask;

/// So long a request waits for a confirmation, milliseconds.
const CONFIRM_MS_MAX: u64 = 150;

/// A reply that is not let go yet.
#[derive(Debug, Clone, Copy)]
struct Held {
    reply: Reply,
    since: u64,
    epoch: u64,
}

/// Replies that wait.
#[derive(Debug, Default)]
pub struct Confirming {
    confirmations: Confirmations<Held>,
    pub(super) pending: Option<Pending>,
    /// By a flaw: those that came while the confirmation was under way.
    late: Vec<Held>,
    /// What may go.
    free: Vec<Reply>,
}

impl Node {
    pub(super) fn hold(&mut self, reply: Reply, epoch: u64, now: u64) {
        let held = Held {
            reply,
            since: now,
            epoch,
        };
        match self.has(Flaw::JoinUnderWay) && self.confirming.pending.is_some() {
            true => self.confirming.late.push(held),
            false => self.confirming.confirmations.join(epoch, held),
        }
    }

    /// A reply that was confirmed, or what was given up.
    pub(super) fn freed(&mut self) -> Option<Reply> {
        self.confirming.free.pop()
    }

    /// What it asks of the store now.
    pub(super) fn ask_to_confirm(&mut self, now: u64) -> Option<(u64, Ask)> {
        let clock = self.clock_ms(now);
        let is_late = |its: &mut Pending| clock >= its.sent_ms.saturating_add(LEASE_MS_MAX);
        if self.confirming.pending.take_if(is_late).is_some() {
            self.end(Written::Unknown, now);
        }
        if self.confirming.pending.is_some() {
            return None;
        }
        let epoch = self.confirming.confirmations.begin()?;
        let granted = self.candidate.granted_by();
        let Some((_, server)) = granted.filter(|(its, _)| *its == epoch) else {
            self.end(Written::No, now);
            return None;
        };
        let server = server.to_string();
        let pending = self.ask(Ask::Confirm { epoch, server }, now);
        let asked = (pending.number, pending.ask.clone());
        self.confirming.pending = Some(pending);
        Some(asked)
    }

    pub(super) fn confirmed(&mut self, pending: &Pending, stands: bool, now: u64) {
        let clock = self.clock_ms(now);
        let Ask::Confirm { epoch, .. } = pending.ask else {
            return;
        };
        match stands {
            true => {
                let sent_ms = pending.sent_ms;
                self.candidate.renewed(epoch, Written::Yes, sent_ms, clock);
                self.end(Written::Yes, now);
            }
            false => {
                self.candidate.lost(epoch, clock);
                self.end(Written::No, now);
            }
        }
    }

    fn end(&mut self, written: Written, now: u64) {
        let mut all = self.confirming.confirmations.end();
        all.append(&mut self.confirming.late);
        for held in all {
            let is_free = match written {
                Written::Yes => true,
                Written::Unknown if self.has(Flaw::LetGoOnUnknown) => true,
                Written::Unknown if now < held.since + CONFIRM_MS_MAX => {
                    self.confirming.confirmations.join(held.epoch, held);
                    continue;
                }
                Written::Unknown | Written::No => false,
            };
            let Reply { request, id } = held.reply;
            self.confirming.free.push(Reply {
                request,
                id: id.filter(|_| is_free),
            });
        }
    }
}
