//! Who gives ids.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use keywright_testkit::redis::{RedisServer, RedisTools};
use keywright_testkit::{WAIT_MAX, free_port, wait_until, workspace_root};

use super::super::machine::cpu_ns;
use super::load::Load;
use crate::shell::{cargo, run};

/// A server, and the protocol that it is asked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Served {
    RedisInMemory,
    RedisOnDisk,
    KeysOverRedis,
    KeysOverHttp,
}

impl Served {
    pub(super) const ALL: [Served; 4] = [
        Served::RedisInMemory,
        Served::RedisOnDisk,
        Served::KeysOverRedis,
        Served::KeysOverHttp,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Served::RedisInMemory => "redis-server, in memory",
            Served::RedisOnDisk => "redis-server, appendfsync always",
            Served::KeysOverRedis | Served::KeysOverHttp => "keywright",
        }
    }

    /// What it is asked.
    pub(super) fn loads(self) -> &'static [Load] {
        match self {
            Served::RedisInMemory | Served::RedisOnDisk | Served::KeysOverRedis => {
                &[Load::Incr, Load::IncrPipeline]
            }
            Served::KeysOverHttp => &[Load::Http, Load::HttpPipeline, Load::Http100],
        }
    }
}

/// All of them. They are ended when dropped.
pub(super) struct Servers {
    in_memory: RedisServer,
    on_disk: RedisServer,
    keywright: Keywright,
}

/// The program with both key ports.
struct Keywright {
    process: Child,
    redis: u16,
    http: u16,
}

impl Servers {
    pub(super) fn start(tools: &RedisTools, dir: &Path) -> Result<Servers> {
        let on_disk = ["--appendonly", "yes", "--appendfsync", "always"];
        Ok(Servers {
            in_memory: RedisServer::start(tools, &["--appendonly", "no"])?,
            on_disk: RedisServer::start(tools, &on_disk)?,
            keywright: Keywright::start(dir)?,
        })
    }

    /// Where it listens.
    pub(super) fn port(&self, served: Served) -> u16 {
        match served {
            Served::RedisInMemory => self.in_memory.port(),
            Served::RedisOnDisk => self.on_disk.port(),
            Served::KeysOverRedis => self.keywright.redis,
            Served::KeysOverHttp => self.keywright.http,
        }
    }

    /// CPU time that its process has used, nanoseconds.
    pub(super) fn cpu_ns(&self, served: Served) -> Result<u64> {
        cpu_ns(match served {
            Served::RedisInMemory => self.in_memory.pid(),
            Served::RedisOnDisk => self.on_disk.pid(),
            Served::KeysOverRedis | Served::KeysOverHttp => self.keywright.process.id(),
        })
    }
}

impl Keywright {
    /// Built for release.
    fn start(dir: &Path) -> Result<Keywright> {
        run(&mut cargo([
            "build",
            "--release",
            "--package",
            "keywright-proxy",
        ]))?;
        let (redis, http) = (free_port()?, free_port()?);
        let file = dir.join("keywright.toml");
        let listener = |protocol: &str, port: u16| {
            format!(
                "[[listener]]\nprotocol = \"{protocol}\"\nbind = \"127.0.0.1:{port}\"\nkeys = {{ id = \"segment:id\" }}\n\n"
            )
        };
        let text = format!(
            "[store]\nurl = \"file:{}\"\nany_file_system = true\n\n{}{}",
            dir.join("store.db").display(),
            listener("redis", redis),
            listener("http", http)
        );
        fs::write(&file, text)?;
        let command = |name: &str| {
            let mut command = Command::new(workspace_root().join("target/release/keywright"));
            command.arg(name).arg("--config").arg(&file);
            command
        };
        run(&mut command("init"))?;
        let log = fs::File::create(dir.join("log"))?;
        let process = command("run")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting the program")?;
        let keywright = Keywright {
            process,
            redis,
            http,
        };
        wait_until("the program's key ports", WAIT_MAX, || {
            let listens = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
            Ok(listens(redis) && listens(http))
        })?;
        Ok(keywright)
    }
}

impl Drop for Keywright {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody to tell.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
