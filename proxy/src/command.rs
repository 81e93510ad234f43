//! The program's commands, one module each, and what they share.

pub(crate) mod advance;
pub(crate) mod check;
pub(crate) mod decode;
pub(crate) mod explain;
mod fence_owners;
mod forgotten;
pub(crate) mod generate;
mod hidden;
pub(crate) mod init;
mod intended;
mod kept_back;
mod left_over;
mod moving;
mod new_tables;
mod ordered;
pub(crate) mod release;
mod run;
mod schema_refresh;
pub(crate) mod serving;
mod signals;
mod stale;
pub(crate) mod store;
mod switching;
pub(crate) mod tag;
mod target;
mod unseen_ids;
pub(crate) mod user;
mod wanted;
pub(crate) mod worker;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use keywright_proxy::config::Config;
use keywright_store::Keys;
use tokio::runtime::{Builder, Runtime};

/// How what a command finds is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

/// Where the packages put the configuration.
const CONFIG_DEFAULT: &str = "/etc/keywright/keywright.toml";

/// The configuration that a command is for.
#[derive(Args)]
pub(crate) struct File {
    /// The configuration file.
    #[arg(long, default_value = CONFIG_DEFAULT)]
    pub(crate) config: PathBuf,
}

impl File {
    pub(crate) fn load(&self) -> Result<Config> {
        Config::load(&self.config)
    }

    /// The configuration, and its store, which nothing is asked of yet.
    pub(crate) fn open(&self) -> Result<(Config, Keys)> {
        let config = self.load()?;
        let keys =
            Keys::open(config.store.clone()).map_err(|failure| anyhow::anyhow!("{failure}"))?;
        Ok((config, keys))
    }
}

/// Runs what is asked of a store, and leaves its file whole.
fn with_store<T>(file: &File, run: impl AsyncFnOnce(Keys) -> Result<T>) -> Result<T> {
    let (_, keys) = file.open()?;
    runtime()?.block_on(async {
        let done = run(keys.clone()).await;
        keys.hand_back().await;
        done
    })
}

/// The store of that name; without a name the one that has no tags.
fn of_store<'a>(keys: &'a Keys, name: Option<&str>) -> Result<&'a Keys> {
    let Some(name) = name else { return Ok(keys) };
    let found = keys.store_named(name);
    found.map_err(|failure| anyhow::anyhow!("{failure}"))
}

pub(crate) fn runtime() -> Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting a runtime")
}
