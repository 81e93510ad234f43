//! `keywright`: the command line.
// What a peer, a file or a server says is no reason to panic.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

mod command;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use command::{
    File, advance, check, decode, explain, generate, init, release, serving, store, tag, user,
    worker,
};
use tracing_subscriber::EnvFilter;

/// A MySQL proxy that fills generated keys into the application's INSERTs.
#[derive(Parser)]
#[command(name = "keywright", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve until SIGTERM or Ctrl-C. SIGHUP has the configuration read again, SIGUSR2 a new program take over.
    Run(File),
    /// Look at the store and at all tables that rules are for, and say what is wrong.
    Check(check::Check),
    /// Create the store's tables and the tags of all rules, or raise them, above the ids that tables have.
    Init(init::Init),
    /// Have all later ids lie above those that you vouch for: after an old backup of the store, or where a server cannot be asked.
    Advance(advance::Advance),
    /// Tags: change how programs reserve of them, drop those that are no more used.
    Tag(tag::Tag),
    /// What is done to the store as a whole, such as after a backup was restored.
    Store(store::Store),
    /// Worker ids of PostgreSQL databases: give them for good, list them, take them back.
    Worker(worker::Worker),
    /// Users of key ports: add and remove them, say what they may do with which names.
    User(user::User),
    /// Say what would become of a statement, or of all statements of a general query log. Nothing is carried out.
    Explain(explain::Explain),
    /// Print the statements by which tables give keys of their own again, and in which order to go. Nothing is carried out.
    Release(release::Release),
    /// Say when and by whom a snowflake or readable id was issued.
    Decode(decode::Decode),
    /// Make what packages install beside the program: completions for shells, manual pages.
    Generate(generate::Generate),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        // Whatever features it is built with: most logs are read in files.
        .with_ansi(false)
        .with_env_filter(
            EnvFilter::try_from_env("KEYWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .init();
    let outcome = match Arguments::parse().command {
        Command::Run(file) => serving::run(&file),
        Command::Check(check) => check.run(),
        Command::Init(init) => init.run(),
        Command::Advance(advance) => advance.run(),
        Command::Tag(tag) => tag.run(),
        Command::Store(store) => store.run(),
        Command::Worker(worker) => worker.run(),
        Command::User(user) => user.run(),
        Command::Explain(explain) => explain.run(),
        Command::Release(back) => back.run(),
        Command::Decode(of) => of.run(),
        Command::Generate(of) => of.run(Arguments::command()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
