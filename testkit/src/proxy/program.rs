//! The program, found or built.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};

use crate::{Result, cargo, workspace_root};

/// The variable that names a program to test in place of building it, such as an installed one.
pub(super) const VARIABLE: &str = "KEYWRIGHT_PROXY_PROGRAM";

/// The program: the one that [`VARIABLE`] names, else built once in a process, so that all its proxies are
/// the same while the sources are being edited.
pub(super) fn built_once() -> Result<PathBuf> {
    static BUILT: Mutex<Option<PathBuf>> = Mutex::new(None);
    if let Some(program) = std::env::var_os(VARIABLE) {
        return Ok(PathBuf::from(program));
    }
    // Under the lock on purpose: the others want the same.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = built.as_ref() {
        return Ok(program.clone());
    }
    let program = build()?;
    *built = Some(program.clone());
    Ok(program)
}

fn build() -> Result<PathBuf> {
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => workspace_root().join("target"),
    };
    let status = cargo()
        .args(["build", "--quiet", "--package", "keywright-proxy"])
        .arg("--target-dir")
        .arg(&target)
        .status()
        .context("running cargo")?;
    if !status.success() {
        bail!("the proxy could not be built: {status}");
    }
    let program: &Path = "debug/keywright".as_ref();
    Ok(target.join(program))
}
