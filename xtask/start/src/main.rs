//! What `cargo xtask` runs first: in a fresh clone it says at once what takes so long, then hands over to `xtask`.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    if !is_compiled().unwrap_or(false) {
        let words: Vec<_> = arguments
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        eprintln!(
            "==> cargo xtask {}: the project's own commands are compiled first, for a minute or two, once",
            words.join(" ")
        );
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["run", "--package", "xtask", "--"])
        .args(arguments);
    // What it tells of this package is what some build scripts (ring's) look at: they, and all that depends on them, would run anew.
    let told = env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    });
    for name in told {
        command.env_remove(name);
    }
    let error = command.exec();
    eprintln!("error: starting cargo: {error}");
    ExitCode::FAILURE
}

/// Whether `xtask` lies beside this program, of this or an earlier state of the sources.
fn is_compiled() -> io::Result<bool> {
    Ok(env::current_exe()?.with_file_name("xtask").exists())
}
