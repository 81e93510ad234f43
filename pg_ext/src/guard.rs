//! What must hold before anything is issued or changed: preloaded, writable, no script of an extension. SQL functions ask first.

use keywright_core::cause::Cause;
use keywright_core::tag::Tag;

use crate::failure::Failure;
use crate::server::{process, transaction, wal};
use crate::settings;
use crate::shmem::area;

/// Fails where nothing may be changed, and in the script of an extension.
///
/// What a script makes becomes its extension's: a tag's sequences would not be dumped, and be dropped with it. And when a
/// dump is restored the script runs again, before keywright's own tables are filled.
///
/// # Errors
/// `read_only`, `in_parallel_query` or `in_extension_script`.
pub fn may_manage(function: &str) -> Result<(), Failure> {
    require_writable(function)?;
    if process::runs_extension_script() {
        return Err(Failure::new(
            Cause::InExtensionScript,
            format!("{function}() cannot be used in the script of an extension"),
        )
        .detail("What it makes would belong to that extension: not dumped with the database, and dropped with the extension.")
        .hint("Run it after CREATE EXTENSION, where the database is set up; defaults that name a tag may be made before the tag."));
    }
    // Others issue by what this changes as soon as it has committed: the commit must be on disk by then, here and on standbys.
    transaction::force_flush_at_commit();
    wal::have_commit_wait();
    Ok(())
}

/// Fails in a transaction or on a server that may not write, and in a parallel query, as `nextval` does.
///
/// # Errors
/// `read_only` or `in_parallel_query`.
pub fn require_writable(function: &str) -> Result<(), Failure> {
    if process::is_read_only() {
        return Err(Failure::new(
            Cause::ReadOnly,
            format!("cannot execute {function}() in a read-only transaction"),
        )
        .hint("Issue and manage ids on the primary, in a transaction that may write."));
    }
    // Only where ids are not at hand: no id comes twice by that, and to look before each would make it dearer.
    if process::is_parallel() {
        return Err(Failure::new(
            Cause::InParallelQuery,
            format!("cannot execute {function}() in a parallel query"),
        )
        .detail("A function that calls it is marked PARALLEL SAFE or PARALLEL RESTRICTED.")
        .hint(
            "Run ALTER FUNCTION ... PARALLEL UNSAFE for it, as CREATE FUNCTION has it by default.",
        ));
    }
    Ok(())
}

/// The failure of a server that did not preload the library.
pub fn not_preloaded() -> Failure {
    Failure::new(
        Cause::NotPreloaded,
        "keywright is not preloaded, so it cannot issue ids",
    )
    .detail("Ids are issued from shared memory, which the server sets up when it starts.")
    .hint("Add keywright to shared_preload_libraries in postgresql.conf and restart the server.")
}

/// Fails where a tag may not issue ids of its own: the server was told that tags of this name were moved to a store so often, and the row's number,
/// for which it was returned, is another. The row may be of an old catalogue, and the store may have given what it would issue.
///
/// # Errors
/// `tag_moved`.
pub fn may_be_native(tag: &Tag, number: u32) -> Result<(), Failure> {
    // Then the setting is not there either, and nothing issues.
    if !area::is_there() {
        return Ok(());
    }
    let moves = settings::moves_of(tag);
    if moves == number {
        return Ok(());
    }
    let failure = Failure::new(
        Cause::TagMoved,
        format!("tag \"{tag}\" issues no ids of its own on this server"),
    )
    .detail(format!(
        "keywright.source is \"{}\": it says move {moves} of this tag, and the tag's row is of move {number}.",
        settings::source()
    ));
    Err(match moves > number {
        true => failure.hint(format!(
            "Run keywright tag move {tag} --to fed where the store is; with --heir-lost --above ID, the largest id that anybody may have issued, where this is an \
             old backup, a standby that was promoted, or a server that lost the move to pg_resetwal; a new tag of this name is made by keywright.create_fed_tag."
        )),
        false => failure.hint(format!(
            "Set keywright.source to '{tag}=fed:{number}', beside what it says of other tags, and restart the server."
        )),
    })
}

/// Fails unless the server preloaded the library.
pub fn require_preload() -> Result<(), Failure> {
    if area::is_there() {
        Ok(())
    } else {
        Err(not_preloaded())
    }
}

/// Refuses to be loaded into a server that pg_upgrade started without the preload. pg_upgrade loads every library that the old
/// cluster uses before it changes anything, and would fail half-way at the labels of databases.
///
/// # Errors
/// It is such a server.
pub fn require_preload_in_upgrade() -> Result<(), Failure> {
    if !process::is_upgrading() {
        return Ok(());
    }
    Err(Failure::new(
        Cause::NotPreloaded,
        "keywright is not preloaded, so pg_upgrade cannot carry its databases over",
    )
    .detail("Worker ids are security labels of databases, which the new cluster restores only with the library preloaded.")
    .hint("Add keywright to shared_preload_libraries in postgresql.conf of the new cluster."))
}
