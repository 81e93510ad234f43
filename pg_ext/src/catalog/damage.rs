//! Failures of what the extension keeps in tables: it is not as it must be, or somebody else changed or dropped it.

use keywright_core::cause::Cause;
use pgrx::pg_sys;

use crate::failure::Failure;
use crate::server::query;

/// The failure of a transaction above READ COMMITTED that sees a state in which what it changes was another.
pub fn changed_meanwhile(what: &str) -> Failure {
    Failure::new(
        Cause::Serialization,
        format!("{what} was changed after this transaction began"),
    )
    .hint("Retry the transaction, or run it at READ COMMITTED.")
}

/// The failure of a statement on one of keywright's tables that the server did not carry out as it stands.
pub fn intercepted(table: &str) -> Failure {
    Failure::new(
        Cause::OwnTables,
        format!("a rule or trigger of somebody else's keeps keywright from changing keywright.{table}"),
    )
    .detail("Nothing was changed.")
    .hint(format!(
        "Look at \\d keywright.{table} in psql, and drop it: only keywright's functions change its tables."
    ))
}

/// The failure of tables that do not hold what they must.
pub fn damaged(what: &str) -> Failure {
    Failure::new(Cause::BoundDamaged, format!("keywright's own tables are damaged: {what}"))
        .hint("They are changed only through the functions in schema keywright; restore them from a backup.")
}

/// The failure of a table or sequence of ours that a crash would empty.
pub fn unlogged(what: &str) -> Failure {
    Failure::new(
        Cause::BoundDamaged,
        format!("keywright's own tables are damaged: {what} is unlogged"),
    )
    .detail("After a crash of the server it would be as it was made, and ids would come twice.")
    .hint("If the server has not crashed since, ALTER TABLE ... SET LOGGED mends it; else restore it from a backup.")
}

/// The failure of something of ours that is not there, which a DROP EXTENSION took if the extension is gone, too.
pub fn missing(what: &str) -> Failure {
    let installed = query::one_row_as(
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

/// The failure of a tag whose row is there without what says how far it came.
pub fn bound_unknown(tag: &str, is_hidden: bool) -> Failure {
    let (largest, that) = if is_hidden {
        let of_each = format!(
            "Find the largest keywright.hidden_number('{tag}', id) of its ids that are in use"
        );
        (of_each, "that_number")
    } else {
        (
            "Find the largest of its ids that is in use".to_owned(),
            "that_id",
        )
    };
    Failure::new(
        Cause::BoundDamaged,
        format!("nothing says how far tag \"{tag}\" was used"),
    )
    .detail("Its row in keywright.tag was restored without the value of its sequence, or the sequence was reset.")
    .hint(format!(
        "{largest} and run SELECT keywright.advance_tag('{tag}', {that})."
    ))
}

/// The failure of a tag whose bound was written before `pg_resetwal` lost something of the log, as far as anybody knows.
pub fn bound_before_reset(tag: &str, is_hidden: bool) -> Failure {
    bound_unknown(tag, is_hidden).detail(
        "pg_resetwal may have been run after it was reserved last, on a server that was not stopped in order: a later bound may be lost.",
    )
}
