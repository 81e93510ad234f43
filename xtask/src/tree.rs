//! The checkout that packages are made of.

use std::path::PathBuf;

use anyhow::Result;
use keywright_testkit::workspace_root;

/// A checkout: this one, or a copy of it.
pub(crate) struct Tree {
    /// Its root.
    pub(crate) root: PathBuf,
    /// Where cargo builds it.
    pub(crate) target: PathBuf,
    /// The version of everything in it.
    pub(crate) version: String,
}

impl Tree {
    /// The one that we were built from.
    pub(crate) fn ours() -> Result<Tree> {
        let root = workspace_root();
        let mut command = cargo_metadata::MetadataCommand::new();
        let metadata = command.current_dir(&root).no_deps().exec()?;
        Ok(Tree {
            root,
            target: metadata.target_directory.into_std_path_buf(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}
