//! Packets on a stream.

use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};

use anyhow::{Context, bail};

use crate::Result;

/// The longest part of a packet; a longer payload goes in several, the last of them shorter than this.
const PART_BYTES_MAX: usize = 0xff_ffff;

pub(super) trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// One connection's packets, their sequence numbers checked.
pub(super) struct Channel {
    stream: BufReader<Box<dyn Stream>>,
    sequence: u8,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

impl Channel {
    pub(super) fn new(stream: Box<dyn Stream>) -> Channel {
        Channel {
            stream: BufReader::new(stream),
            sequence: 0,
        }
    }

    /// Goes on over something that is spoken on the connection. Nothing of it may have been read yet.
    pub(super) fn over(
        self,
        speak: impl FnOnce(Box<dyn Stream>) -> Result<Box<dyn Stream>>,
    ) -> Result<Channel> {
        Ok(Channel {
            stream: BufReader::new(speak(self.stream.into_inner())?),
            sequence: self.sequence,
        })
    }

    /// The next packet written begins an exchange.
    pub(super) fn begin(&mut self) {
        self.sequence = 0;
    }

    /// The next packet read begins the answer to one that was sent, perhaps with others after it.
    pub(super) fn expect_answer(&mut self) {
        self.sequence = 1;
    }

    pub(super) fn write(&mut self, payload: &[u8]) -> Result<()> {
        let mut bytes = Vec::with_capacity(payload.len() + 4);
        let mut rest = payload;
        loop {
            let (part, after) = rest.split_at(rest.len().min(PART_BYTES_MAX));
            let [a, b, c, ..] = part.len().to_le_bytes();
            bytes.extend([a, b, c, self.sequence]);
            bytes.extend(part);
            self.sequence = self.sequence.wrapping_add(1);
            rest = after;
            if part.len() < PART_BYTES_MAX {
                break;
            }
        }
        self.write_raw(&bytes)
    }

    pub(super) fn write_raw(&mut self, bytes: &[u8]) -> Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes).context("sending a packet")
    }

    /// Waits until something is there to read, or the end.
    pub(super) fn wait(&mut self) -> Result<()> {
        self.stream.fill_buf().context("waiting for a packet")?;
        Ok(())
    }

    /// Everything that still comes, and the error that it ends with, if it is not an orderly end.
    pub(super) fn read_to_end(&mut self) -> (Vec<u8>, Option<ErrorKind>) {
        let mut bytes = Vec::new();
        // What came before an error is in it all the same.
        let ended = self.stream.read_to_end(&mut bytes);
        (bytes, ended.err().map(|error| error.kind()))
    }

    pub(super) fn read(&mut self) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        loop {
            let mut head = [0; 4];
            self.stream
                .read_exact(&mut head)
                .context("reading a packet's head")?;
            let [a, b, c, sequence] = head;
            if sequence != self.sequence {
                bail!(
                    "packet {sequence} came where {} was expected",
                    self.sequence
                );
            }
            self.sequence = sequence.wrapping_add(1);
            let len = u32::from_le_bytes([a, b, c, 0]) as usize;
            let start = payload.len();
            payload.resize(start + len, 0);
            self.stream
                .read_exact(&mut payload[start..])
                .context("reading a packet")?;
            if len < PART_BYTES_MAX {
                return Ok(payload);
            }
        }
    }
}
