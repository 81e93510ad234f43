//! The text of the security label of a database: its worker id and bucket, and whom they were given to.

use crate::sys;

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

/// The text of the security label of a database: its numbers, and whom they were given to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IdentityLabel {
    /// The worker id, if it has one.
    pub worker: Option<u32>,
    /// The bucket of readable ids, if it has one.
    pub bucket: Option<Bucket>,
    /// System identifier of the server.
    pub system: u64,
    /// Object id of the database.
    pub database: u32,
}

impl IdentityLabel {
    /// The label that gives both to this database.
    pub fn here(worker: Option<u32>, bucket: Option<Bucket>) -> Self {
        Self {
            worker,
            bucket,
            system: sys::system_identifier(),
            database: sys::database().to_u32(),
        }
    }

    /// Whether it was given to this database of this server.
    pub fn is_of_here(&self) -> bool {
        *self == Self::here(self.worker, self.bucket)
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
            system: field("system")?.parse().ok()?,
            database: field("database")?.parse().ok()?,
        };
        let has_number = label.worker.is_some() || label.bucket_number().is_some();
        (has_number && label.to_string() == text).then_some(label)
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
        write!(out, "system={} database={}", self.system, self.database)
    }
}
