//! The repository, and running cargo in it from a program that cargo runs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_path_buf()
}

/// The cargo that runs us, in the repository, and as if nobody had run us: what it tells of our package in the environment is
/// what some build scripts (ring's) look at, and whoever depends on those would be built anew each time.
pub fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace_root());
    let output = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    });
    for name in output {
        command.env_remove(name);
    }
    command
}
