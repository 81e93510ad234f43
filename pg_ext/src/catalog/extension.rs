//! The extension as it is installed in this database.

use keywright_core::cause::Cause;
use pgrx::pg_sys;

use crate::catalog::damage;
use crate::failure::Failure;
use crate::server::{query, relation};

/// SQL versions this library serves. A preloaded library and the installed SQL change at different times.
const SQL_VERSIONS: &[&str] = &["0.1.0"];

/// The installed extension.
pub fn installed() -> Result<Extension, Failure> {
    let found = query::one_row_as(
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
        relation::find(c"keywright", name)
            .ok_or_else(|| damage::missing(&format!("table keywright.{name}")))
    };
    Ok(Extension {
        oid,
        owner,
        tag_table: table("tag")?,
        node_table: table("node")?,
    })
}

/// The extension as installed in this database.
#[derive(Clone, Copy)]
pub struct Extension {
    /// Its object id: another one after DROP and CREATE EXTENSION.
    pub oid: pg_sys::Oid,
    /// The role that owns its tables and sequences.
    pub owner: pg_sys::Oid,
    /// keywright.tag, whose changes announce changed definitions.
    pub tag_table: pg_sys::Oid,
    /// keywright.node, whose changes announce a changed worker id, bucket, layout or time zone.
    pub node_table: pg_sys::Oid,
}
