//! Directories below `target/` that are filled once, and found there from then on.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::Result;

/// The directory of that name, made if it is not there yet; one of each kind at a time, in all processes. Some name themselves by their
/// path, so they are made in place, and a file tells that one is whole.
pub(crate) fn kept(
    cache: &Path,
    (kind, name): (&str, &str),
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    fs::create_dir_all(cache).with_context(|| format!("making {}", cache.display()))?;
    let lock = File::create(cache.join(format!("{kind}.lock"))).context("making a lock")?;
    lock.lock()
        .with_context(|| format!("locking {}", cache.display()))?;
    let dir = cache.join(name);
    let whole = dir.join("whole");
    if whole.exists() {
        return Ok(dir);
    }
    if dir.exists() {
        fs::remove_dir_all(&dir).context("removing what is not whole")?;
    }
    make(&dir)?;
    fs::write(whole, "").with_context(|| format!("noting that {} is whole", dir.display()))?;
    Ok(dir)
}
