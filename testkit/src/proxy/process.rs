//! The proxy as users run it: a process with a configuration file.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use crate::machine::process::send;
use crate::machine::running::Program;
use crate::machine::scratch::Scratch;
use crate::{Account, Login, ProxyConfig, Result, WAIT_MAX, Wire, free_port, wait_until};

use super::program::{self, built_once};

/// What a proxy logs whose successor does not serve.
const TAKE_OVER_FAILED: &str = "take-over failed";

/// How often a start is tried again on another port.
const PORT_TRIES: usize = 5;

/// A running proxy. It is killed when dropped.
#[derive(Debug)]
pub struct ProxyProcess {
    config: ProxyConfig,
    ports: Vec<u16>,
    metrics_port: u16,
    process: Option<Program>,
    // Dropped last: the directory that configuration and log lie in.
    scratch: Scratch,
}

impl ProxyProcess {
    /// The variable that names a program to test in place of building it, such as an installed one.
    pub const VARIABLE: &'static str = program::VARIABLE;

    /// What the program's file is called.
    pub const NAME: &'static str = program::NAME;

    /// The program that is started: built once in a process, unless [`Self::VARIABLE`] names one.
    ///
    /// # Errors
    /// It does not build.
    pub fn program() -> Result<PathBuf> {
        built_once()
    }

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
            let ports = (0..proxy.config.listeners()).map(|_| free_port());
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
            // Somebody else may answer there: until it says so, the port may not be its own.
            let says_so = self.logged("listening") >= ports.len();
            Ok(says_so
                && ports
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
        self.begin_by(|program| program)
    }

    /// The same, by another command line or in other surroundings.
    ///
    /// # Errors
    /// It runs.
    pub fn begin_by(&mut self, by: impl FnOnce(Command) -> Command) -> Result<()> {
        if self.process.is_some() {
            bail!("the proxy runs already");
        }
        self.write_config()?;
        let log = File::create(self.log_file()).context("making the proxy's log")?;
        let mut program = Command::new(built_once()?);
        program.arg("run").arg("--config").arg(self.config_file());
        program.envs(self.config.environment.clone());
        let process = by(program)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting the proxy")?;
        self.process = Some(Program::of(&process));
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

    /// The first key port's port.
    ///
    /// # Errors
    /// There is no key port.
    pub fn key_port(&self) -> Result<u16> {
        let of_key_ports = self.ports.get(self.config.upstream_ports.len());
        of_key_ports.copied().context("there is no key port")
    }

    /// The port of the first key port that speaks HTTP.
    ///
    /// # Errors
    /// There is none.
    pub fn http_port(&self) -> Result<u16> {
        let before = self.config.upstream_ports.len() + self.config.key_ports.len();
        let port = self.ports.get(before).copied();
        port.context("there is no key port that speaks HTTP")
    }

    /// The ports of all listeners, those of key ports last, in the order of the configuration.
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
        Ok(process.pid())
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

    /// Has a new program take over (SIGUSR2), with the configuration as it is then, and waits until that serves. Returns the old one,
    /// which goes on for those who are connected to it.
    ///
    /// # Errors
    /// The new one does not serve: then the old one goes on. Or it does not run.
    pub fn take_over(&mut self) -> Result<Program> {
        let taken = "the new program has taken over pid=";
        let (taken_before, failed_before) = (self.logged(taken), self.logged(TAKE_OVER_FAILED));
        self.begin_take_over()?;
        wait_until("the program that takes over", WAIT_MAX, || {
            if self.logged(TAKE_OVER_FAILED) > failed_before {
                bail!("{TAKE_OVER_FAILED}; the log:\n{}", self.log());
            }
            Ok(self.logged(taken) > taken_before)
        })?;
        let log = self.log();
        let (_, pid) = log.rsplit_once(taken).context("its line")?;
        let (pid, _) = pid.split_once(' ').context("its process")?;
        let new = Program::adopted(pid.parse()?);
        self.process.replace(new).context("the proxy does not run")
    }

    /// The same, and does not wait for anything.
    ///
    /// # Errors
    /// It does not run.
    pub fn begin_take_over(&mut self) -> Result<()> {
        Program::adopt_what_is_left()?;
        self.write_config()?;
        send(self.pid()?, Signal::SIGUSR2)
    }

    /// How often it logged these words.
    fn logged(&self, words: &str) -> usize {
        self.log().matches(words).count()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It does not end, or does not run.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let mut process = self.process.take().context("the proxy does not run")?;
        process.wait()
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

    /// What it serves as the figure of this name, of the first one whose labels have these parts; `None`: it has none such.
    ///
    /// # Errors
    /// Nobody answers, or not in HTTP.
    pub fn figure(&self, name: &str, labels: &[&str]) -> Result<Option<String>> {
        let (_, text) = self.http_get("/metrics")?;
        let value = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            let (its_name, its_labels) = series.split_once('{').unwrap_or((series, ""));
            let is_it = its_name == name && labels.iter().all(|part| its_labels.contains(part));
            is_it.then(|| value.to_owned())
        };
        Ok(text.lines().find_map(value))
    }

    /// What it takes of the machine's memory, kB.
    ///
    /// # Errors
    /// It is not running.
    pub fn memory_kb(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.context("no VmRSS")?.parse()?)
    }

    /// Runs another of the program's commands on the same configuration: `check`, `init`, `explain '…'`.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn command(config: &ProxyConfig, arguments: &[&str]) -> Result<std::process::Output> {
        let scratch = Scratch::new("proxy", Account::Ourselves)?;
        let file = scratch.path().join("keywright.toml");
        // Nobody listens; each has an address of its own all the same.
        let ports: Vec<u16> = (1..).take(config.listeners()).collect();
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
        if let Some(mut process) = self.process.take()
            && let Err(error) = process.kill()
        {
            eprintln!("the proxy could not be ended: {error:#}");
        }
    }
}
