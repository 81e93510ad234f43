//! Running programs so that one sees which, and what they say.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Says what comes next.
pub(crate) fn step(text: &str) {
    println!("==> {text}");
}

/// The cargo that runs us, in the repository.
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = keywright_testkit::cargo();
    command.args(arguments);
    command
}

/// Runs it with its output where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command
        .status()
        .with_context(|| format!("running `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Says what is run, then runs it.
pub(crate) fn run_loudly(command: &mut Command) -> Result<()> {
    step(&shown(command));
    run(command)
}

/// Runs it and returns what it prints.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command
        .output()
        .with_context(|| format!("running `{shown}`"))?;
    if !output.status.success() {
        // Some programs tell their errors on standard output.
        let [printed, said] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        bail!("`{shown}` failed: {}\n{printed}{said}", output.status);
    }
    let text = String::from_utf8(output.stdout)
        .with_context(|| format!("what `{shown}` printed is not UTF-8"))?;
    Ok(text.trim_end().to_owned())
}

/// The command as one would type it; what was set in its environment comes first.
fn shown(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| {
        let value = value?;
        Some(format!("{}={}", name.display(), value.display()))
    });
    let program = command.get_program();
    // Where rustup keeps its cargo is of no interest.
    let is_cargo = Path::new(program).file_name() == Some(OsStr::new("cargo"));
    let program = if is_cargo {
        OsStr::new("cargo")
    } else {
        program
    };
    let words = std::iter::once(program).chain(command.get_args());
    let words = words.map(|word| word.display().to_string());
    set.chain(words).collect::<Vec<_>>().join(" ")
}

/// Whether a program of that name is on the PATH.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
