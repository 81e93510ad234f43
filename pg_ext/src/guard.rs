//! What holds for every SQL function that changes something: asked first, before it changes anything.

use keywright_core::cause::Cause;

use crate::failure::Failure;
use crate::{store, sys};

/// Fails where nothing may be changed, and in the script of an extension.
///
/// What a script makes becomes its extension's: a tag's sequences would not be dumped, and be dropped with it. And when a
/// dump is restored the script runs again, before keywright's own tables are filled.
///
/// # Errors
/// `read_only` or `in_extension_script`.
pub fn may_manage(function: &str) -> Result<(), Failure> {
    store::require_writable(function)?;
    if sys::runs_extension_script() {
        return Err(Failure::new(
            Cause::InExtensionScript,
            format!("{function}() cannot be used in the script of an extension"),
        )
        .detail("What it makes would belong to that extension: not dumped with the database, and dropped with the extension.")
        .hint("Run it after CREATE EXTENSION, where the database is set up; defaults that name a tag may be made before the tag."));
    }
    // Others issue by what this changes as soon as it has committed: the commit must be on disk by then.
    sys::force_flush_at_commit();
    Ok(())
}
