//! The `mariadb` client, which runs files on servers of both flavours.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, bail};

use crate::Result;

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

/// Runs statements as a user would load a file, and returns the rows of what they select.
pub(crate) fn run_file(socket: &Path, database: &str, sql: &str) -> Result<Vec<Vec<String>>> {
    let mut client = Command::new("mariadb")
        .args(["--no-defaults", "--batch", "--raw", "--skip-column-names"])
        .args(["--default-character-set=utf8mb4", "--user=root"])
        .arg(format!("--socket={}", socket.display()))
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
