//! A store in a file of this machine, by SQLite: any number of programs of the machine share it.
//!
//! Its log of commits (WAL) is synced by each commit (`synchronous = FULL`), and copied into the file itself. A transaction that writes has the file's lock from its beginning
//! (BEGIN IMMEDIATE), so that nothing it has read can change. A copy of the file, or the file on another machine, is not used until
//! somebody says that the other one is used no more ([`place`]), and one that was overwritten with an older state is not used at all
//! ([`commits`]). After an error of the disk nothing is asked of the file any more by
//! this program: what could not be written the kernel may have forgotten.

mod commits;
mod create;
mod error;
pub(crate) mod file_system;
mod open;
pub(crate) mod place;
mod shared;
mod telling;
mod worker;

use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

pub(crate) use create::Made;
pub(crate) use error::FileError;
pub(crate) use shared::FileSettings;

use super::facts::ServerFacts;
use super::sqlite::Answer;
use super::value::{Row, Value};
use shared::SharedFile;
use worker::{Part, Request};

/// Threads that have a file open at the same time at most: one is in use, others may be held up by the disk.
const THREADS_MAX: usize = 4;

/// A file, not open yet.
#[derive(Debug, Clone)]
pub(crate) struct FileEngine {
    settings: FileSettings,
    shared: Arc<SharedFile>,
}

/// An open file, on a thread of its own.
#[derive(Debug)]
pub(crate) struct FileLink {
    requests: mpsc::Sender<Request>,
}

impl FileEngine {
    /// A lock is waited for a little less long than a transaction may last, so that this is what is said.
    pub(super) fn new(settings: FileSettings, store_ms_max: u64) -> Self {
        Self {
            settings,
            shared: Arc::new(SharedFile {
                busy_ms: store_ms_max - store_ms_max / 4,
                suspended: OnceLock::new(),
                seen: Mutex::new(None),
                threads: Arc::new(Semaphore::new(THREADS_MAX)),
            }),
        }
    }

    /// Makes the file, or what is missing of it. With `accept` one is taken that was copied or moved here.
    pub(crate) async fn create(&self, accept: bool) -> Result<Made, FileError> {
        let (made, result) = oneshot::channel();
        self.on_a_thread(move |engine| {
            // Whoever asked may have given up.
            let _ = made.send(create::create(&engine.settings, &engine.shared, accept));
        })
        .await?;
        result.await.unwrap_or_else(|_| Err(ended()))
    }

    pub(super) async fn connect(&self) -> Result<(FileLink, ServerFacts), FileError> {
        let (requests, queue) = mpsc::channel();
        let (opened, facts) = oneshot::channel();
        self.on_a_thread(move |engine| {
            let found = open::open(&engine.settings, &engine.shared);
            let is_doubtful = worker::is_doubtful(&found, &engine.shared);
            let file = match found {
                Ok(file) => file,
                Err(error) => {
                    let _ = opened.send(Err(error));
                    if is_doubtful {
                        telling::tell_when_readable(&engine.settings, &engine.shared);
                    }
                    return;
                }
            };
            if opened.send(Ok(file.facts.clone())).is_ok() {
                worker::run(&file, &engine.settings, &engine.shared, &queue);
            }
        })
        .await?;
        let facts = facts.await.unwrap_or_else(|_| Err(ended()))?;
        Ok((FileLink { requests }, facts))
    }

    /// Waits until nothing of this program has it open.
    pub(crate) async fn closed(&self) {
        let threads = u32::try_from(THREADS_MAX).unwrap_or(u32::MAX);
        // It is an error only where the semaphore is closed, which it never is.
        drop(self.shared.threads.acquire_many(threads).await);
    }

    /// There are so few threads that a disk which answers nobody is not asked by ever more of them.
    async fn on_a_thread(
        &self,
        work: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<(), FileError> {
        let permit = Arc::clone(&self.shared.threads).acquire_owned().await;
        let permit: OwnedSemaphorePermit = permit.map_err(|_| ended())?;
        let engine = self.clone();
        let thread = thread::Builder::new().name("keywright-file".to_owned());
        let started = thread.spawn(move || {
            work(&engine);
            drop(permit);
        });
        match started {
            Ok(_) => Ok(()),
            Err(error) => Err(FileError::Other(format!("no thread for it: {error}"))),
        }
    }
}

fn ended() -> FileError {
    FileError::Other("its thread has ended".to_owned())
}

impl FileLink {
    pub(super) async fn answers(&mut self) -> bool {
        self.ask(("SELECT 1", Vec::new()), Part::Statement)
            .await
            .is_ok()
    }

    /// Begins a transaction that may write.
    pub(super) async fn begin(&mut self) -> Result<(), super::StoreError> {
        self.ask(("BEGIN IMMEDIATE", Vec::new()), Part::Begins)
            .await?;
        Ok(())
    }

    pub(super) async fn change(
        &mut self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<u64, super::StoreError> {
        Ok(self.ask((sql, values), Part::Statement).await?.changed)
    }

    /// Ends a transaction that may have written.
    pub(super) async fn commit(&mut self) -> Result<(), super::StoreError> {
        self.ask(("COMMIT", Vec::new()), Part::Commits).await?;
        Ok(())
    }

    pub(super) async fn rows(
        &mut self,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, super::StoreError> {
        Ok(self.ask((sql, values), Part::Statement).await?.rows)
    }

    async fn ask(
        &mut self,
        (sql, values): (&str, Vec<Value>),
        part: Part,
    ) -> Result<Answer, FileError> {
        let (reply, answer) = oneshot::channel();
        let request = Request {
            sql: sql.to_owned(),
            values,
            part,
            reply,
        };
        self.requests.send(request).map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}
