//! The ways from the client to the server: straight, through HAProxy, through Keywright.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use keywright_testkit::{MariaServer, WAIT_MAX, free_port, wait_until, workspace_root};

use super::super::cores::Cores;
use super::super::machine::cpu_ns;
use crate::shell::{cargo, run};

/// A way from the client to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Direct,
    Haproxy,
    NoRule,
    Segment,
    Snowflake,
}

impl Way {
    pub(super) const ALL: [Way; 5] = [
        Way::Direct,
        Way::Haproxy,
        Way::NoRule,
        Way::Segment,
        Way::Snowflake,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Haproxy => "HAProxy, TCP",
            Way::NoRule => "keywright, no rule",
            Way::Segment => "keywright, segment keys",
            Way::Snowflake => "keywright, snowflake keys",
        }
    }

    /// The table whose keys this way fills in; where it fills none, the server does.
    pub(super) fn table(self) -> &'static str {
        match self {
            Way::Direct | Way::Haproxy | Way::NoRule => "t_native",
            Way::Segment => "t_segment",
            Way::Snowflake => "t_snowflake",
        }
    }

    /// Whether the server issues no keys for its table.
    pub(super) fn is_fenced(self) -> bool {
        self.key().is_some()
    }

    fn key(self) -> Option<&'static str> {
        match self {
            Way::Direct | Way::Haproxy | Way::NoRule => None,
            Way::Segment => Some("segment:bench"),
            Way::Snowflake => Some("snowflake"),
        }
    }
}

/// A running program between client and server; ended when dropped.
pub(super) struct Hop {
    port: u16,
    process: Option<Child>,
}

impl Hop {
    /// Starts what stands on this way, on the first core, and waits until it accepts.
    pub(super) fn start(way: Way, server: &MariaServer, dir: &Path, cores: &Cores) -> Result<Hop> {
        let port = match way {
            Way::Direct => {
                return Ok(Hop {
                    port: server.port(),
                    process: None,
                });
            }
            Way::Haproxy | Way::NoRule | Way::Segment | Way::Snowflake => free_port()?,
        };
        let mut command = match way {
            Way::Haproxy | Way::Direct => haproxy(server, port, dir)?,
            Way::NoRule | Way::Segment | Way::Snowflake => keywright(way, server, port, dir)?,
        };
        let log = fs::File::create(dir.join(format!("{way:?}.log")))?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut process = cores
            .on_first(|| Ok(command.spawn()?))
            .with_context(|| format!("starting {}", way.name()))?;
        wait_until(way.name(), WAIT_MAX, || {
            if let Some(status) = process.try_wait()? {
                let log = fs::read_to_string(dir.join(format!("{way:?}.log")))?;
                bail!("{} ended ({status}):\n{log}", way.name());
            }
            Ok(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
        })?;
        Ok(Hop {
            port,
            process: Some(process),
        })
    }

    /// Where clients connect to.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The process; none on the direct way.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// CPU time that the process has used, nanoseconds; 0 where there is none.
    pub(super) fn cpu_ns(&self) -> Result<u64> {
        let Some(process) = &self.process else {
            return Ok(0);
        };
        cpu_ns(process.id())
    }
}

impl Drop for Hop {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended by itself; there is nobody to tell.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn haproxy(server: &MariaServer, port: u16, dir: &Path) -> Result<Command> {
    let file = dir.join("haproxy.cfg");
    let text = format!(
        "global\n    maxconn 4096\n\
         defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 1h\n    timeout server 1h\n\
         listen mysql\n    bind 127.0.0.1:{port}\n    server one 127.0.0.1:{}\n",
        server.port()
    );
    fs::write(&file, text)?;
    let mut command = Command::new("/usr/sbin/haproxy");
    command.arg("-db").arg("-f").arg(file);
    Ok(command)
}

fn keywright(way: Way, server: &MariaServer, port: u16, dir: &Path) -> Result<Command> {
    let upstream = server.port();
    let mut text = format!(
        "[store]\nurl = \"mysql://root@127.0.0.1:{upstream}/keywright\"\n\n\
         [[listener]]\nbind = \"127.0.0.1:{port}\"\nupstream = \"127.0.0.1:{upstream}\"\n\
         admin = \"mysql://root@127.0.0.1:{upstream}\"\n"
    );
    if let Some(key) = way.key() {
        text += &format!(
            "\n[[rule]]\ntable = \"bench.{}\"\ncolumn = \"id\"\nkey = \"{key}\"\nfence = true\n",
            way.table()
        );
    }
    let file = dir.join(format!("{way:?}.toml"));
    fs::write(&file, text)?;
    let mut command = Command::new(workspace_root().join("target/release/keywright"));
    command.arg("run").arg("--config").arg(file);
    Ok(command)
}

/// The program, for release.
pub(super) fn build() -> Result<()> {
    run(&mut cargo([
        "build",
        "--release",
        "--package",
        "keywright-proxy",
    ]))
}

/// Makes the store's tables and its tag.
pub(super) fn prepare(server: &MariaServer, dir: &Path) -> Result<()> {
    let mut command = keywright(Way::Segment, server, free_port()?, dir)?;
    let mut init = Command::new(command.get_program());
    command.stdin(Stdio::null());
    init.arg("init")
        .arg("--config")
        .arg(dir.join("Segment.toml"));
    run(&mut init)
}
