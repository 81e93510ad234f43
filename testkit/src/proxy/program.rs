//! The program, found or built.

use std::path::PathBuf;

use anyhow::{Context, bail};
use once_cell::sync::OnceCell;

use crate::{Result, cargo, workspace_root};

/// What its file is called.
pub(super) const NAME: &str = "keywright";

/// The variable that names a program to test in place of building it, such as an installed one.
pub(super) const VARIABLE: &str = "KEYWRIGHT_PROXY_PROGRAM";

/// The program: the one that [`VARIABLE`] names, else built once in a process, so that all its proxies are the same while the
/// sources are being edited. A build that failed is tried again by the next who asks.
pub(super) fn built_once() -> Result<PathBuf> {
    static BUILT: OnceCell<PathBuf> = OnceCell::new();
    if let Some(program) = std::env::var_os(VARIABLE) {
        return Ok(PathBuf::from(program));
    }
    BUILT.get_or_try_init(build).cloned()
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
    Ok(target.join("debug").join(NAME))
}
