//! The server's register of worker ids: which database was given which, and how far the ids of those that were given up
//! were used. It is the label of an object that every server has, so it is written in the transaction that changes it,
//! flushed and replicated with it, and outlives any database.

use std::time::{Duration, Instant};

use keywright_core::cause::Cause;

use crate::failure::Failure;
use crate::labels::{self, Labelled};
use crate::{catalog, handover, settings, shm, store, sys};

/// What is known of a worker id that was given to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The database has it, since a life of shared memory, and issued above `floor_ms`, if it issued.
    Held { life: u64, floor_ms: Option<i64> },
    /// It was given up; ids were issued below this moment, or never.
    Left { bound_ms: Option<i64> },
    /// Its database was dropped and nobody knows how far it had come.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    worker: u32,
    database: u32,
    usage: Use,
}

/// Every worker id that was ever given to a database of this server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    entries: Vec<Entry>,
}

/// Keeps others from changing the register until the transaction ends.
///
/// # Errors
/// Somebody else holds it for longer than a refill may take.
pub fn lock() -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_millis(settings::refill_wait_ms_max());
    while !sys::try_lock_workers() {
        if Instant::now() >= deadline {
            return Err(store::timed_out(
                "another transaction that sets a worker id",
            ));
        }
        sys::sleep(Duration::from_millis(10));
    }
    Ok(())
}

impl Register {
    /// Reads it.
    ///
    /// # Errors
    /// It was damaged.
    pub fn read() -> Result<Self, Failure> {
        match labels::get(Labelled::Server) {
            None => Ok(Self::default()),
            Some(text) => Self::parse(&text)
                .ok_or_else(|| catalog::damaged("the register of worker ids cannot be read")),
        }
    }

    /// Writes it, as part of the transaction. The caller holds [`lock`].
    pub fn write(&self) {
        labels::set(Labelled::Server, &self.to_string());
    }

    /// Who was given the worker id last, and what is known of its use.
    pub fn find(&self, worker: u32) -> Option<(u32, Use)> {
        let found = self.entries.iter().find(|entry| entry.worker == worker);
        found.map(|entry| (entry.database, entry.usage))
    }

    /// The worker ids that a database has.
    pub fn held_by(&self, database: u32) -> impl Iterator<Item = u32> {
        self.entries
            .iter()
            .filter(move |entry| entry.database == database)
            .filter(|entry| match entry.usage {
                Use::Held { .. } => true,
                Use::Left { .. } | Use::Lost => false,
            })
            .map(|entry| entry.worker)
    }

    /// Notes what is known of a worker id now.
    pub fn set(&mut self, worker: u32, database: u32, usage: Use) {
        self.entries.retain(|entry| entry.worker != worker);
        self.entries.push(Entry {
            worker,
            database,
            usage,
        });
    }

    fn parse(text: &str) -> Option<Self> {
        let entries = text.split_ascii_whitespace().map(Entry::parse);
        Some(Self {
            entries: entries.collect::<Option<_>>()?,
        })
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (worker, database) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let usage = match parts.next()? {
            "held" => Use::Held {
                life: parts.next()?.parse().ok()?,
                floor_ms: parse_moment(parts.next()?)?,
            },
            "left" => Use::Left {
                bound_ms: parse_moment(parts.next()?)?,
            },
            "lost" => Use::Lost,
            _ => return None,
        };
        parts.next().is_none().then_some(Self {
            worker,
            database,
            usage,
        })
    }
}

fn parse_moment(text: &str) -> Option<Option<i64>> {
    if text == "-" {
        return Some(None);
    }
    text.parse().ok().map(Some)
}

impl std::fmt::Display for Register {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let moment = |ms: Option<i64>| ms.map_or("-".to_owned(), |ms| ms.to_string());
        for (index, entry) in self.entries.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(out, "{space}{}:{}:", entry.worker, entry.database)?;
            match entry.usage {
                Use::Held { life, floor_ms } => write!(out, "held:{life}:{}", moment(floor_ms))?,
                Use::Left { bound_ms } => write!(out, "left:{}", moment(bound_ms))?,
                Use::Lost => write!(out, "lost")?,
            }
        }
        Ok(())
    }
}

/// A database is being dropped, and with it the bound of its worker id: note how far it came, as far as that is known.
///
/// Nobody is connected to it any more, so it issues nothing after this. What cannot be noted is safe: the worker id counts
/// as held by a database that is gone.
pub fn note_drop(database: u32) {
    let concerned = |register: &Register| register.held_by(database).next().is_some();
    if !Register::read().is_ok_and(|register| concerned(&register)) || lock().is_err() {
        return;
    }
    let Ok(mut register) = Register::read() else {
        return;
    };
    for worker in register.held_by(database).collect::<Vec<_>>() {
        if let Some((_, Use::Held { life, floor_ms })) = register.find(worker) {
            let used_up_to = handover::used_up_to(worker);
            let known = used_up_to.is_some() || shm::life() == Some(life);
            let usage = if known {
                Use::Left {
                    bound_ms: floor_ms.max(used_up_to),
                }
            } else {
                Use::Lost
            };
            register.set(worker, database, usage);
        }
    }
    register.write();
}

/// Whether this database may have the worker id, and above which moment it must start then.
///
/// # Errors
/// Another database has it, or nobody knows how far it was used and `above_ms` does not say it.
pub fn claim(
    register: &Register,
    worker: u32,
    above_ms: Option<i64>,
) -> Result<Option<i64>, Failure> {
    let lost = || {
        match above_ms {
        Some(_) => Ok(above_ms),
        None => Err(Failure::new(
            Cause::WorkerIdInUse,
            format!("worker id {worker} belonged to a database that was dropped, and how far its ids were used is not known"),
        )
        .detail("It was dropped without being used since the server started, or while keywright was not preloaded.")
        .hint("Choose another, or name a moment that is later than all its ids: SELECT keywright.set_worker_id(n, above => now() + interval '1 minute').")),
    }
    };
    match register.find(worker) {
        None => Ok(above_ms),
        Some((_, Use::Left { bound_ms })) => Ok(bound_ms.max(above_ms)),
        Some((_, Use::Lost)) => lost(),
        Some((database, Use::Held { .. })) => match catalog::database_name(database) {
            Some(name) if database != sys::database().to_u32() => Err(Failure::new(
                Cause::WorkerIdInUse,
                format!("worker id {worker} belongs to database \"{name}\" of this server"),
            )
            .hint("Choose one that no other database has, on this server or any other.")),
            // Its own, but for a label that somebody took away: its own bound says how far it came.
            Some(_) => Ok(above_ms),
            None => lost(),
        },
    }
}
