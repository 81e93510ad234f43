//! The client's turn, and the upstream's: what the driver does with their bytes.

use crate::insert::in_place::{Room, WritesInPlace};
use crate::job::Job;
use crate::session::Session;
use crate::step::Step;

impl Session {
    /// Whether the client's turn is over until more of its bytes have come. Otherwise the session may have more to say: a statement of several steps goes
    /// on, or the next of several is sent.
    #[inline]
    pub fn needs_client_bytes(&self) -> bool {
        match self.job {
            Job::Idle | Job::Passing { .. } | Job::Rewritten(_) | Job::Passthrough(_) => true,
            Job::Answered | Job::Work(_) | Job::Several(_) => false,
        }
    }

    /// What to do with the client's bytes that were not consumed yet.
    pub fn on_client(&mut self, bytes: &[u8]) -> Step {
        if let Some(step) = self.next_of_several() {
            return step;
        }
        match self.show_asked(bytes) {
            Some(step) => step,
            None => self.job.on_client(&mut self.connection, bytes),
        }
    }

    /// As [`Session::on_client`], of bytes that may be written to: a long INSERT gets its keys where it lies, and is forwarded.
    pub fn on_client_in_place(&mut self, bytes: &mut impl Room) -> Step {
        self.connection.in_place = WritesInPlace::May;
        let step = self.on_client(bytes.there());
        let rewriting = match std::mem::take(&mut self.connection.in_place) {
            WritesInPlace::No | WritesInPlace::May => return step,
            WritesInPlace::Will(rewriting) => rewriting,
        };
        match rewriting.write(bytes) {
            Some(total) => Step::Forward(total),
            None => self.connection.end_out_of_order(),
        }
    }

    /// What to do with the upstream's bytes that were not consumed yet.
    pub fn on_upstream(&mut self, bytes: &[u8]) -> Step {
        if bytes.is_empty() {
            return Step::More { at_least: 1 };
        }
        match self.answer_of_several(bytes) {
            Some(step) => step,
            None => self.job.on_upstream(&mut self.connection, bytes),
        }
    }
}
