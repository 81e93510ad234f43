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

use std::io::{Write, stderr};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::{CommandFactory, Parser, Subcommand};
use command::{
    File, advance, check, decode, explain, generate, init, release, serving, store, tag, user,
    worker,
};
use keywright_proxy::log::{EventLines, LogOutput, may_be_shown};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// A MySQL proxy that fills generated keys into the application's INSERTs.
#[derive(Parser)]
#[command(name = "keywright", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve until SIGTERM or Ctrl-C. On SIGHUP read the configuration again; on SIGUSR2 let a new program take over.
    Run(File),
    /// Check the configuration, the store, and all tables of rules, and report what is wrong.
    Check(check::Check),
    /// Create the store's tables and the tags of all rules, above the ids that tables have. Raise tags that are below.
    Init(init::Init),
    /// Raise a tag, or ids made of time, above an id that you name: after an old backup of the store, or where a server cannot be asked.
    Advance(advance::Advance),
    /// Tags: change how programs reserve of them, drop unused ones, move them, decode hidden keys.
    Tag(tag::Tag),
    /// The store as a whole: tell it that a backup was restored.
    Store(store::Store),
    /// Worker ids of PostgreSQL databases: assign them for good, list them, take them back.
    Worker(worker::Worker),
    /// Users of key ports: add and remove them, grant and revoke rights on names.
    User(user::User),
    /// Show how a statement, or each statement of a general query log, would be handled. Nothing is executed.
    Explain(explain::Explain),
    /// Print the statements that return tables to native auto-increment, and the order of the steps. Nothing is executed.
    Release(release::Release),
    /// Show when, and with which worker id or bucket, a snowflake or readable id was issued.
    Decode(decode::Decode),
    /// Generate files that packages install beside the program: completions for shells, manual pages.
    Generate(generate::Generate),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(Mutex::new(LogOutput::new(stderr())))
        // Whatever features it is built with: most logs are read in files.
        .with_ansi(false)
        .event_format(EventLines::default())
        .with_env_filter(
            EnvFilter::try_from_env("KEYWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .finish()
        .with(filter_fn(may_be_shown))
        .init();
    let command = Arguments::parse().command;
    // Its clients close connections at any moment; nobody reads what the others print any more.
    if !matches!(command, Command::Run(_)) {
        sigpipe::reset();
    }
    let outcome = match command {
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
            // Whether anybody can read it or not.
            let _ = writeln!(stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
