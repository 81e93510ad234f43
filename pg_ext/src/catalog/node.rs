//! The one row of keywright.node: how ids of this database are written.

use keywright_core::layout::Layout;
use keywright_core::zone::Zone;
use pgrx::datum::DatumWithOid;

use crate::catalog::extension::Extension;
use crate::catalog::{damage, statements, tables};
use crate::failure::Failure;
use crate::server::{query, transaction};
use crate::shmem::key::Source;

/// Layout of a database that was never given one.
pub const LAYOUT_DEFAULT: &str = "twitter";

/// The layout of a database that was never given one.
///
/// # Errors
/// Never: it is a preset.
pub fn layout_default() -> Result<Layout, Failure> {
    Layout::parse(LAYOUT_DEFAULT).map_err(|error| damage::damaged(&error.to_string()))
}

/// How ids of this database are written, and whether that is certain.
pub struct NodeRow {
    /// The layout of snowflake ids.
    pub layout: Layout,
    /// The time zone of readable ids.
    pub zone: Zone,
    /// Where the time of snowflake ids comes from.
    pub source: Source,
    /// The bucket of readable ids that was chosen, here or in the database that this one is a copy of; none if it comes with the worker id.
    pub bucket: Option<u8>,
    /// This transaction set one of them.
    pub is_uncommitted: bool,
}

/// The layout of this database.
pub fn layout_of(extension: &Extension) -> Result<Layout, Failure> {
    read(extension).map(|row| row.layout)
}

/// How ids of this database are written, and whether this transaction set it.
pub fn read(extension: &Extension) -> Result<NodeRow, Failure> {
    tables::lock(extension.node_table)?;
    let query = "SELECT layout, readable_zone, snowflake_source, readable_bucket::pg_catalog.text, \
                 xmin::pg_catalog.text FROM keywright.node";
    let row = query::one_row_as(extension.owner, query, &[], |row| {
        [1, 2, 3, 4, 5].map(|column| row.get::<String>(column))
    });
    let [layout, zone, source, bucket, writer] = row.unwrap_or([None, None, None, None, None]);
    let layout = Layout::parse(layout.as_deref().unwrap_or(LAYOUT_DEFAULT))
        .map_err(|error| damage::damaged(&error.to_string()))?;
    let zone = zone.map_or(Ok(Zone::UTC), |zone| Zone::parse(&zone));
    let source = match source {
        None => Source::Native,
        Some(source) => Source::parse(&source).ok_or_else(|| {
            damage::damaged(&format!("\"{source}\" is no source of snowflake ids"))
        })?,
    };
    let bucket = bucket.map(|bucket| {
        let number = bucket.parse::<u8>();
        number.map_err(|_| damage::damaged(&format!("\"{bucket}\" is no readable bucket")))
    });
    Ok(NodeRow {
        layout,
        zone: zone.map_err(|error| damage::damaged(&error.to_string()))?,
        source,
        bucket: bucket.transpose()?,
        is_uncommitted: writer.is_some_and(|writer| transaction::wrote_row(&writer)),
    })
}

/// Sets a column of the one row of keywright.node, which is made with what is in force without it. The caller keeps others from
/// setting one until the transaction ends.
///
/// # Errors
/// The transaction is above READ COMMITTED and somebody else changed the row since it began; or a rule or trigger keeps it from being written.
pub fn set(column: &str, value: &str) -> Result<(), Failure> {
    write(column, value.into())
}

/// Sets the bucket that was chosen, likewise.
///
/// # Errors
/// As [`set`].
pub fn set_bucket(bucket: u8) -> Result<(), Failure> {
    write("readable_bucket", i32::from(bucket).into())
}

fn write(column: &str, value: DatumWithOid<'_>) -> Result<(), Failure> {
    const ROW: &str = "SELECT true FROM keywright.node";
    let is_there = query::one_row(ROW, &[], |_| ()).is_some();
    if !is_there {
        let insert = "INSERT INTO keywright.node (layout) VALUES ($1)";
        statements::change_one("node", insert, &[LAYOUT_DEFAULT.into()])?;
    }
    let update = format!("UPDATE keywright.node SET {column} = $1");
    match statements::change("node", &update, &[value])? {
        1 => Ok(()),
        _ => Err(statements::unchanged(
            "node",
            ROW,
            &[],
            "what keywright keeps of this database",
        )),
    }
}
