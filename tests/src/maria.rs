//! A private MariaDB server, for the decoding functions of `sql/mysql/`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::Signal;

use crate::process::send;
use crate::scratch::Scratch;
use crate::server::{free_port, run};
use crate::{Account, Result, WAIT_MAX, wait_until};

/// Whom MariaDB servers run as when we are root.
const ACCOUNTS: &[&str] = &["mysql", "nobody"];

const SERVER: &str = "/usr/sbin/mariadbd";

/// How often a start is tried again on another port.
const PORT_TRIES: usize = 5;

/// An error as the server sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {errno} ({sqlstate}): {message}")]
pub struct MariaError {
    /// The server's own number.
    pub errno: u16,
    /// Five characters.
    pub sqlstate: String,
    /// The rest of the line.
    pub message: String,
}

/// A server with its data directory. It is stopped and removed when dropped. The user `root` needs no password.
#[derive(Debug)]
pub struct MariaServer {
    account: Account,
    port: u16,
    process: Option<Child>,
    // Dropped last: the directory that data, socket and log lie in.
    scratch: Scratch,
}

impl MariaServer {
    /// Initialises a data directory and starts a server on it.
    ///
    /// # Errors
    /// MariaDB is missing or does not start; the error shows its log.
    pub fn start() -> Result<MariaServer> {
        if !Path::new(SERVER).exists() {
            bail!(
                "MariaDB is missing: install the packages `mariadb-server-core` and `mariadb-client-core`"
            );
        }
        let account = Account::for_servers(ACCOUNTS)?;
        let mut server = MariaServer {
            account,
            port: free_port()?,
            process: None,
            scratch: Scratch::new("maria", account)?,
        };
        server.initialise()?;
        for _ in 0..PORT_TRIES {
            if server.try_start()? {
                return Ok(server);
            }
            server.port = free_port()?;
        }
        bail!("somebody else took the port {PORT_TRIES} times in a row");
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The UNIX socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.scratch.path().join("socket")
    }

    /// Runs statements with the `mariadb` client, as a user would load a file (so `DELIMITER` works), and returns the
    /// rows of what they select; SQL's NULL comes as the text `NULL`.
    ///
    /// # Errors
    /// A [`MariaError`] when the server refused a statement; others when there is no server or no client.
    pub fn run(&self, database: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        let mut client = Command::new("mariadb")
            .args(["--no-defaults", "--batch", "--raw", "--skip-column-names"])
            .args(["--default-character-set=utf8mb4", "--user=root"])
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!("--database={database}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting the client `mariadb`")?;
        let mut input = client.stdin.take().context("the client's input")?;
        let text = sql.to_owned();
        // From a thread: the client answers while it still reads.
        let writer = thread::spawn(move || input.write_all(text.as_bytes()));
        let output = client
            .wait_with_output()
            .context("waiting for the client")?;
        let written = writer.join();
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(match parse_error(&text) {
                Some(error) => error.into(),
                None => anyhow::anyhow!("the client `mariadb` failed: {text}"),
            });
        }
        match written {
            Ok(done) => done.context("sending the statements")?,
            Err(_) => bail!("the thread that sends the statements panicked"),
        }
        let text = String::from_utf8(output.stdout).context("the client's output is not UTF-8")?;
        Ok(text
            .lines()
            .map(|line| line.split('\t').map(str::to_owned).collect())
            .collect())
    }

    fn data_dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.scratch.path().join("log")
    }

    fn initialise(&self) -> Result<()> {
        let mut command = self.account.command("mariadb-install-db");
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.data_dir().display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(["--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0"]);
        run(&mut command)
    }

    /// False when the port was taken.
    fn try_start(&mut self) -> Result<bool> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log_file())?;
        let mut process = self
            .account
            .command(SERVER)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.data_dir().display()))
            .arg(format!("--socket={}", self.socket().display()))
            .arg(format!(
                "--pid-file={}",
                self.scratch.path().join("pid").display()
            ))
            .arg(format!("--port={}", self.port))
            .args([
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--innodb-flush-log-at-trx-commit=0",
            ])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting MariaDB")?;
        let started = Instant::now();
        loop {
            let log = fs::read_to_string(self.log_file()).unwrap_or_default();
            if let Some(status) = process.try_wait()? {
                if log.contains("Address already in use") {
                    fs::remove_file(self.log_file())?;
                    return Ok(false);
                }
                bail!("MariaDB did not start ({status}):\n{log}");
            }
            if log.contains("ready for connections") {
                self.process = Some(process);
                return Ok(true);
            }
            if started.elapsed() > WAIT_MAX {
                process.kill()?;
                process.wait()?;
                bail!("MariaDB was not ready in {} s:\n{log}", WAIT_MAX.as_secs());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for MariaServer {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let ended = send(process.id(), Signal::SIGKILL).and_then(|()| {
            wait_until("the end of MariaDB", WAIT_MAX, || {
                Ok(process.try_wait()?.is_some())
            })
        });
        if let Err(error) = ended {
            eprintln!("MariaDB could not be ended: {error:#}");
        }
    }
}

/// `ERROR 1305 (42000) at line 1: FUNCTION x does not exist`, after what the client says before it.
fn parse_error(text: &str) -> Option<MariaError> {
    let line = text.lines().find_map(|line| line.strip_prefix("ERROR "))?;
    let (head, message) = line.split_once(": ")?;
    let (errno, rest) = head.split_once(" (")?;
    let (sqlstate, _) = rest.split_once(')')?;
    Some(MariaError {
        errno: errno.parse().ok()?,
        sqlstate: sqlstate.to_owned(),
        message: message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_lines_are_read() {
        let text = "--------------\nSELECT x()\n--------------\n\nERROR 1305 (42000) at line 1: FUNCTION a.x: gone\n";
        let expected = MariaError {
            errno: 1305,
            sqlstate: "42000".to_owned(),
            message: "FUNCTION a.x: gone".to_owned(),
        };
        assert_eq!(parse_error(text), Some(expected));
        assert_eq!(parse_error("mariadb: not found"), None);
    }
}
