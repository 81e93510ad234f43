//! What the extension keeps in tables: read as its owner, in the newest committed state and this transaction's own.

use keywright_core::cause::Cause;
use keywright_core::layout::{Layout, WorkerId};
use keywright_core::step::Step;
use keywright_core::tag::Tag;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use pgrx::spi::Spi;

use crate::failure::Failure;
use crate::query::{self, Row};
use crate::session::Extension;
use crate::{store, sys};

/// SQL versions this library serves. A preloaded library and the installed SQL change at different times.
const SQL_VERSIONS: [&str; 1] = ["0.1.0"];
/// Layout of a database that was never given one.
pub const LAYOUT_DEFAULT: &str = "twitter";

/// A row of keywright.tag with its sequences.
pub struct TagRow {
    /// Which life of the tag.
    pub generation: u32,
    /// The bound.
    pub sequence: pg_sys::Oid,
    /// The note beside it.
    pub note: pg_sys::Oid,
    /// First full reservation.
    pub step: Step,
    /// Smallest reservation the step policy may choose.
    pub step_min: Step,
    /// Largest.
    pub step_max: Step,
    /// First id.
    pub start: u64,
    /// One above the last id.
    pub end_max: u64,
}

/// Runs a query that yields at most one row, as `owner`.
pub fn one_row<T>(
    owner: pg_sys::Oid,
    query: &str,
    arguments: &[DatumWithOid],
    read: impl FnOnce(&Row) -> T,
) -> Option<T> {
    let _owner = sys::AsOwner::new(owner);
    query::one_row(query, arguments, read)
}

/// Runs a statement that changes something, as the role in force, and says how many rows it changed.
pub fn run(statement: &str, arguments: &[DatumWithOid]) -> Result<usize, Failure> {
    Spi::connect_mut(|client| Ok(client.update(statement, None, arguments)?.len()))
        .map_err(|error: pgrx::spi::Error| damaged(&error.to_string()))
}

/// The failure of tables that do not hold what they must.
pub fn damaged(what: &str) -> Failure {
    Failure::new(Cause::BoundDamaged, format!("keywright's own tables are damaged: {what}"))
        .hint("They are changed only through the functions in schema keywright; restore them from a backup.")
}

/// The installed extension.
pub fn extension() -> Result<Extension, Failure> {
    let found = one_row(
        pg_sys::BOOTSTRAP_SUPERUSERID.into(),
        "SELECT oid, extowner, extversion FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'keywright'",
        &[],
        |row| {
            (
                row.get::<pg_sys::Oid>(1),
                row.get::<pg_sys::Oid>(2),
                row.get::<String>(3),
            )
        },
    );
    let Some((Some(oid), Some(owner), Some(version))) = found else {
        return Err(Failure::new(
            Cause::VersionMismatch,
            "extension \"keywright\" is not installed in this database",
        )
        .hint("Run CREATE EXTENSION keywright."));
    };
    if !SQL_VERSIONS.contains(&version.as_str()) {
        return Err(Failure::new(
            Cause::VersionMismatch,
            format!("the installed SQL of keywright is version \"{version}\", which the loaded library does not serve"),
        )
        .detail(format!("The library serves {}.", SQL_VERSIONS.join(", ")))
        .hint("Run ALTER EXTENSION keywright UPDATE; if the library is the older one, restart the server."));
    }
    let table = |name: &str| {
        sys::relation(c"keywright", name)
            .ok_or_else(|| damaged(&format!("keywright.{name} is missing")))
    };
    Ok(Extension {
        oid,
        owner,
        tag_table: table("tag")?,
        node_table: table("node")?,
    })
}

/// The definition of a tag that exists and is not dropped.
pub fn tag(tag: &Tag, extension: &Extension) -> Result<Option<TagRow>, Failure> {
    store::lock_table(extension.tag_table)?;
    let row = one_row(
        extension.owner,
        "SELECT id, generation, step, step_min, step_max, start, max FROM keywright.tag \
         WHERE tag OPERATOR(pg_catalog.=) $1 AND dropped_at IS NULL",
        &[tag.as_str().into()],
        |row| {
            let numbers = [3, 4, 5, 6, 7].map(|column| row.get::<i64>(column).unwrap_or(-1));
            (row.get::<i32>(1), row.get::<i32>(2), numbers)
        },
    );
    let Some((Some(id), Some(generation), [step, step_min, step_max, start, max])) = row else {
        return Ok(None);
    };
    let step_of = |number| Step::new(number).map_err(|error| damaged(&error.to_string()));
    let unsigned =
        |number: i64| u64::try_from(number).map_err(|_| damaged("a tag's range is negative"));
    Ok(Some(TagRow {
        generation: u32::try_from(generation)
            .map_err(|_| damaged("a tag's generation is negative"))?,
        sequence: tag_sequence(id)?,
        note: tag_note(id)?,
        step: step_of(step)?,
        step_min: step_of(step_min)?,
        step_max: step_of(step_max)?,
        start: unsigned(start)?,
        end_max: unsigned(max)?.saturating_add(1),
    }))
}

/// The sequence that is the bound of the tag with this id.
pub fn tag_sequence(id: i32) -> Result<pg_sys::Oid, Failure> {
    sequence(&format!("tag_{id}"))
}

/// The sequence that holds the note of the tag with this id.
pub fn tag_note(id: i32) -> Result<pg_sys::Oid, Failure> {
    sequence(&format!("tag_{id}_note"))
}

/// A sequence in schema keywright.
pub fn sequence(name: &str) -> Result<pg_sys::Oid, Failure> {
    sys::relation(c"keywright", name)
        .ok_or_else(|| damaged(&format!("sequence keywright.{name} is missing")))
}

/// The layout of this database.
pub fn layout(extension: &Extension) -> Result<Layout, Failure> {
    store::lock_table(extension.node_table)?;
    let owner = extension.owner;
    let text = one_row(owner, "SELECT layout FROM keywright.node", &[], |row| {
        row.get::<String>(1)
    });
    let text = text.flatten().unwrap_or_else(|| LAYOUT_DEFAULT.to_owned());
    Layout::parse(&text).map_err(|error| damaged(&error.to_string()))
}

/// The worker id that was given to this database on this server.
///
/// It is kept as a security label of the database, in a catalogue all databases of a server share. A copy made with
/// CREATE DATABASE … TEMPLATE does not get it; a copy made in any other way gets it with the identity of the original.
pub fn worker(layout: &Layout, owner: pg_sys::Oid) -> Result<WorkerId, Failure> {
    let Some(label) = label(owner)? else {
        return Err(Failure::new(Cause::WorkerIdUnset, "this database has no worker id")
            .detail("Snowflake ids are unique only if no two databases issue with the same worker id.")
            .hint("Choose one that no other database has and run SELECT keywright.set_worker_id(n)."));
    };
    if !label.is_of_here() {
        return Err(Failure::new(
            Cause::Fenced,
            format!("worker id {} was given to another server or database", label.worker),
        )
        .detail(format!(
            "It was given to database {} of system {}; this is database {} of system {}.",
            label.database,
            label.system,
            sys::database().to_u32(),
            sys::system_identifier()
        ))
        .hint("If the original lives on, choose another worker id; then run SELECT keywright.set_worker_id(n)."));
    }
    WorkerId::new(i64::from(label.worker), layout).map_err(|error| {
        Failure::new(Cause::Fenced, error.to_string())
            .hint("Run SELECT keywright.set_worker_id(n).")
    })
}

/// The label of this database.
pub fn label(owner: pg_sys::Oid) -> Result<Option<WorkerLabel>, Failure> {
    let text = one_row(
        owner,
        "SELECT label FROM pg_catalog.pg_shseclabel WHERE provider OPERATOR(pg_catalog.=) 'keywright' \
         AND classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_database'::pg_catalog.regclass \
         AND objoid OPERATOR(pg_catalog.=) $1",
        &[sys::database().into()],
        |row| row.get::<String>(1),
    );
    text.flatten()
        .map(|text| {
            WorkerLabel::parse(&text).ok_or_else(|| damaged("the worker id's label cannot be read"))
        })
        .transpose()
}

/// Below which moment databases of this server issued with a worker id before they gave it up; unix milliseconds.
pub fn left_bound(worker: u32, owner: pg_sys::Oid) -> Option<i64> {
    let labels = one_row(
        owner,
        "SELECT pg_catalog.string_agg(label, pg_catalog.chr(10)) FROM pg_catalog.pg_shseclabel \
         WHERE provider OPERATOR(pg_catalog.=) 'keywright' \
         AND classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_database'::pg_catalog.regclass",
        &[],
        |row| row.get::<String>(1),
    );
    labels
        .flatten()?
        .lines()
        .filter_map(WorkerLabel::parse)
        .filter(|label| label.system == sys::system_identifier())
        .filter_map(|label| label.left_bound(worker))
        .max()
}

/// The text of the security label: a worker id, whom it was given to, and which ones that database had before, with the bound
/// below which it issued: whoever gets one of those starts above.
#[derive(Clone, PartialEq, Eq)]
pub struct WorkerLabel {
    /// The worker id.
    pub worker: u32,
    /// System identifier of the server.
    pub system: u64,
    /// Object id of the database.
    pub database: u32,
    /// Worker ids given up, each with its last bound, unix milliseconds.
    left: Vec<(u32, i64)>,
}

impl WorkerLabel {
    /// The label that gives `worker` to this database for a start.
    pub fn here(worker: u32) -> Self {
        Self {
            worker,
            system: sys::system_identifier(),
            database: sys::database().to_u32(),
            left: Vec::new(),
        }
    }

    /// The label of the same database after it gave up its worker id, bounded by `bound_ms`, for another.
    pub fn change(&self, worker: u32, bound_ms: Option<i64>) -> Self {
        let kept = |(left, _): &&(u32, i64)| *left != worker && *left != self.worker;
        let given_up = bound_ms.map(|bound_ms| (self.worker, bound_ms));
        Self {
            worker,
            left: self
                .left
                .iter()
                .filter(kept)
                .copied()
                .chain(given_up)
                .collect(),
            ..self.clone()
        }
    }

    /// Below which moment the database issued with a worker id that it gave up.
    fn left_bound(&self, worker: u32) -> Option<i64> {
        let found = self.left.iter().find(|(left, _)| *left == worker);
        found.map(|(_, bound_ms)| *bound_ms)
    }

    /// Whether it was given to this database of this server.
    pub fn is_of_here(&self) -> bool {
        self.system == sys::system_identifier() && self.database == sys::database().to_u32()
    }

    /// Reads a label; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let mut field = |name: &str| parts.next()?.strip_prefix(name)?.strip_prefix('=');
        let (worker, system, database) = (
            field("worker")?.parse().ok()?,
            field("system")?.parse().ok()?,
            field("database")?.parse().ok()?,
        );
        let left = parts.map(|part| {
            let (worker, bound_ms) = part.strip_prefix("left=")?.split_once(':')?;
            Some((worker.parse().ok()?, bound_ms.parse().ok()?))
        });
        Some(Self {
            worker,
            system,
            database,
            left: left.collect::<Option<_>>()?,
        })
    }
}

impl std::fmt::Display for WorkerLabel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "worker={} system={} database={}",
            self.worker, self.system, self.database
        )?;
        self.left
            .iter()
            .try_for_each(|(worker, bound_ms)| write!(out, " left={worker}:{bound_ms}"))
    }
}
