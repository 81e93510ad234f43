//! Connections in passthrough, which began when there were no rules: what they are doing, as far as the flow of their bytes shows it.

use keywright_wire::bytes::{HEADER_BYTES, Header};
use keywright_wire::done::{read_end, read_ok};
use keywright_wire::protocol::{COM_STMT_CLOSE, CURSOR_EXISTS, EOF, IN_TRANSACTION, MORE_RESULTS};

use crate::step::Step;

/// The last packet of rows: EOF, or OK in its place where nothing else is to be said.
const ENDS_BYTES: [usize; 2] = [9, 11];
/// The payload of the answer to a PREPARE without parameters and columns, which begins as an OK packet.
const PREPARED_BYTES: usize = 12;
/// A packet with COM_STMT_CLOSE, which has no answer.
const CLOSE_BYTES: usize = 9;

/// What a connection in passthrough is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// A command or a transaction is under way.
    Busy,
    /// The server has sent something last, perhaps not all of its answer. The number counts parts sent by both sides.
    Perhaps(u64),
    /// Nothing is under way.
    Yes,
}

/// The flow of its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow {
    /// The server has not said anything since it was asked something.
    is_asked: bool,
    /// The flags with which it ended its answer, if that was the end.
    status: Option<u16>,
    parts: u64,
}

impl Flow {
    /// Behind a login.
    pub(crate) fn new(status: u16) -> Self {
        Self {
            is_asked: false,
            status: Some(status),
            parts: 0,
        }
    }

    /// Passes on what the client sends.
    pub(crate) fn pass_client(&mut self, part: &[u8]) -> Step {
        if part.is_empty() {
            return Step::More { at_least: 1 };
        }
        self.on_client(part);
        Step::Forward(part.len())
    }

    /// Passes on what the upstream sends.
    pub(crate) fn pass_upstream(&mut self, part: &[u8]) -> Step {
        self.on_upstream(part);
        Step::Forward(part.len())
    }

    fn on_client(&mut self, part: &[u8]) {
        self.parts = self.parts.wrapping_add(1);
        self.is_asked |= !part.chunks(CLOSE_BYTES).all(is_close);
    }

    fn on_upstream(&mut self, part: &[u8]) {
        self.parts = self.parts.wrapping_add(1);
        self.is_asked = false;
        self.status = status_of(part);
    }

    /// What the connection is doing.
    pub(crate) fn rest(&self) -> Rest {
        const BUSY: u16 = IN_TRANSACTION | MORE_RESULTS | CURSOR_EXISTS;
        match self.status {
            _ if self.is_asked => Rest::Busy,
            Some(status) if status & BUSY != 0 => Rest::Busy,
            Some(_) => Rest::Yes,
            None => Rest::Perhaps(self.parts),
        }
    }
}

fn is_close(packet: &[u8]) -> bool {
    packet.len() == CLOSE_BYTES && packet.get(HEADER_BYTES) == Some(&COM_STMT_CLOSE)
}

/// The status flags at the end of an answer, if these bytes are it, or look like its end.
fn status_of(part: &[u8]) -> Option<u16> {
    let payload = part.get(HEADER_BYTES..)?;
    let is_one = Header::read(part)?.total() == part.len();
    if is_one && payload.first() == Some(&0) && payload.len() != PREPARED_BYTES {
        return read_ok(payload).map(|done| done.status);
    }
    ENDS_BYTES.iter().find_map(|bytes| {
        let end = part.get(part.len().checked_sub(*bytes)?..)?;
        let payload = end.get(HEADER_BYTES..)?;
        let is_end = Header::read(end)?.total() == end.len() && payload.first() == Some(&EOF);
        is_end.then(|| read_end(payload))?.map(|done| done.status)
    })
}

#[cfg(test)]
mod tests {
    use super::{Flow, Rest};

    #[test]
    fn the_last_bytes_tell_what_is_under_way() {
        let ok = |status| [7, 0, 0, 1, 0, 1, 5, status, 0, 0, 0];
        let rows = |status| {
            let rows = b"\x01\0\0\x01\x01\x02\0\0\x02de\x03\0\0\x03row";
            [rows.as_slice(), &[5, 0, 0, 4, 0xFE, 0, 0, status, 0]].concat()
        };
        let rows_and_ok = |status| {
            let rows = b"\x01\0\0\x01\x01\x02\0\0\x02de\x03\0\0\x03row";
            let end = [7, 0, 0, 4, 0xFE, 0, 0, status, 0, 0, 0];
            [rows.as_slice(), &end].concat()
        };
        let query = b"\x05\0\0\0\x03DO 0".as_slice();
        let close = b"\x05\0\0\0\x19\x01\0\0\0".as_slice();
        for (answer, rest) in [
            (ok(2).to_vec(), Rest::Yes),
            (ok(3).to_vec(), Rest::Busy),
            (rows(2), Rest::Yes),
            (rows(3), Rest::Busy),
            (rows(2 | 8), Rest::Busy),
            (rows_and_ok(2), Rest::Yes),
            (rows_and_ok(3), Rest::Busy),
            // An error, the beginning of rows, a statement that was prepared.
            (b"\x03\0\0\x01\xff\x01\x02".to_vec(), Rest::Perhaps(2)),
            (b"\x01\0\0\x01\x01\x02\0\0\x02de".to_vec(), Rest::Perhaps(2)),
            (
                b"\x0c\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0".to_vec(),
                Rest::Perhaps(2),
            ),
            (vec![7], Rest::Perhaps(2)),
        ] {
            let mut flow = Flow::new(2);
            assert_eq!(flow.rest(), Rest::Yes);
            flow.on_client(query);
            assert_eq!(flow.rest(), Rest::Busy);
            flow.on_upstream(&answer);
            assert_eq!(flow.rest(), rest, "{answer:?}");
            if rest == Rest::Yes {
                flow.on_client(&[close, close].concat());
                assert_eq!(flow.rest(), rest, "nothing answers that");
                flow.on_client(&[close, query].concat());
                assert_eq!(flow.rest(), Rest::Busy);
            }
        }
    }
}
