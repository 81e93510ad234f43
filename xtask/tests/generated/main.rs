//! The pages of the documentation that follow from sources which no server is needed for: errors, and what becomes of statements.

mod constructs;
mod errors;
mod presets;

use std::fs;
use std::path::PathBuf;

use keywright_testkit::{Result, workspace_root};

/// The files of a directory, by name.
fn files(directory: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(workspace_root().join(directory))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}
