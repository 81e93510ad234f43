//! The parts of the documentation that follow from sources which no server is needed for: errors, what becomes of statements, plots.

mod chart;
mod constructs;
mod errors;
mod plots;
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
    // Beside them lie the suites that read them.
    files.retain(|file| file.extension().is_some_and(|of| of != "rs"));
    files.sort();
    Ok(files)
}
