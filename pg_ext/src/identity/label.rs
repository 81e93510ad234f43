//! The text of the security label of a database: its worker id and bucket, whom they were given to, and what the store knows them by
//! that assigned the worker id.

use keywright_core::cause::Cause;
use keywright_core::mark::Mark;

use crate::failure::Failure;
use crate::server::{cluster, process};

/// Which bucket the readable ids of a database have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// The one that its worker id names.
    OfWorker,
    /// One that was set.
    Chosen(u8),
}

impl Bucket {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "worker" => Some(Self::OfWorker),
            number => number.parse().ok().map(Self::Chosen),
        }
    }
}

/// The mark of a database that is to get a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextMark {
    /// The mark.
    pub mark: Mark,
    /// The life of shared memory in which it was written: a copy of the disk has the mark, and never that.
    pub life: u64,
}

impl NextMark {
    fn parse(text: &str) -> Option<Self> {
        let (mark, life) = text.split_once('/')?;
        Some(Self {
            mark: Mark::parse(mark)?,
            life: life.parse().ok()?,
        })
    }
}

impl std::fmt::Display for NextMark {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.mark, self.life)
    }
}

/// What ties a worker id to the store that assigned it; nothing where it was set by hand. It stands in the label, and not in a table: so it
/// changes with the worker id, goes where that goes, and a copy made from a template has neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// By which the store knows the worker id to be this database's.
    pub mark: Option<Mark>,
    /// By which the store knows what it is to get, until it has it.
    pub next: Option<NextMark>,
    /// The store knows the worker id by another mark: another database has it, too.
    pub is_suspended: bool,
}

/// The text of the security label of a database: its numbers, and whom they were given to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IdentityLabel {
    /// The worker id, if it has one.
    pub worker: Option<u32>,
    /// The bucket of readable ids, if it has one.
    pub bucket: Option<Bucket>,
    /// Where the worker id comes from.
    pub assignment: Assignment,
    /// System identifier of the server.
    pub system: u64,
    /// Object id of the database.
    pub database: u32,
}

impl IdentityLabel {
    /// The label that gives both to this database.
    pub fn here(worker: Option<u32>, bucket: Option<Bucket>, assignment: Assignment) -> Self {
        Self {
            worker,
            bucket,
            assignment,
            system: cluster::system_identifier(),
            database: process::database().to_u32(),
        }
    }

    /// Whether it was given to this database of this server.
    pub fn is_of_here(&self) -> bool {
        *self == Self::here(self.worker, self.bucket, self.assignment)
    }

    /// Whether ids can be issued by it: a mark alone is none.
    pub fn has_number(&self) -> bool {
        self.worker.is_some() || self.bucket_number().is_some()
    }

    /// The bucket's number.
    pub fn bucket_number(&self) -> Option<u8> {
        match self.bucket? {
            Bucket::OfWorker => u8::try_from(self.worker?).ok(),
            Bucket::Chosen(bucket) => Some(bucket),
        }
    }

    /// Reads a label; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut parts = text.split(' ');
            parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        };
        let label = Self {
            worker: field("worker").and_then(|worker| worker.parse().ok()),
            bucket: field("bucket").and_then(Bucket::parse),
            assignment: Assignment {
                mark: field("mark").and_then(Mark::parse),
                next: field("next").and_then(NextMark::parse),
                is_suspended: field("suspended").is_some(),
            },
            system: field("system")?.parse().ok()?,
            database: field("database")?.parse().ok()?,
        };
        let has_mark = label.assignment.mark.is_some() || label.assignment.next.is_some();
        let says_something = label.has_number() || has_mark;
        (says_something && label.to_string() == text).then_some(label)
    }
}

impl std::fmt::Display for IdentityLabel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(worker) = self.worker {
            write!(out, "worker={worker} ")?;
        }
        match self.bucket {
            None => {}
            Some(Bucket::OfWorker) => write!(out, "bucket=worker ")?,
            Some(Bucket::Chosen(bucket)) => write!(out, "bucket={bucket} ")?,
        }
        if let Some(mark) = self.assignment.mark {
            write!(out, "mark={mark} ")?;
        }
        if let Some(mark) = self.assignment.next {
            write!(out, "next={mark} ")?;
        }
        if self.assignment.is_suspended {
            write!(out, "suspended=yes ")?;
        }
        write!(out, "system={} database={}", self.system, self.database)
    }
}

/// What the SQL command SECURITY LABEL may write: nothing but what a restore writes, the label of another server or database,
/// which is refused when ids are asked for. `database` is none for any other object.
pub fn check_statement(database: Option<u32>, text: Option<&str>) {
    let foreign = |label: &IdentityLabel, database: u32, text: &str| {
        label.to_string() == text
            && !(label.system == cluster::system_identifier() && label.database == database)
    };
    let allowed = match (database, text) {
        (Some(_), None) => true,
        (Some(database), Some(text)) => {
            IdentityLabel::parse(text).is_some_and(|label| foreign(&label, database, text))
        }
        (None, Some(_) | None) => false,
    };
    if !allowed {
        Failure::new(
            Cause::WorkerIdInUse,
            "a worker id or readable bucket is not given by a security label",
        )
        .hint("Run SELECT keywright.set_worker_id(n) or keywright.set_readable_bucket(n).")
        .raise();
    }
}
