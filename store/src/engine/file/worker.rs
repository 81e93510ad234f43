//! The thread of an open file: SQLite blocks, and a disk may take its time.

use std::sync::mpsc::Receiver;

use rusqlite::types::Value as Cell;
use tokio::sync::oneshot;
use tracing::warn;

use super::commits::{self, Commit, Commits, copy_back};
use super::error::FileError;
use super::open::OpenFile;
use super::place::Inodes;
use super::shared::{FileSettings, SharedFile};
use super::telling::tell_when_readable;
use crate::engine::sqlite::{self, Answer, TooLarge};
use crate::engine::value::Value;

const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";

/// What a statement is of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Begins one that may write.
    Begins,
    Statement,
    /// Ends one that may have written.
    Commits,
}

/// A statement, and where its answer goes.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
    pub(super) part: Part,
    /// Nobody waits any more: the transaction is undone when the thread ends.
    pub(super) reply: oneshot::Sender<Result<Answer, FileError>>,
}

/// Carries requests out until nobody can send any more.
pub(super) fn run(
    file: &OpenFile,
    settings: &FileSettings,
    shared: &SharedFile,
    requests: &Receiver<Request>,
) {
    let mut worker = Worker {
        file,
        settings,
        shared,
        last: None,
    };
    while let Ok(request) = requests.recv() {
        let (sql, values) = (request.sql.as_str(), request.values);
        let answer = worker.carry_out(request.part, sql, values);
        let is_doubtful = is_doubtful(&answer, shared);
        // Whoever asked may have given up.
        let _ = request.reply.send(answer);
        if is_doubtful {
            worker.undo();
            tell_when_readable(settings, shared);
        }
    }
}

/// Nothing is asked of the file any more where it fails. Whether somebody may be writing an older state into it, and nobody sees to that yet.
pub(super) fn is_doubtful<T>(answer: &Result<T, FileError>, shared: &SharedFile) -> bool {
    let Err(error) = answer else {
        return false;
    };
    let is_first = error.suspends() && shared.suspend(error);
    // While it is copied it may be too short to be read, or what was told in it is written over.
    is_first && *error != FileError::Replaced
}

struct Worker<'a> {
    file: &'a OpenFile,
    settings: &'a FileSettings,
    shared: &'a SharedFile,
    /// The commit behind which a transaction began that may write.
    last: Option<Commit>,
}

impl Worker<'_> {
    fn carry_out(
        &mut self,
        part: Part,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Answer, FileError> {
        self.see_that_it_is_there()?;
        let values =
            sqlite::cells(values).map_err(|TooLarge(number)| FileError::TooLarge(number))?;
        let is_outside = self.file.connection.is_autocommit();
        if is_outside {
            self.last = None;
            commits::forget(&self.file.connection, self.shared.busy_ms)?;
        }
        match part {
            Part::Begins => self.begin(sql).map(|()| Answer::default()),
            Part::Commits => self.commit(sql).map(|()| Answer::default()),
            Part::Statement if is_outside => self.alone(sql, values),
            Part::Statement => self.ask(sql, values),
        }
    }

    fn see_that_it_is_there(&self) -> Result<(), FileError> {
        if let Some(error) = self.shared.suspended() {
            return Err(error);
        }
        // Before each statement, a COMMIT too: what is written to a file without a name nobody else sees.
        match Inodes::at(&self.settings.path) {
            Ok(inodes) if inodes == self.file.inodes => Ok(()),
            Ok(_) | Err(FileError::Missing) => Err(FileError::Replaced),
            Err(error) => Err(error),
        }
    }

    fn ask(&self, sql: &str, values: Vec<Cell>) -> Result<Answer, FileError> {
        let done = sqlite::ask(&self.file.connection, sql, values);
        done.map_err(|error| FileError::of(&error, self.shared.busy_ms))
    }

    /// A statement outside of transactions: one that writes is one by itself.
    fn alone(&mut self, sql: &str, values: Vec<Cell>) -> Result<Answer, FileError> {
        let prepared = self.file.connection.prepare_cached(sql);
        let is_reading = prepared.map(|statement| statement.readonly());
        if is_reading.map_err(|error| FileError::of(&error, self.shared.busy_ms))? {
            return self.ask(sql, values);
        }
        self.begin(BEGIN)?;
        let done = self.ask(sql, values);
        let done = done.and_then(|answer| self.commit(COMMIT).map(|()| answer));
        if done.is_err() {
            self.undo();
        }
        done
    }

    /// Begins a transaction that may write, if the file has everything that this program has seen.
    fn begin(&mut self, sql: &str) -> Result<(), FileError> {
        self.ask(sql, Vec::new())?;
        match self.look() {
            Ok(commits) => {
                self.shared.remember(commits.last.clone());
                self.last = Some(commits.last);
                Ok(())
            }
            Err(error) => {
                if error == FileError::Overwritten {
                    self.tell();
                }
                self.undo();
                Err(error)
            }
        }
    }

    fn look(&self) -> Result<Commits, FileError> {
        let found = commits::read(&self.file.connection, self.shared.busy_ms)?;
        let found = found.filter(|found| self.shared.is_as_seen(found));
        found.ok_or(FileError::Overwritten)
    }

    /// Whoever starts later has seen nothing, and would take the older state for the last one.
    fn tell(&self) {
        let busy_ms = self.shared.busy_ms;
        let told = commits::spoil(&self.file.connection, busy_ms)
            .and_then(|()| self.ask(COMMIT, Vec::new()))
            .and_then(|_| copy_back(&self.file.connection, busy_ms));
        if let Err(error) = told {
            warn!(%error, "other programs cannot be told that an older state was written into the store's file");
        }
    }

    fn commit(&mut self, sql: &str) -> Result<(), FileError> {
        let (connection, busy_ms) = (&self.file.connection, self.shared.busy_ms);
        let last = self.last.take();
        let recorded = last.map(|last| commits::record(connection, &last, busy_ms));
        let recorded = recorded.transpose()?;
        self.ask(sql, Vec::new())?;
        let Some(commit) = recorded else {
            return Ok(());
        };
        self.shared.remember(commit);
        copy_back(connection, busy_ms)
    }

    /// Gives the lock up, if it is held. What was not committed is undone when the thread ends, at the latest.
    fn undo(&mut self) {
        self.last = None;
        if !self.file.connection.is_autocommit() {
            let _ = self.ask("ROLLBACK", Vec::new());
        }
    }
}
