//! The server's control file: how it was stopped, and which checkpoint was the last. The server has checked its sum before it preloads
//! libraries.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::mem::{offset_of, size_of};

use keywright_core::resets::{Checkpoint, HEAD_BYTES};
use pgrx::pg_sys::{ControlFileData, DBState};

/// Its path from the data directory, which the server is in.
pub const FILE: &str = "global/pg_control";

/// What the file holds.
pub struct Control(Vec<u8>);

impl Control {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read, or is too short.
    pub fn read() -> io::Result<Self> {
        let mut bytes = fs::read(FILE)?;
        if bytes.len() < size_of::<ControlFileData>() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(size_of::<ControlFileData>());
        Ok(Self(bytes))
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the server was shut down, not as a standby.
    pub fn is_shut_down(&self) -> bool {
        let state = self.u32_at(offset_of!(ControlFileData, state));
        state == Some(DBState::DB_SHUTDOWNED)
    }

    /// The last checkpoint.
    fn checkpoint(&self) -> Option<Checkpoint> {
        Some(Checkpoint {
            system_identifier: self.u64_at(offset_of!(ControlFileData, system_identifier))?,
            position: self.u64_at(offset_of!(ControlFileData, checkPoint))?,
            timeline: self.u32_at(offset_of!(ControlFileData, checkPointCopy.ThisTimeLineID))?,
            segment_bytes: self.u32_at(offset_of!(ControlFileData, xlog_seg_size))?,
        })
    }

    /// The last checkpoint, if the server's log begins with it. Not where that part of the log is missing or cut off: the server does not
    /// start by it then, unless its `restore_command` brings it. What that brings was archived by a server that had started by it, and noticed it.
    ///
    /// # Errors
    /// That part of the log cannot be read.
    pub fn begins_log(&self) -> io::Result<Option<Checkpoint>> {
        let Some(checkpoint) = self.checkpoint() else {
            return Ok(None);
        };
        let Some(segment) = checkpoint.segment_if_first() else {
            return Ok(None);
        };
        let mut head = [0; HEAD_BYTES];
        let opened = File::open(format!("pg_wal/{segment}"));
        match opened.and_then(|mut file| file.read_exact(&mut head)) {
            Ok(()) => Ok(checkpoint.begins_a_log(&head).then_some(checkpoint)),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn u64_at(&self, at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(*self.0.get(at..)?.first_chunk()?))
    }
}
