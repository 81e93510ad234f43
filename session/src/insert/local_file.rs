//! The client's file of a LOAD DATA LOCAL into a table with a rule. It stays behind the command in the client's bytes until its
//! lines are counted and have keys.

use keywright_core::Cause;
use keywright_rewrite::Unsupported;
use keywright_wire::answer::End;
use keywright_wire::bytes::{HEADER_BYTES, Header};
use keywright_wire::packets::last_packet;
use keywright_wire::protocol::LOCAL_INFILE;

use crate::connection::Connection;
use crate::insert::load::Phase;
use crate::job::{Gather, Job, Next};
use crate::step::Step;

/// Ends a file that holds nothing.
pub(crate) const NO_MORE: [u8; 4] = [0, 0, 0, 2];

/// A file that has come whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    bytes: usize,
    /// Number of its last packet.
    sequence: u8,
}

impl File {
    /// A header as if command and file were one packet.
    pub(crate) fn whole(&self, command: Header) -> Header {
        Header {
            len: command.len.saturating_add(self.bytes),
            sequence: self.sequence,
        }
    }
}

/// A file that is on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Taking {
    /// It is gathered behind the command.
    Gathering {
        command: usize,
        /// Bytes that were read.
        bytes: usize,
        /// Lines that have ended.
        lines: u64,
        continues: bool,
    },
    /// It is too long: what comes is dropped, so many bytes of this packet first.
    Dropping { left: usize, continues: bool },
}

/// A file that is sent on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sending {
    /// The command before it is still there.
    Command,
    /// So many bytes are left.
    File(usize),
}

/// How many bytes of a text are `byte`.
fn count(text: &[u8], byte: u8) -> u64 {
    let found = memchr::memchr_iter(byte, text).count();
    u64::try_from(found).unwrap_or(u64::MAX)
}

impl Connection {
    /// The upstream asks for the file of a statement that the session rewrites.
    pub(crate) fn file_wanted(&mut self, job: &Job, request: &[u8]) -> Step {
        let phase = self.stage.load.as_mut().map(|load| &mut load.phase);
        match (job, phase) {
            (Job::Gathering(Gather::FileName), Some(phase @ Phase::Asked)) => {
                *phase = Phase::Named;
                // Reports of progress may come before it.
                self.gathered = last_packet(request).to_vec();
                self.up.extend(NO_MORE);
                self.answer.local_file_sent();
                Step::Consumed(request.len())
            }
            (Job::Gathering(Gather::Load), Some(phase)) => {
                let Phase::Sent(first) = *phase else {
                    return self.malformed();
                };
                *phase = Phase::Sending(first, Sending::Command);
                Step::Consumed(request.len())
            }
            _ => self.malformed(),
        }
    }

    /// The upstream has said which file it wants, or that it wants none.
    pub(crate) fn answer_file_name(&mut self, end: Option<End>, answer: &[u8]) -> Job {
        let asks = answer.get(HEADER_BYTES) == Some(&LOCAL_INFILE);
        let request = Header::read(answer)
            .filter(|_| asks)
            .map(|header| header.total());
        let (request, answer) = answer
            .split_at_checked(request.unwrap_or(0))
            .unwrap_or_default();
        let answer = last_packet(answer);
        if asks && matches!(end, Some(End::Ok(_))) {
            self.down.extend_from_slice(request);
            return Job::File;
        }
        // An error, which to the client comes at once.
        let mut answer = answer.to_vec();
        if let Some(sequence) = answer.get_mut(HEADER_BYTES - 1) {
            *sequence = 1;
        }
        self.down.extend(answer);
        self.forget_command();
        Job::Answered
    }

    /// The client's bytes while it sends its file.
    pub(crate) fn take_file(&mut self, bytes: &[u8]) -> Next {
        let Some(load) = &mut self.stage.load else {
            return Job::File.with(self.malformed());
        };
        match &load.phase {
            Phase::Taking(Taking::Dropping { left, continues }) => {
                let (left, continues) = (*left, *continues);
                self.drop_file(bytes, left, continues)
            }
            Phase::Taking(taking @ Taking::Gathering { .. }) => {
                let taking = *taking;
                self.gather_file(bytes, taking)
            }
            Phase::Named => {
                let Some(header) = Header::read(bytes) else {
                    return Job::File.with(self.malformed());
                };
                let command = command_bytes(header, bytes);
                self.gather_file(
                    bytes,
                    Taking::Gathering {
                        command,
                        bytes: 0,
                        lines: 0,
                        continues: false,
                    },
                )
            }
            Phase::Keys
            | Phase::Start(_)
            | Phase::Ready(_)
            | Phase::Sent(_)
            | Phase::Asked
            | Phase::Sending(..)
            | Phase::Refused(_) => Job::File.with(self.malformed()),
        }
    }

    fn gather_file(&mut self, all: &[u8], taking: Taking) -> Next {
        let bytes_max = self.gather_bytes_max();
        let Taking::Gathering {
            command,
            mut bytes,
            mut lines,
            mut continues,
        } = taking
        else {
            return Job::File.with(self.malformed());
        };
        let Some(load) = &mut self.stage.load else {
            return Job::File.with(self.malformed());
        };
        let line_end = load.plan.line_end();
        let step = loop {
            let start = command.saturating_add(bytes);
            let Some(header) = all.get(start..).and_then(Header::read) else {
                if self.memory_full {
                    load.phase = Phase::Taking(Taking::Dropping {
                        left: start,
                        continues,
                    });
                    return Job::File.with(Step::Consumed(0));
                }
                break Step::More {
                    at_least: start.saturating_add(HEADER_BYTES),
                };
            };
            let end = start.saturating_add(header.total());
            if header.len == 0 && !continues {
                let file = File {
                    bytes: end.saturating_sub(command),
                    sequence: header.sequence,
                };
                load.file = Some(file);
                let Some(front) = Header::read(all) else {
                    return self.malformed().into();
                };
                let command = Header {
                    len: command.saturating_sub(HEADER_BYTES),
                    ..front
                };
                return self.file_taken(file.whole(command), lines.saturating_add(1));
            }
            if end.saturating_sub(command) > bytes_max {
                load.phase = Phase::Taking(Taking::Dropping {
                    left: end,
                    continues: header.continues(),
                });
                return Job::File.with(Step::Consumed(0));
            }
            let Some(packet) = all.get(start..end) else {
                break Step::More { at_least: end };
            };
            lines = lines.saturating_add(count(
                packet.get(HEADER_BYTES..).unwrap_or_default(),
                line_end,
            ));
            bytes = bytes.saturating_add(packet.len());
            continues = header.continues();
        };
        load.phase = Phase::Taking(Taking::Gathering {
            command,
            bytes,
            lines,
            continues,
        });
        Job::File.with(step)
    }

    /// Drops what comes up to the file's end, which is answered with an error.
    fn drop_file(&mut self, bytes: &[u8], left: usize, continues: bool) -> Next {
        let Some(load) = &mut self.stage.load else {
            return Job::File.with(self.malformed());
        };
        if left > 0 {
            if bytes.is_empty() {
                return Job::File.with(Step::More { at_least: 1 });
            }
            let now = left.min(bytes.len());
            let left = left - now;
            load.phase = Phase::Taking(Taking::Dropping { left, continues });
            return Job::File.with(Step::Consumed(now));
        }
        let Some(header) = Header::read(bytes) else {
            return Job::File.with(Step::More {
                at_least: HEADER_BYTES,
            });
        };
        if header.len > 0 || continues {
            load.phase = Phase::Taking(Taking::Dropping {
                left: header.total(),
                continues: header.continues(),
            });
            return Job::File.with(Step::Consumed(0));
        }
        let rule = load.rule;
        if self.memory_full {
            self.memory_full = false;
            let message = "keywright: statement buffer limit reached (memory_bytes_max)";
            return self.refuse(header, Cause::MemoryFull, message).into();
        }
        let what = Unsupported::LoadWith("LOCAL of a file longer than rewrite_bytes_max");
        self.refuse_unsupported(header, Some(rule), what).into()
    }

    /// The client's bytes while the upstream waits for its file.
    pub(crate) fn send_file(&mut self, bytes: &[u8]) -> Step {
        let Some(load) = &mut self.stage.load else {
            return self.malformed();
        };
        let (Phase::Sending(_, sending), Some(file)) = (&mut load.phase, load.file) else {
            return Step::Blocked;
        };
        match sending {
            Sending::Command => {
                *sending = Sending::File(file.bytes);
                match Header::read(bytes) {
                    Some(header) => Step::Consumed(command_bytes(header, bytes)),
                    None => self.malformed(),
                }
            }
            Sending::File(left) => {
                let now = (*left).min(bytes.len());
                if now == 0 {
                    return Step::More { at_least: 1 };
                }
                *left -= now;
                if *left == 0 {
                    self.answer.local_file_sent();
                }
                Step::Forward(now)
            }
        }
    }
}

/// Bytes of a command that has come whole, over all its packets.
fn command_bytes(first: Header, bytes: &[u8]) -> usize {
    let (mut end, mut header) = (first.total(), first);
    while header.continues() {
        match bytes.get(end..).and_then(Header::read) {
            Some(next) => header = next,
            None => break,
        }
        end = end.saturating_add(header.total());
    }
    end
}
