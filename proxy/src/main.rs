//! `keywright-proxy`: the command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use keywright_core::{Layout, Step, Tag};
use keywright_proxy::config::Config;
use keywright_proxy::serve::{self, Orders};
use keywright_proxy::tables::Seen;
use keywright_proxy::{decode, tables};
use keywright_store::{KeySpec, Keys, TagOptions};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

/// Step of tags that `init` makes.
const STEP: i64 = 1_000;

/// A MySQL proxy that fills generated keys into the application's INSERTs.
#[derive(Parser)]
#[command(name = "keywright-proxy", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve until SIGTERM or Ctrl-C.
    Run(File),
    /// Look at the store and at all tables that rules are for, and say what is wrong.
    Check(Check),
    /// Create the store's tables, and the tags of all rules.
    Init(File),
    /// Say when and by whom a snowflake or readable id was issued.
    Decode(Decode),
}

#[derive(Args)]
struct File {
    /// The configuration file.
    #[arg(long)]
    config: PathBuf,
}

#[derive(Args)]
struct Decode {
    /// The id.
    #[arg(allow_negative_numbers = true)]
    id: String,
    /// The layout of snowflake ids: "twitter", or any that a configuration may name.
    #[arg(long, default_value = "twitter")]
    layout: String,
}

#[derive(Args)]
struct Check {
    #[command(flatten)]
    file: File,
    /// Apply the fence where a rule says `fence = true` and it is missing.
    #[arg(long)]
    fence: bool,
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            EnvFilter::try_from_env("KEYWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .init();
    let outcome = match Arguments::parse().command {
        Command::Run(file) => run(&file),
        Command::Check(check) => look(&check),
        Command::Init(file) => init(&file),
        Command::Decode(of) => explain_id(&of),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn open(file: &File) -> Result<(Config, Keys)> {
    let config = Config::load(&file.config)?;
    let keys = Keys::open(config.store.clone()).map_err(|failure| anyhow::anyhow!("{failure}"))?;
    Ok((config, keys))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting a runtime")
}

fn run(file: &File) -> Result<()> {
    let (config, keys) = open(file)?;
    let runtime = runtime()?;
    let seen = runtime.block_on(prepare(&config))?;
    let (give, orders) = watch::channel(Arc::new(Orders::new(&config, &keys, &seen)?));
    let (stop, stopping) = watch::channel(false);
    let signals = {
        let _inside = runtime.enter();
        [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ]
        .map(signal)
    };
    let [terminate, interrupt, hangup] = signals;
    let (mut terminate, mut interrupt, mut hangup) = (terminate?, interrupt?, hangup?);
    let serving = {
        let (keys, config) = (keys.clone(), config.clone());
        std::thread::spawn(move || serve::serve(config, keys, orders, stopping))
    };
    runtime.block_on(async {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hangup.recv() => match reload(file, &config, &keys).await {
                    Ok(orders) => {
                        // Whoever listened has ended, and so does the process.
                        let _ = give.send(Arc::new(orders));
                        tracing::info!("new connections follow the rules as they are now");
                    }
                    Err(error) => tracing::error!("the rules stay as they were: {error:#}"),
                },
                () = tokio::time::sleep(std::time::Duration::from_millis(100)) => {
                    if serving.is_finished() {
                        break;
                    }
                }
            }
        }
        // Nobody may listen any more.
        let _ = stop.send(true);
    });
    let served = match serving.join() {
        Ok(served) => served,
        Err(_) => bail!("the proxy's threads panicked"),
    };
    runtime.block_on(keys.hand_back());
    served
}

/// The rules of the file as it is now. Listeners and the store stay as they are until the next start.
async fn reload(file: &File, running: &Config, keys: &Keys) -> Result<Orders> {
    let config = Config::load(&file.config)?;
    if config.listeners != running.listeners {
        bail!("listeners have changed, which needs a restart");
    }
    let seen = prepare(&config).await?;
    Orders::new(&config, keys, &seen)
}

/// Looks at the tables of every listener, applies fences, and fails when keys cannot be stored.
async fn prepare(config: &Config) -> Result<Vec<Seen>> {
    let mut seen = Vec::new();
    let mut errors = Vec::new();
    for listener in &config.listeners {
        let Some(admin) = &listener.admin else {
            seen.push(Seen::default());
            continue;
        };
        match tables::look(config, admin, true).await {
            Ok(found) => {
                for warning in found.warnings {
                    tracing::warn!(listener = listener.bind, "{warning}");
                }
                errors.extend(found.errors);
                seen.push(found.seen);
            }
            Err(error) => {
                tracing::warn!(
                    listener = listener.bind,
                    "tables were not checked: {error:#}"
                );
                seen.push(Seen::default());
            }
        }
    }
    if errors.is_empty() {
        Ok(seen)
    } else {
        bail!(
            "tables cannot hold the keys:\n    {}",
            errors.join("\n    ")
        );
    }
}

fn look(check: &Check) -> Result<()> {
    let (config, keys) = open(&check.file)?;
    runtime()?.block_on(async {
        let mut bad = 0;
        for finding in keys.check().await {
            println!("store: {}", finding.message);
            bad += usize::from(finding.severity == keywright_store::Severity::Error);
        }
        for listener in &config.listeners {
            let Some(admin) = &listener.admin else {
                println!("{}: no admin url, tables were not looked at", listener.bind);
                continue;
            };
            let found = tables::look(&config, admin, check.fence).await?;
            for line in found.errors.iter().chain(&found.warnings) {
                println!("{}: {line}", listener.bind);
            }
            bad += found.errors.len();
        }
        if bad > 0 {
            bail!("{bad} problem(s) must be solved first");
        }
        println!("ready to run");
        Ok(())
    })
}

fn explain_id(of: &Decode) -> Result<()> {
    println!("{}", decode::decode(&of.id, &Layout::parse(&of.layout)?)?);
    Ok(())
}

fn init(file: &File) -> Result<()> {
    let (config, keys) = open(file)?;
    runtime()?.block_on(async {
        let failed = |failure: keywright_store::Failure| anyhow::anyhow!("{failure}");
        for made in keys.init().await.map_err(failed)? {
            println!("created {made}");
        }
        let there: Vec<String> = keys
            .tags()
            .await
            .map_err(failed)?
            .into_iter()
            .map(|listing| listing.tag)
            .collect();
        let mut made: Vec<&Tag> = Vec::new();
        for configured in &config.rules {
            let tag = match &configured.spec {
                KeySpec::Segment(tag) => tag,
                KeySpec::Stride(stride) => stride.tag(),
                KeySpec::Snowflake | KeySpec::Uuid { .. } | KeySpec::Readable(_) => continue,
            };
            if there.iter().any(|name| name == tag.as_str()) || made.contains(&tag) {
                continue;
            }
            let options = TagOptions::with_step(Step::new(STEP)?);
            keys.create_tag(tag, &options).await.map_err(failed)?;
            println!("created tag \"{tag}\"");
            made.push(tag);
        }
        Ok(())
    })
}
