//! What the extension keeps in tables: read as its owner, in the newest committed state and this transaction's own.

use std::panic::AssertUnwindSafe;

use keywright_core::cause::Cause;
use keywright_core::incarnation::Note;
use keywright_core::layout::{Layout, WorkerId};
use keywright_core::register::Number;
use keywright_core::step::Step;
use keywright_core::tag::Tag;
use keywright_core::zone::Zone;
use pgrx::datum::DatumWithOid;
use pgrx::spi::Spi;
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys};

use crate::failure::Failure;
use crate::identity_label::IdentityLabel;
use crate::labels::{self, Labelled};
use crate::query::{self, Row};
use crate::session::Extension;
use crate::words::TimeKind;
use crate::{locks, register, restored, store, sys, text};

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
///
/// # Errors
/// The transaction is above READ COMMITTED and somebody else changed the row since it began. Nothing may be done after that but
/// to pass it on.
pub fn run(statement: &str, arguments: &[DatumWithOid]) -> Result<usize, Failure> {
    PgTryBuilder::new(AssertUnwindSafe(|| {
        Spi::connect_mut(|client| Ok(client.update(statement, None, arguments)?.len()))
            .map_err(|error: pgrx::spi::Error| damaged(&error.to_string()))
    }))
    .catch_when(PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE, |_| {
        Err(changed_meanwhile("what keywright keeps of this database"))
    })
    .execute()
}

/// The failure of a transaction above READ COMMITTED that sees a state in which what it changes was another.
pub fn changed_meanwhile(what: &str) -> Failure {
    Failure::new(
        Cause::Serialization,
        format!("{what} was changed after this transaction began"),
    )
    .hint("Retry the transaction, or run it at READ COMMITTED.")
}

/// The failure of tables that do not hold what they must.
pub fn damaged(what: &str) -> Failure {
    Failure::new(Cause::BoundDamaged, format!("keywright's own tables are damaged: {what}"))
        .hint("They are changed only through the functions in schema keywright; restore them from a backup.")
}

/// The failure of something of ours that is not there, which a DROP EXTENSION took if the extension is gone, too.
fn missing(what: &str) -> Failure {
    let installed = one_row(
        pg_sys::BOOTSTRAP_SUPERUSERID.into(),
        "SELECT oid FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'keywright'",
        &[],
        |row| row.get::<pg_sys::Oid>(1),
    );
    match installed {
        Some(_) => damaged(&format!("{what} is missing")),
        None => dropped_meanwhile(),
    }
}

/// The failure of a session that waited for a DROP EXTENSION, or met one.
pub fn dropped_meanwhile() -> Failure {
    Failure::new(
        Cause::VersionMismatch,
        "extension \"keywright\" was dropped meanwhile",
    )
    .hint("Run CREATE EXTENSION keywright; if somebody did, ask again.")
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
        sys::relation(c"keywright", name).ok_or_else(|| missing(&format!("table keywright.{name}")))
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
    locks::table(extension.tag_table)?;
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
        sequence: tag_sequence(id).map_err(|_| restored::bound_unknown(tag.as_str()))?,
        note: tag_note(id).map_err(|_| restored::bound_unknown(tag.as_str()))?,
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
    sys::relation(c"keywright", name).ok_or_else(|| missing(&format!("sequence keywright.{name}")))
}

/// The layout of a database that was never given one.
///
/// # Errors
/// Never: it is a preset.
pub fn layout_default() -> Result<Layout, Failure> {
    Layout::parse(LAYOUT_DEFAULT).map_err(|error| damaged(&error.to_string()))
}

/// How ids of this database are written, and whether that is certain.
pub struct NodeRow {
    /// The layout of snowflake ids.
    pub layout: Layout,
    /// The time zone of readable ids.
    pub zone: Zone,
    /// This transaction set one of them.
    pub is_uncommitted: bool,
}

/// The layout of this database.
pub fn layout(extension: &Extension) -> Result<Layout, Failure> {
    node(extension).map(|row| row.layout)
}

/// How ids of this database are written, and whether this transaction set it.
pub fn node(extension: &Extension) -> Result<NodeRow, Failure> {
    locks::table(extension.node_table)?;
    let query = "SELECT layout, readable_zone, xmin::pg_catalog.text FROM keywright.node";
    let row = one_row(extension.owner, query, &[], |row| {
        [1, 2, 3].map(|column| row.get::<String>(column))
    });
    let [layout, zone, writer] = row.unwrap_or([None, None, None]);
    let layout = Layout::parse(layout.as_deref().unwrap_or(LAYOUT_DEFAULT))
        .map_err(|error| damaged(&error.to_string()))?;
    let zone = zone.map_or(Ok(Zone::UTC), |zone| Zone::parse(&zone));
    Ok(NodeRow {
        layout,
        zone: zone.map_err(|error| damaged(&error.to_string()))?,
        is_uncommitted: writer.is_some_and(|writer| is_own(&writer)),
    })
}

/// Sets a column of the one row of keywright.node, which is made with what is in force without it. The caller keeps others from
/// setting one until the transaction ends.
///
/// # Errors
/// The transaction is above READ COMMITTED and somebody else changed the row since it began.
pub fn set_node(column: &str, value: &str) -> Result<(), Failure> {
    let is_there = query::one_row("SELECT true FROM keywright.node", &[], |_| ()).is_some();
    if !is_there {
        let insert = "INSERT INTO keywright.node (layout) VALUES ($1)";
        run(insert, &[LAYOUT_DEFAULT.into()])?;
    }
    let update = format!("UPDATE keywright.node SET {column} = $1");
    match run(&update, &[value.into()])? {
        1 => Ok(()),
        _ => Err(changed_meanwhile("what keywright keeps of this database")),
    }
}

/// Whether this transaction wrote the row with that `xmin`.
fn is_own(xmin: &str) -> bool {
    xmin.parse().is_ok_and(sys::is_own_transaction)
}

/// Whether this transaction wrote the label of an object.
pub fn is_label_uncommitted(class: pg_sys::Oid, object: pg_sys::Oid, provider: &str) -> bool {
    let writer = one_row(
        pg_sys::BOOTSTRAP_SUPERUSERID.into(),
        "SELECT xmin::pg_catalog.text FROM pg_catalog.pg_shseclabel WHERE classoid OPERATOR(pg_catalog.=) $1 \
         AND objoid OPERATOR(pg_catalog.=) $2 AND provider OPERATOR(pg_catalog.=) $3",
        &[class.into(), object.into(), provider.into()],
        |row| row.get::<String>(1),
    );
    writer.flatten().is_some_and(|writer| is_own(&writer))
}

/// Whether the bound of ids with a number was written by this database and no other.
pub fn is_bound_ours(number: Number) -> Result<bool, Failure> {
    let name = match TimeKind::of(number) {
        TimeKind::Snowflake => "snowflake_note",
        TimeKind::Readable => "readable_note",
    };
    let note = sys::sequence_last(sequence(name)?).and_then(Note::unpack);
    Ok(note.is_some_and(|note| note.is_of(&store::incarnation())))
}

/// Whether this transaction gave this database its worker id or bucket.
pub fn label_is_uncommitted() -> bool {
    labels::is_uncommitted(Labelled::Database)
}

/// The worker id that was given to this database on this server.
///
/// It is kept as a security label of the database, in a catalogue all databases of a server share. A copy made with
/// CREATE DATABASE … TEMPLATE does not get it; a copy made in any other way gets it with the identity of the original.
pub fn worker(layout: &Layout) -> Result<WorkerId, Failure> {
    let unset = || {
        Failure::new(Cause::WorkerIdUnset, "this database has no worker id")
            .detail(
                "Snowflake ids are unique only if no two databases issue with the same worker id.",
            )
            .hint(
                "Choose one that no other database has and run SELECT keywright.set_worker_id(n).",
            )
    };
    let label = label()?.ok_or_else(unset)?;
    let worker = label.worker.ok_or_else(unset)?;
    require_here(&label, Number::Worker(worker))?;
    WorkerId::new(i64::from(worker), layout).map_err(|error| {
        Failure::new(Cause::Fenced, error.to_string())
            .hint("Run SELECT keywright.set_worker_id(n).")
    })
}

/// The bucket of readable ids that was given to this database on this server, kept as [`worker`] is.
pub fn bucket() -> Result<u8, Failure> {
    let unset = |message: String| {
        Failure::new(Cause::WorkerIdUnset, message)
            .detail("Readable ids are unique only if no two databases issue with the same bucket.")
            .hint("Choose one from 0 to 255 that no other database has and run SELECT keywright.set_readable_bucket(n).")
    };
    let Some(label) = label()? else {
        return Err(unset(
            "this database has no readable bucket and no worker id".to_owned(),
        ));
    };
    let Some(bucket) = label.bucket_number() else {
        return Err(unset(match label.worker {
            Some(worker) if u8::try_from(worker).is_err() => format!(
                "this database has no readable bucket: its worker id {worker} is above {}",
                u8::MAX
            ),
            Some(worker) => format!(
                "this database has no readable bucket: bucket {worker} was not free when it got worker id {worker}"
            ),
            None => "this database has no readable bucket".to_owned(),
        }));
    };
    require_here(&label, Number::Bucket(bucket))?;
    Ok(bucket)
}

fn require_here(label: &IdentityLabel, number: Number) -> Result<(), Failure> {
    if label.is_of_here() {
        return Ok(());
    }
    let function = match number {
        Number::Worker(_) => "set_worker_id",
        Number::Bucket(_) => "set_readable_bucket",
    };
    Err(Failure::new(
        Cause::Fenced,
        format!(
            "{} was given to another server or database",
            register::name_of(number)
        ),
    )
    .detail(format!(
        "It was given to database {} of system {}; this is database {} of system {}.",
        label.database,
        label.system,
        sys::database().to_u32(),
        sys::system_identifier()
    ))
    .hint(format!(
        "If the original lives on, choose another number; then run SELECT keywright.{function}(n)."
    )))
}

/// The label of this database.
///
/// # Errors
/// It was damaged.
pub fn label() -> Result<Option<IdentityLabel>, Failure> {
    labels::get(Labelled::Database)
        .map(|text| {
            IdentityLabel::parse(&text)
                .ok_or_else(|| damaged("the label of the database cannot be read"))
        })
        .transpose()
}

/// The name of a database of this server; `None` if there is none.
pub fn database_name(database: u32) -> Option<String> {
    one_row(
        pg_sys::BOOTSTRAP_SUPERUSERID.into(),
        "SELECT datname::text FROM pg_catalog.pg_database WHERE oid OPERATOR(pg_catalog.=) $1",
        &[pg_sys::Oid::from(database).into()],
        |row| row.get::<Vec<u8>>(1),
    )
    .flatten()
    .map(|name| text::shown(&name))
}
