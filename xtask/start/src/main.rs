//! What `cargo xtask` runs first: in a fresh clone it says at once what takes so long, then hands over to `xtask`.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// What `xtask` is built beside: the features of what it depends on are then those of the tests, and that is compiled once for both. The extension
/// is built by itself, for one version of the server.
const BESIDE: [&str; 3] = ["--workspace", "--exclude", "keywright"];

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: starting xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds `xtask` and becomes it.
fn run(arguments: &[OsString]) -> io::Result<ExitCode> {
    let xtask = env::current_exe()?.with_file_name("xtask");
    if !xtask.exists() {
        let words: Vec<_> = arguments
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        eprintln!(
            "==> cargo xtask {}: the project's own commands are compiled first, for a few minutes, once",
            words.join(" ")
        );
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = without_package(Command::new(cargo));
    let build = build.arg("build").args(BESIDE).args(["--bin", "xtask"]);
    if !build.status()?.success() {
        // The compiler has said why.
        return Ok(ExitCode::FAILURE);
    }
    Err(without_package(Command::new(xtask)).args(arguments).exec())
}

/// What cargo tells of this package is what some build scripts (ring's) look at: they, and all that depends on them, would run anew.
fn without_package(mut command: Command) -> Command {
    let told = env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    });
    for name in told {
        command.env_remove(name);
    }
    command
}
