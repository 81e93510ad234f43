//! Who gives ids.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use keywright_testkit::etcd::EtcdCluster;
use keywright_testkit::redis::{RedisServer, RedisTools, RespClient};
use keywright_testkit::{WAIT_MAX, free_port, wait_until, workspace_root};

use super::super::cores::Cores;
use super::super::machine::cpu_ns;
use super::load::{Ask, Load};
use crate::shell::{cargo, run};

/// Connections over HTTP.
pub(super) const HTTP_CLIENTS: usize = 20;

/// A server, and the protocol that it is asked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Served {
    RedisInMemory,
    RedisOnDisk,
    KeysOverRedis,
    /// Of a tag of which a thousand ids are reserved at a time, so that refills fall into every run.
    KeysRefilled,
    KeysOverHttp,
    /// Of a strict tag, with the store in a file.
    StrictInFile,
    /// With the store in etcd.
    StrictInEtcd,
}

impl Served {
    pub(super) const ALL: [Served; 7] = [
        Served::RedisInMemory,
        Served::RedisOnDisk,
        Served::KeysOverRedis,
        Served::KeysRefilled,
        Served::KeysOverHttp,
        Served::StrictInFile,
        Served::StrictInEtcd,
    ];

    /// Those whose replies wait for a commit of the store.
    pub(super) const STRICT: [Served; 2] = [Served::StrictInFile, Served::StrictInEtcd];

    pub(super) fn name(self) -> &'static str {
        match self {
            Served::RedisInMemory => "redis-server, in memory",
            Served::RedisOnDisk => "redis-server, appendfsync always",
            Served::KeysOverRedis | Served::KeysOverHttp => "keywright",
            Served::KeysRefilled => "keywright, step held at 1000",
            Served::StrictInFile => "keywright, strict, store in a file",
            Served::StrictInEtcd => "keywright, strict, store in etcd",
        }
    }

    /// What it is asked.
    pub(super) fn loads(self) -> &'static [Load] {
        match self {
            Served::RedisInMemory
            | Served::RedisOnDisk
            | Served::KeysOverRedis
            | Served::StrictInFile
            | Served::StrictInEtcd => &Self::INCR,
            Served::KeysRefilled => &[Self::REFILLED],
            Served::KeysOverHttp => &Self::HTTP,
        }
    }

    /// What all servers of the protocol of Redis are asked.
    pub(super) const INCR: [Load; 4] = [
        Load::of(Ask::Incr, 1),
        Load::of(Ask::Incr, 8),
        Load::of(Ask::Incr, 64),
        Load::of(Ask::IncrPipeline, 8),
    ];

    const HTTP: [Load; 3] = [
        Load::of(Ask::Http, HTTP_CLIENTS),
        Load::of(Ask::HttpPipeline, HTTP_CLIENTS),
        Load::of(Ask::Http100, HTTP_CLIENTS),
    ];

    /// What is asked while ranges are refilled.
    pub(super) const REFILLED: Load = Load::of(Ask::Incr, 8);
}

/// All of them. They are ended when dropped.
pub(super) struct Servers {
    in_memory: RedisServer,
    on_disk: RedisServer,
    keywright: Keywright,
    refilled: Keywright,
    strict: [Keywright; 2],
    _etcd: EtcdCluster,
}

/// The program with both key ports.
pub(super) struct Keywright {
    pub(super) process: Child,
    pub(super) redis: u16,
    http: u16,
    metrics: u16,
}

/// What its tag is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Its {
    Distinct,
    /// A thousand ids are reserved at a time.
    Refilled,
    Strict,
}

/// What confirmations of strict tags have been.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Confirmations {
    pub(super) count: f64,
    pub(super) seconds: f64,
}

impl Servers {
    /// On the servers' core, all but etcd.
    pub(super) fn start(tools: &RedisTools, dir: &Path, cores: Cores) -> Result<Servers> {
        let on_disk = ["--appendonly", "yes", "--appendfsync", "always"];
        let etcd = EtcdCluster::start(1)?;
        let in_etcd = format!("etcd://127.0.0.1:{}/keywright", etcd.port(0));
        build()?;
        cores.on_first(|| {
            Ok(Servers {
                in_memory: RedisServer::start(tools, &["--appendonly", "no"])?,
                on_disk: RedisServer::start(tools, &on_disk)?,
                keywright: Keywright::start(dir, "distinct", Its::Distinct, None)?,
                refilled: Keywright::start(dir, "refilled", Its::Refilled, None)?,
                strict: [
                    Keywright::start(dir, "strict", Its::Strict, None)?,
                    Keywright::start(dir, "strict-etcd", Its::Strict, Some(&in_etcd))?,
                ],
                _etcd: etcd,
            })
        })
    }

    /// Where it listens.
    pub(super) fn port(&self, served: Served) -> u16 {
        match served {
            Served::RedisInMemory => self.in_memory.port(),
            Served::RedisOnDisk => self.on_disk.port(),
            Served::KeysOverRedis => self.keywright.redis,
            Served::KeysRefilled => self.refilled.redis,
            Served::KeysOverHttp => self.keywright.http,
            Served::StrictInFile => self.strict[0].redis,
            Served::StrictInEtcd => self.strict[1].redis,
        }
    }

    /// How often its replies were confirmed, and how long that took; nothing where they are not.
    pub(super) fn confirmations(&self, served: Served) -> Result<Option<Confirmations>> {
        let keywright = match served {
            Served::RedisInMemory
            | Served::RedisOnDisk
            | Served::KeysOverRedis
            | Served::KeysRefilled
            | Served::KeysOverHttp => return Ok(None),
            Served::StrictInFile => &self.strict[0],
            Served::StrictInEtcd => &self.strict[1],
        };
        keywright.confirmations().map(Some)
    }

    /// CPU time that its process has used, nanoseconds.
    pub(super) fn cpu_ns(&self, served: Served) -> Result<u64> {
        cpu_ns(match served {
            Served::RedisInMemory => self.in_memory.pid(),
            Served::RedisOnDisk => self.on_disk.pid(),
            Served::KeysOverRedis | Served::KeysOverHttp => self.keywright.process.id(),
            Served::KeysRefilled => self.refilled.process.id(),
            Served::StrictInFile => self.strict[0].process.id(),
            Served::StrictInEtcd => self.strict[1].process.id(),
        })
    }
}

/// The program, for release.
fn build() -> Result<()> {
    run(&mut cargo([
        "build",
        "--release",
        "--package",
        "keywright-proxy",
    ]))
}

impl Keywright {
    /// Built before. With a store in a file, or elsewhere.
    pub(super) fn start(dir: &Path, name: &str, its: Its, url: Option<&str>) -> Result<Keywright> {
        let (redis, http, metrics) = (free_port()?, free_port()?, free_port()?);
        let dir = dir.join(name);
        fs::create_dir(&dir)?;
        let file = dir.join("keywright.toml");
        let listener = |protocol: &str, port: u16, more: &str| {
            format!(
                "[[listener]]\nprotocol = \"{protocol}\"\nbind = \"127.0.0.1:{port}\"\nkeys = {{ id = \"segment:id\" }}\n{more}\n"
            )
        };
        let store = match url {
            Some(url) => format!("[store]\nurl = \"{url}\"\n"),
            None => format!(
                "[store]\nurl = \"file:{}\"\nany_file_system = true\n",
                dir.join("store.db").display()
            ),
        };
        let cluster = match its {
            Its::Strict => format!("cluster_address = \"127.0.0.1:{redis}\"\n"),
            Its::Distinct | Its::Refilled => String::new(),
        };
        let text = format!(
            "{store}\n[metrics]\nbind = \"127.0.0.1:{metrics}\"\n\n{}{}",
            listener("redis", redis, &cluster),
            listener("http", http, "")
        );
        fs::write(&file, text)?;
        let command = |arguments: &[&str]| {
            let mut command = Command::new(workspace_root().join("target/release/keywright"));
            command.args(arguments).arg("--config").arg(&file);
            command
        };
        match its {
            Its::Strict => run(&mut command(&["init", "--strict", "id"]))?,
            Its::Distinct => run(&mut command(&["init"]))?,
            Its::Refilled => {
                run(&mut command(&["init"]))?;
                let held = ["tag", "alter", "id", "--step", "1000", "--step-max", "1000"];
                run(&mut command(&held))?;
            }
        }
        let log = fs::File::create(dir.join("log"))?;
        let process = command(&["run"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting the program")?;
        let keywright = Keywright {
            process,
            redis,
            http,
            metrics,
        };
        wait_until("the program's key ports", WAIT_MAX, || {
            let listens = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
            Ok(listens(redis) && listens(http) && listens(metrics))
        })?;
        if its == Its::Strict {
            // Nobody is active at first.
            wait_until("keys of a strict tag", WAIT_MAX, || {
                let mut client = RespClient::connect(redis)?;
                Ok(client.say("INCR id")?.integer().is_ok())
            })?;
        }
        Ok(keywright)
    }

    fn confirmations(&self) -> Result<Confirmations> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics))?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let figure = |name: &str| -> Result<f64> {
            let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
            let value = values.find_map(|rest| rest.strip_prefix(' '));
            Ok(value.context("no such figure")?.trim().parse()?)
        };
        Ok(Confirmations {
            count: figure("keywright_order_confirmations_total")?,
            seconds: figure("keywright_order_confirm_seconds_total")?,
        })
    }
}

impl Drop for Keywright {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody to tell.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
