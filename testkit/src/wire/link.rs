//! One connection: its packets, what was agreed on, and the file that it has for the server.

use super::channel::Channel;
use crate::Result;

/// What every command and answer needs of a connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) channel: Channel,
    pub(super) capabilities: u64,
    pub(super) local_file: Vec<u8>,
}

impl Link {
    /// Sends a command and reads nothing.
    pub(super) fn send(&mut self, command: u8, payload: &[u8]) -> Result<()> {
        let mut packet = Vec::with_capacity(payload.len() + 1);
        packet.push(command);
        packet.extend(payload);
        self.channel.begin();
        self.channel.write(&packet)
    }

    /// Answers the server's question for a local file.
    pub(super) fn send_local_file(&mut self) -> Result<()> {
        const PART_BYTES_MAX: usize = 1 << 20;
        let contents = std::mem::take(&mut self.local_file);
        for part in contents.chunks(PART_BYTES_MAX) {
            self.channel.write(part)?;
        }
        self.local_file = contents;
        self.channel.write(&[])
    }
}
