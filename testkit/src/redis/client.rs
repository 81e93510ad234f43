//! A client of the Redis protocol that shows what is sent and what comes.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use anyhow::{Context, bail, ensure};

use crate::{Result, WAIT_MAX};

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RespValue {
    /// A line.
    Simple(String),
    /// An error, its code first.
    Error(String),
    /// A number.
    Integer(i64),
    /// Bytes, as text where they are any.
    Bulk(String),
    /// Nothing.
    Null,
    /// A list.
    Array(Vec<RespValue>),
    /// Keys and their values.
    Map(Vec<(RespValue, RespValue)>),
}

impl RespValue {
    /// The number that it is.
    ///
    /// # Errors
    /// It is none.
    pub fn integer(&self) -> Result<i64> {
        match self {
            RespValue::Integer(number) => Ok(*number),
            other => bail!("no number but {other:?}"),
        }
    }

    /// The error that it is.
    ///
    /// # Errors
    /// It is none.
    pub fn error(&self) -> Result<&str> {
        match self {
            RespValue::Error(text) => Ok(text),
            other => bail!("no error but {other:?}"),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct RespClient {
    stream: BufReader<TcpStream>,
}

impl RespClient {
    /// To a port of this machine.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn connect(port: u16) -> Result<RespClient> {
        let stream = TcpStream::connect(("127.0.0.1", port)).context("connecting")?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream.set_nodelay(true)?;
        Ok(RespClient {
            stream: BufReader::new(stream),
        })
    }

    /// A request as clients write it.
    #[must_use]
    pub fn written(arguments: &[&str]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            bytes.extend(format!("${}\r\n{argument}\r\n", argument.len()).bytes());
        }
        bytes
    }

    /// Sends a request, and waits for its reply.
    ///
    /// # Errors
    /// The connection ends, or what comes is no reply.
    pub fn ask(&mut self, arguments: &[&str]) -> Result<RespValue> {
        self.send(&Self::written(arguments))?;
        self.read()
    }

    /// The same of words with blanks between.
    ///
    /// # Errors
    /// As [`RespClient::ask`].
    pub fn say(&mut self, words: &str) -> Result<RespValue> {
        self.ask(&words.split(' ').collect::<Vec<_>>())
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(bytes).context("sending")
    }

    /// Says that nothing more is sent.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn end(&mut self) -> Result<()> {
        self.stream.get_mut().shutdown(Shutdown::Write)?;
        Ok(())
    }

    /// The connection itself.
    #[must_use]
    pub fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    /// Waits for a reply.
    ///
    /// # Errors
    /// The connection ends, or what comes is no reply.
    pub fn read(&mut self) -> Result<RespValue> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).context("an empty line")?;
        let count = || rest.parse::<usize>().with_context(|| line.clone());
        Ok(match kind {
            "+" => RespValue::Simple(rest.to_owned()),
            "-" => RespValue::Error(rest.to_owned()),
            ":" => RespValue::Integer(rest.parse().context("a number")?),
            "_" => RespValue::Null,
            "$" | "*" if rest == "-1" => RespValue::Null,
            "$" => RespValue::Bulk(self.bulk(count()?)?),
            // Three letters and a colon say what it is.
            "=" => RespValue::Bulk(self.bulk(count()?)?.split_off(4)),
            "*" => {
                let all = (0..count()?).map(|_| self.read());
                RespValue::Array(all.collect::<Result<_>>()?)
            }
            "%" => {
                let all = (0..count()?).map(|_| Ok((self.read()?, self.read()?)));
                RespValue::Map(all.collect::<Result<_>>()?)
            }
            _ => bail!("no reply but {line:?}"),
        })
    }

    /// All that comes until the connection ends.
    ///
    /// # Errors
    /// It does not end.
    pub fn rest(&mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.stream
            .read_to_end(&mut bytes)
            .context("waiting for the end")?;
        Ok(bytes)
    }

    fn bulk(&mut self, length: usize) -> Result<String> {
        let mut bytes = vec![0; length + 2];
        self.stream
            .read_exact(&mut bytes)
            .context("reading bytes")?;
        ensure!(bytes.ends_with(b"\r\n"), "bytes without end");
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).context("reading a line")?;
        let line = line
            .strip_suffix("\r\n")
            .ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, "the connection has ended"))?;
        Ok(line.to_owned())
    }
}
