//! The project's own commands: `cargo xtask --help`.

mod bench;
mod check;
mod conformance;
mod demo;
mod docs;
mod fuzz;
mod install;
mod links;
mod needs;
mod oracle;
mod package;
mod program;
mod shell;
mod simulate;
mod soak;
mod suites;
mod test;
mod tree;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Builds, shows, checks and packages Keywright.
///
/// What a command needs and the machine lacks is installed from Debian's packages, after saying what. That takes root or
/// sudo; without them the packages are named and nothing is done.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Demo),
    Docs(docs::Docs),
    Test(test::Test),
    Check(check::Check),
    Conformance(conformance::Conformance),
    Simulate(simulate::Simulate),
    Fuzz(fuzz::Fuzz),
    Oracle(oracle::Oracle),
    Soak(soak::Soak),
    Bench(bench::Bench),
    Install(install::Install),
    Package(package::Package),
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Demo(demo) => demo.run(),
        Command::Docs(docs) => docs.run(),
        Command::Test(test) => test.run(),
        Command::Check(check) => check.run(),
        Command::Conformance(conformance) => conformance.run(),
        Command::Simulate(simulate) => simulate.run(),
        Command::Fuzz(fuzz) => fuzz.run(),
        Command::Oracle(oracle) => oracle.run(),
        Command::Soak(soak) => soak.run(),
        Command::Bench(bench) => bench.run(),
        Command::Install(install) => install.run(),
        Command::Package(package) => package.run(),
    }
}
