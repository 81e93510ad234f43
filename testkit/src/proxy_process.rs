//! The proxy as users run it: a process with a configuration file.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use crate::process::send;
use crate::scratch::Scratch;
use crate::{
    Account, Login, Result, Upstream, WAIT_MAX, Wire, cargo, free_port, wait_until, workspace_root,
};

/// How often a start is tried again on another port.
const PORT_TRIES: usize = 5;

/// What a proxy is told. The ports it listens on are chosen when it starts.
#[derive(Debug, Clone, Default)]
pub struct ProxyConfig {
    /// The `[store]` table's `url`; see [`make_store`].
    pub store_url: String,
    /// Further lines of it.
    pub store: String,
    /// One listener for each: the ports of the servers behind them.
    pub upstream_ports: Vec<u16>,
    /// A server's socket, to be reached by in place of its port.
    pub upstream_socket: Option<PathBuf>,
    /// `[[rule]]` tables, each without its head.
    pub rules: Vec<String>,
    /// Lines of every `[[listener]]`.
    pub listener: String,
    /// Further tables, such as `[limits]`.
    pub more: String,
    /// Variables that its environment has besides ours.
    pub environment: Vec<(String, String)>,
}

impl ProxyConfig {
    /// One listener before one server, without rules.
    #[must_use]
    pub fn before(upstream: &Upstream, store_url: &str) -> ProxyConfig {
        ProxyConfig {
            store_url: store_url.to_owned(),
            upstream_ports: vec![upstream.port()],
            ..ProxyConfig::default()
        }
    }

    /// The same with a rule: a glob of tables, and where the keys of their column `id` come from.
    #[must_use]
    pub fn rule(mut self, table: &str, key: &str) -> ProxyConfig {
        self.rules.push(format!(
            "table = \"{table}\"\ncolumn = \"id\"\nkey = \"{key}\"\n"
        ));
        self
    }

    fn text(&self, ports: &[u16], metrics_port: u16) -> String {
        let mut text = format!("[store]\nurl = \"{}\"\n{}", self.store_url, self.store);
        for (bind, upstream) in ports.iter().zip(&self.upstream_ports) {
            let place = match &self.upstream_socket {
                Some(path) => format!("unix:{}", path.display()),
                None => format!("127.0.0.1:{upstream}"),
            };
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "\n[[listener]]\nbind = \"127.0.0.1:{bind}\"\nupstream = \"{place}\"\n\
                 admin = \"mysql://root@127.0.0.1:{upstream}\"\n{}\n",
                self.listener
            );
        }
        for rule in &self.rules {
            text.push_str("\n[[rule]]\n");
            text.push_str(rule);
        }
        let _ = write!(
            text,
            "\n[metrics]\nbind = \"127.0.0.1:{metrics_port}\"\n\n{}\n",
            self.more
        );
        text
    }
}

/// Makes a schema with the store's tables and these tags, each with its first id; returns the store's URL.
///
/// # Errors
/// The server refuses.
pub fn make_store(server: &Upstream, schema: &str, tags: &[(&str, u64)]) -> Result<String> {
    server.run("mysql", &format!("CREATE DATABASE {schema}"))?;
    let tables = fs::read_to_string(workspace_root().join("sql/mysql/keywright_store.sql"))?;
    server.run(schema, &tables)?;
    for (tag, first) in tags {
        server.run(
            schema,
            &format!("INSERT INTO keywright_segment (tag, hi) VALUES ('{tag}', {first})"),
        )?;
    }
    Ok(format!("mysql://root@127.0.0.1:{}/{schema}", server.port()))
}

/// A running proxy. It is killed when dropped.
#[derive(Debug)]
pub struct ProxyProcess {
    config: ProxyConfig,
    ports: Vec<u16>,
    metrics_port: u16,
    process: Option<Child>,
    // Dropped last: the directory that configuration and log lie in.
    scratch: Scratch,
}

impl ProxyProcess {
    /// The variable that names a program to test in place of building it, such as an installed one.
    pub const VARIABLE: &'static str = "KEYWRIGHT_PROXY_PROGRAM";

    /// Builds the proxy, once in a process, and starts it.
    ///
    /// # Errors
    /// It does not build, or does not listen in time; the error shows its log.
    pub fn start(config: ProxyConfig) -> Result<ProxyProcess> {
        let mut proxy = ProxyProcess {
            config,
            ports: Vec::new(),
            metrics_port: 0,
            process: None,
            scratch: Scratch::new("proxy", Account::Ourselves)?,
        };
        for _ in 0..PORT_TRIES {
            let ports = proxy.config.upstream_ports.iter().map(|_| free_port());
            proxy.ports = ports.collect::<Result<_>>()?;
            proxy.metrics_port = free_port()?;
            match proxy.restart() {
                Err(_) if proxy.log().contains("in use") => {}
                started => return started.map(|()| proxy),
            }
        }
        bail!("somebody else took the ports {PORT_TRIES} times in a row");
    }

    /// Starts it again after its end, on the same ports.
    ///
    /// # Errors
    /// It runs, or does not listen in time; the error shows its log.
    pub fn restart(&mut self) -> Result<()> {
        self.begin()?;
        let ports = self.ports.clone();
        let ready = wait_until("the proxy's listeners", WAIT_MAX, || {
            if !self.is_running()? {
                bail!("it has ended");
            }
            Ok(ports
                .iter()
                .all(|&port| TcpStream::connect(("127.0.0.1", port)).is_ok()))
        });
        if let Err(error) = ready {
            let _ended = self.kill9();
            let log = self.log();
            return Err(error.context(format!("starting the proxy; its log:\n{log}")));
        }
        Ok(())
    }

    /// Starts it again after its end, and does not wait until it listens.
    ///
    /// # Errors
    /// It runs.
    pub fn begin(&mut self) -> Result<()> {
        if self.process.is_some() {
            bail!("the proxy runs already");
        }
        self.write_config()?;
        let log = File::create(self.log_file()).context("making the proxy's log")?;
        let process = Command::new(built_once()?)
            .arg("run")
            .arg("--config")
            .arg(self.config_file())
            .envs(self.config.environment.clone())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting the proxy")?;
        self.process = Some(process);
        Ok(())
    }

    /// The first listener's port.
    ///
    /// # Panics
    /// There is no listener.
    #[must_use]
    pub fn port(&self) -> u16 {
        *self.ports.first().expect("a proxy has a listener")
    }

    /// The ports of all listeners, in the order of the configuration.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// The port that metrics are served on.
    #[must_use]
    pub fn metrics_port(&self) -> u16 {
        self.metrics_port
    }

    /// Connects through the first listener as root.
    ///
    /// # Errors
    /// The proxy or the server refuses.
    pub fn wire(&self, database: &str) -> Result<Wire> {
        Wire::connect_tcp(self.port(), &Login::root(database))
    }

    /// The process's id.
    ///
    /// # Errors
    /// It does not run.
    pub fn pid(&self) -> Result<u32> {
        let process = self.process.as_ref().context("the proxy does not run")?;
        Ok(process.id())
    }

    /// Whether the process is there.
    ///
    /// # Errors
    /// It cannot be asked.
    pub fn is_running(&mut self) -> Result<bool> {
        match &mut self.process {
            Some(process) => Ok(process.try_wait()?.is_none()),
            None => Ok(false),
        }
    }

    /// Writes another configuration and has it read (SIGHUP). Listeners stay as they are.
    ///
    /// # Errors
    /// It does not run.
    pub fn reload(&mut self, config: ProxyConfig) -> Result<()> {
        self.config = config;
        self.write_config()?;
        self.reload_again()
    }

    /// What it is told at its next start.
    pub fn reconfigure(&mut self, config: ProxyConfig) {
        self.config = config;
    }

    /// Has the same configuration read again.
    ///
    /// # Errors
    /// It does not run.
    pub fn reload_again(&self) -> Result<()> {
        send(self.pid()?, Signal::SIGHUP)
    }

    /// Asks it to stop (SIGTERM) without waiting.
    ///
    /// # Errors
    /// It does not run.
    pub fn begin_stop(&self) -> Result<()> {
        send(self.pid()?, Signal::SIGTERM)
    }

    /// Asks it to stop, unless that was done, and waits for its end.
    ///
    /// # Errors
    /// It does not end, or does not run.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.begin_stop()?;
        self.wait()
    }

    /// Kills it and waits for its end.
    ///
    /// # Errors
    /// It does not end, or does not run.
    pub fn kill9(&mut self) -> Result<ExitStatus> {
        send(self.pid()?, Signal::SIGKILL)?;
        self.wait()
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        let mut process = self.process.take().context("the proxy does not run")?;
        let mut ended = None;
        let waited = wait_until("the end of the proxy", WAIT_MAX, || {
            ended = process.try_wait()?;
            Ok(ended.is_some())
        });
        if waited.is_err() {
            process.kill()?;
            process.wait()?;
        }
        waited?;
        ended.context("the proxy's exit status")
    }

    /// What it logged since its last start.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// The body that `GET path` answers on the metrics port, and the status before it.
    ///
    /// # Errors
    /// Nobody answers, or not in HTTP.
    pub fn http_get(&self, path: &str) -> Result<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics_port))
            .context("connecting to the metrics port")?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").context("no end of the head")?;
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, body.to_owned()))
    }

    /// Runs another of the program's commands on the same configuration: `check`, `init`, `explain '…'`.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn command(config: &ProxyConfig, arguments: &[&str]) -> Result<std::process::Output> {
        let scratch = Scratch::new("proxy", Account::Ourselves)?;
        let file = scratch.path().join("keywright.toml");
        let ports: Vec<u16> = config.upstream_ports.iter().map(|_| 1).collect();
        fs::write(&file, config.text(&ports, 0))?;
        Command::new(built_once()?)
            .args(arguments)
            .arg("--config")
            .arg(&file)
            .envs(config.environment.clone())
            .output()
            .context("running the proxy's program")
    }

    /// What such a command printed.
    ///
    /// # Errors
    /// As [`ProxyProcess::command`], and unless it succeeds.
    pub fn said(config: &ProxyConfig, arguments: &[&str]) -> Result<String> {
        let output = Self::command(config, arguments)?;
        anyhow::ensure!(output.status.success(), "{arguments:?}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    fn write_config(&self) -> Result<()> {
        let text = self.config.text(&self.ports, self.metrics_port);
        fs::write(self.config_file(), text).context("writing the proxy's configuration")
    }

    fn config_file(&self) -> PathBuf {
        self.scratch.path().join("keywright.toml")
    }

    fn log_file(&self) -> PathBuf {
        self.scratch.path().join("log")
    }
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        if self.process.is_none() {
            return;
        }
        if let Err(error) = self.kill9() {
            eprintln!("the proxy could not be ended: {error:#}");
        }
    }
}

/// The program: the one that [`ProxyProcess::VARIABLE`] names, else built once in a process, so that all its proxies are
/// the same while the sources are being edited.
fn built_once() -> Result<PathBuf> {
    static BUILT: Mutex<Option<PathBuf>> = Mutex::new(None);
    if let Some(program) = std::env::var_os(ProxyProcess::VARIABLE) {
        return Ok(PathBuf::from(program));
    }
    // Under the lock on purpose: the others want the same.
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = built.as_ref() {
        return Ok(program.clone());
    }
    let program = build()?;
    *built = Some(program.clone());
    Ok(program)
}

/// Asserts that a text has all these parts.
///
/// # Panics
/// It lacks one.
#[track_caller]
pub fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

fn build() -> Result<PathBuf> {
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => workspace_root().join("target"),
    };
    let status = cargo()
        .args(["build", "--quiet", "--package", "keywright-proxy"])
        .arg("--target-dir")
        .arg(&target)
        .status()
        .context("running cargo")?;
    if !status.success() {
        bail!("the proxy could not be built: {status}");
    }
    let program: &Path = "debug/keywright".as_ref();
    Ok(target.join(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_has_every_part() {
        let config = ProxyConfig {
            store_url: "mysql://s".to_owned(),
            upstream_ports: vec![3306],
            listener: "tls = \"disabled\"".to_owned(),
            more: "[limits]\nconnections_max = 5".to_owned(),
            ..ProxyConfig::default()
        };
        let text = config.rule("a.b_*", "snowflake").text(&[6033], 9306);
        let expected = "[store]\nurl = \"mysql://s\"\n\n[[listener]]\nbind = \"127.0.0.1:6033\"\n\
            upstream = \"127.0.0.1:3306\"\nadmin = \"mysql://root@127.0.0.1:3306\"\ntls = \"disabled\"\n\n\
            [[rule]]\ntable = \"a.b_*\"\ncolumn = \"id\"\nkey = \"snowflake\"\n\n\
            [metrics]\nbind = \"127.0.0.1:9306\"\n\n[limits]\nconnections_max = 5\n";
        assert_eq!(text, expected);
    }
}
