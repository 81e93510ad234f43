//! A client of HTTP that shows what is sent and what comes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

use anyhow::Context;
use keywright_testkit::{Result, WAIT_MAX};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(its, _)| its == name);
        named.next().map(|(_, value)| value.as_str())
    }

    /// The numbers of a JSON list of this name.
    pub(crate) fn numbers(&self, list: &str) -> Result<Vec<i64>> {
        let (_, rest) = self
            .body
            .split_once(&format!("\"{list}\":["))
            .with_context(|| format!("no {list} in {self:?}"))?;
        let (list, _) = rest.split_once(']').context("no end")?;
        let numbers = list.split(',').filter(|number| !number.is_empty());
        numbers
            .map(|number| Ok(number.trim_matches('"').parse()?))
            .collect()
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct HttpClient {
    stream: BufReader<TcpStream>,
}

impl HttpClient {
    pub(crate) fn connect(port: u16) -> Result<HttpClient> {
        let stream = TcpStream::connect(("127.0.0.1", port)).context("connecting")?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        stream.set_nodelay(true)?;
        Ok(HttpClient {
            stream: BufReader::new(stream),
        })
    }

    /// A request without body, with these lines of headers.
    pub(crate) fn written(request: &str, headers: &str) -> String {
        format!("{request} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
    }

    pub(crate) fn say(&mut self, request: &str) -> Result<Answer> {
        self.say_with(request, "")
    }

    pub(crate) fn say_with(&mut self, request: &str, headers: &str) -> Result<Answer> {
        self.send(Self::written(request, headers).as_bytes())?;
        self.read()
    }

    /// A request with a form.
    pub(crate) fn form(&mut self, request: &str, form: &str) -> Result<Answer> {
        let length = form.len();
        let headers = format!(
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n"
        );
        let head = Self::written(request, &headers);
        self.send(format!("{head}{form}").as_bytes())?;
        self.read()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.get_mut().write_all(bytes)?)
    }

    pub(crate) fn read(&mut self) -> Result<Answer> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).context("no answer")?.parse()?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut answer = Answer {
            status,
            headers,
            body: String::new(),
        };
        let length = answer.header("content-length").unwrap_or("0").parse()?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        answer.body = String::from_utf8(body)?;
        Ok(answer)
    }

    /// What comes until the other side ends.
    pub(crate) fn rest(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes)?;
        Ok(String::from_utf8(bytes)?)
    }

    /// Nothing more is sent.
    pub(crate) fn end(&self) -> Result<()> {
        Ok(self.stream.get_ref().shutdown(Shutdown::Write)?)
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }
}
