//! Debian's packages of Redis, unpacked below `target/`, and a private server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use tempfile::TempDir;

use crate::machine::apt::unpacked;
use crate::machine::running::Program;
use crate::redis::client::{RespClient, RespValue};
use crate::{Result, WAIT_MAX, free_port, wait_until};

/// The tools and the server, and what they load that not every machine has.
const PACKAGES: [&str; 5] = [
    "redis-tools",
    "redis-server",
    "libatomic1",
    "libjemalloc2",
    "liblzf1",
];

/// `redis-cli`, `redis-benchmark` and `redis-server`.
#[derive(Debug, Clone)]
pub struct RedisTools {
    dir: PathBuf,
}

impl RedisTools {
    /// Fetched, if they are not there yet.
    ///
    /// # Errors
    /// They cannot be had.
    pub fn get() -> Result<RedisTools> {
        let dir = unpacked("redis", &PACKAGES)?;
        Ok(RedisTools { dir })
    }

    /// One of the programs, to be run with the libraries beside it.
    ///
    /// # Errors
    /// The packages have no libraries.
    pub fn command(&self, program: &str) -> Result<Command> {
        let libraries = libraries(&self.dir.join("usr/lib"))?;
        let mut command = Command::new(self.dir.join("usr/bin").join(program));
        command.env("LD_LIBRARY_PATH", libraries);
        Ok(command)
    }
}

/// The directory of each machine below.
fn libraries(dir: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    let has_libraries = |path: &PathBuf| path.join("libatomic.so.1").exists();
    let found = entries.find_map(|entry| Some(entry.ok()?.path()).filter(has_libraries));
    found.context("no libraries beside the tools of Redis")
}

/// A server of Redis that keeps nothing, unless its options say so. It is killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    tools: RedisTools,
    options: Vec<String>,
    port: u16,
    process: Program,
    dir: TempDir,
}

impl RedisServer {
    /// Options by which it keeps what it has acknowledged.
    pub const DURABLE: [&'static str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

    /// Started on a free port of this machine, with further options.
    ///
    /// # Errors
    /// It does not listen in time.
    pub fn start(tools: &RedisTools, options: &[&str]) -> Result<RedisServer> {
        let dir = crate::scratch_dir()?;
        let port = free_port()?;
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let process = begin(tools, port, &dir, &options)?;
        Ok(RedisServer {
            tools: tools.clone(),
            options,
            port,
            process,
            dir,
        })
    }

    /// Kills it, and starts it again on its port with what it has kept.
    ///
    /// # Errors
    /// It does not end, or does not listen in time.
    pub fn kill9_and_restart(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process = begin(&self.tools, self.port, &self.dir, &self.options)?;
        Ok(())
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// A process, which listens when this returns.
fn begin(tools: &RedisTools, port: u16, dir: &TempDir, options: &[String]) -> Result<Program> {
    let child = tools
        .command("redis-server")?
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        // Of itself 10,000 above its port: among those that the system gives to outgoing connections.
        .args(["--cluster-port", &free_port()?.to_string()])
        .args(["--save", "", "--dir"])
        .arg(dir.path())
        .args(options)
        .stdout(Stdio::null())
        .spawn()
        .context("starting redis-server")?;
    let process = Program::of(&child);
    wait_until("redis-server", WAIT_MAX, || {
        let Ok(mut client) = RespClient::connect(port) else {
            return Ok(false);
        };
        // Not while it reads what it has kept.
        Ok(matches!(client.say("PING"), Ok(RespValue::Simple(_))))
    })?;
    Ok(process)
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Err(error) = self.process.kill() {
            eprintln!("redis-server could not be ended: {error:#}");
        }
    }
}
