//! Reads general query logs, MySQL's and MariaDB's.

use std::io::{self, BufRead, Read};

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// The head of the log: the server's version, as it says it.
    Version(Vec<u8>),
    /// Somebody connected, or changed user, with this database.
    Connect(Option<Vec<u8>>),
    /// COM_INIT_DB.
    Database(Vec<u8>),
    /// A statement.
    Query(Vec<u8>),
    /// A statement that is prepared.
    Prepare(Vec<u8>),
    /// A prepared statement with its values.
    Execute(Vec<u8>),
    /// The connection started over.
    Reset,
    /// It ended.
    Quit,
    /// Something that is of no matter here.
    Other,
}

/// An entry, whose it is, and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The line, from 1.
    pub number: u64,
    /// The connection's id; 0 for the log's head.
    pub connection: u64,
    /// What it says.
    pub entry: Entry,
}

/// A log that is read entry by entry.
pub struct GeneralLog<R> {
    input: R,
    /// The number of the line that was read last.
    number: u64,
    /// The entry that has begun; it ends where the next begins.
    begun: Option<Begun>,
    statement_bytes_max: usize,
}

struct Begun {
    number: u64,
    connection: u64,
    command: Vec<u8>,
    argument: Vec<u8>,
}

impl<R: BufRead> GeneralLog<R> {
    /// What is longer than `statement_bytes_max` is cut just above it.
    pub fn new(input: R, statement_bytes_max: usize) -> Self {
        Self {
            input,
            number: 0,
            begun: None,
            statement_bytes_max,
        }
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let line_max = u64::try_from(self.statement_bytes_max).unwrap_or(u64::MAX);
            let mut front = self
                .input
                .by_ref()
                .take(line_max.saturating_add(HEAD_BYTES_MAX));
            if front.read_until(b'\n', &mut line)? == 0 {
                return Ok(self.begun.take().map(Begun::end));
            }
            if line.last() != Some(&b'\n') {
                self.input.skip_until(b'\n')?;
            }
            self.number += 1;
            if let Some(version) = version(&line) {
                let head = Begun {
                    number: self.number,
                    connection: 0,
                    command: b"Version".to_vec(),
                    argument: version.to_vec(),
                };
                if let Some(begun) = self.begun.replace(head) {
                    return Ok(Some(begun.end()));
                }
            } else if let Some((connection, command, argument)) = head(&line) {
                let begun = Begun {
                    number: self.number,
                    connection,
                    command: command.to_vec(),
                    argument: argument.to_vec(),
                };
                if let Some(begun) = self.begun.replace(begun) {
                    return Ok(Some(begun.end()));
                }
            } else if let Some(begun) = &mut self.begun
                && begun.argument.len() <= self.statement_bytes_max
            {
                begun.argument.extend_from_slice(&line);
            }
        }
    }
}

impl Begun {
    fn end(self) -> Line {
        let mut argument = self.argument;
        if argument.last() == Some(&b'\n') {
            argument.pop();
        }
        let entry = match self.command.as_slice() {
            b"Version" => Entry::Version(argument),
            b"Connect" | b"Change user" => Entry::Connect(database(&argument)),
            b"Init DB" => Entry::Database(argument),
            b"Query" => Entry::Query(argument),
            b"Prepare" => Entry::Prepare(argument),
            b"Execute" => Entry::Execute(argument),
            b"Reset Connection" | b"Reset connection" => Entry::Reset,
            b"Quit" => Entry::Quit,
            _ => Entry::Other,
        };
        Line {
            number: self.number,
            connection: self.connection,
            entry,
        }
    }
}

/// `/usr/sbin/mariadbd, Version: 10.11.19-MariaDB (Debian 12). started with:`
fn version(line: &[u8]) -> Option<&[u8]> {
    const BEFORE: &[u8] = b", Version: ";
    let line = line.trim_ascii_end().strip_suffix(b"started with:")?;
    let at = memchr::memmem::find(line, BEFORE)?;
    let version = line.get(at + BEFORE.len()..)?;
    version.split(|byte| *byte == b' ').next()
}

/// The head of an entry: connection, command, and what follows on the line.
fn head(line: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let rest = behind_time(line)?.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (id, rest) = rest.split_at_checked(digits)?;
    let connection = std::str::from_utf8(id).ok()?.parse().ok()?;
    let rest = rest.strip_prefix(b" ")?;
    let end = rest
        .iter()
        .position(|byte| matches!(byte, b'\t' | b'\r' | b'\n'))
        .unwrap_or(rest.len());
    let (command, rest) = rest.split_at_checked(end)?;
    let is_command = command.first().is_some_and(u8::is_ascii_uppercase)
        && command
            .iter()
            .all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_'));
    is_command.then_some((
        connection,
        command,
        rest.strip_prefix(b"\t").unwrap_or(rest),
    ))
}

/// What follows the time: `2026-11-21T09:41:06.123456Z⇥` on MySQL, `261121  9:41:06⇥` or, within one second, `⇥⇥` on MariaDB.
fn behind_time(line: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = line.strip_prefix(b"\t\t") {
        return Some(rest);
    }
    let tab = line
        .iter()
        .take(TIME_BYTES_MAX)
        .position(|byte| *byte == b'\t')?;
    let (time, rest) = line.split_at_checked(tab)?;
    let digits = time.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let marks = match digits {
        4 => time.get(4) == Some(&b'-') && time.get(10) == Some(&b'T'),
        6 => time.get(6) == Some(&b' ') && time.contains(&b':'),
        _ => false,
    };
    marks.then_some(rest)
}

/// Longest head of an entry, or of the log, bytes.
const HEAD_BYTES_MAX: u64 = 1024;
/// Longest time, bytes: with microseconds and an offset.
const TIME_BYTES_MAX: usize = 40;

/// `root@localhost on shop using TCP/IP`; MariaDB may say `root@localhost as anonymous on shop`.
fn database(argument: &[u8]) -> Option<Vec<u8>> {
    let end = memchr::memmem::rfind(argument, b" using ").unwrap_or(argument.len());
    let (account, _) = argument.split_at_checked(end)?;
    let at = memchr::memmem::rfind(account, b" on ")?;
    let name = account.get(at + b" on ".len()..)?.trim_ascii();
    (!name.is_empty()).then(|| name.to_vec())
}

#[cfg(test)]
mod tests {
    use super::{Entry, GeneralLog, Line};

    fn read(text: &str) -> Vec<Line> {
        let mut log = GeneralLog::new(text.as_bytes(), 100);
        let mut lines = Vec::new();
        while let Ok(Some(line)) = log.next_line() {
            lines.push(line);
        }
        lines
    }

    fn line(number: u64, connection: u64, entry: Entry) -> Line {
        Line {
            number,
            connection,
            entry,
        }
    }

    #[test]
    fn mysqls_log_is_read() {
        let text = "/usr/sbin/mysqld, Version: 9.7.4 (Debian). started with:\n\
             Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock\n\
             Time                 Id Command    Argument\n\
             2026-11-21T09:41:06.123456Z\t    8 Connect\troot@localhost on shop using TCP/IP\n\
             2026-11-21T09:41:06.123457+01:00\t    8 Query\tINSERT INTO t\n  VALUES (1)\n\
             2026-11-21T09:41:06.123458Z\t   12 Connect\troot@localhost on  using Socket\n\
             2026-11-21T09:41:06.123458Z\t   12 Init DB\tother\n\
             2026-11-21T09:41:06.123459Z\t    8 Quit\t\n";
        let shop = Some(b"shop".to_vec());
        let insert = b"INSERT INTO t\n  VALUES (1)".to_vec();
        let version = b"9.7.4".as_slice();
        let lines = read(text);
        assert_eq!(lines.len(), 6);
        assert!(matches!(&lines[0].entry, Entry::Version(said) if said.starts_with(version)));
        assert_eq!(
            lines[1..],
            [
                line(4, 8, Entry::Connect(shop)),
                line(5, 8, Entry::Query(insert)),
                line(7, 12, Entry::Connect(None)),
                line(8, 12, Entry::Database(b"other".to_vec())),
                line(9, 8, Entry::Quit),
            ]
        );
    }

    #[test]
    fn mariadbs_log_is_read() {
        let text = "261121  9:41:06\t     3 Connect\troot@localhost on shop using TCP/IP\n\
             \t\t     3 Query\tSELECT 1\n\
             \t\t     3 Execute\tINSERT INTO t VALUES ('a\n\tb')\n\
             261121 10:41:06\t    13 Prepare\tSELECT ?\n";
        let shop = Some(b"shop".to_vec());
        assert_eq!(
            read(text),
            [
                line(1, 3, Entry::Connect(shop)),
                line(2, 3, Entry::Query(b"SELECT 1".to_vec())),
                line(
                    3,
                    3,
                    Entry::Execute(b"INSERT INTO t VALUES ('a\n\tb')".to_vec())
                ),
                line(5, 13, Entry::Prepare(b"SELECT ?".to_vec())),
            ]
        );
    }

    #[test]
    fn long_statements_are_cut_above_the_limit() {
        let text = format!(
            "\t\t 3 Query\tINSERT\n{0}{0}{0}",
            "12345678901234567890123456789012345678901234567\n"
        );
        let lines = read(&text);
        let [
            Line {
                entry: Entry::Query(query),
                ..
            },
        ] = lines.as_slice()
        else {
            panic!("{lines:?}");
        };
        assert!((101..150).contains(&query.len()), "{}", query.len());
        let text = format!("\t\t 3 Query\tINSERT{}\n\t\t 3 Quit\t\n", "x".repeat(5000));
        let lines = read(&text);
        let [
            Line {
                entry: Entry::Query(query),
                ..
            },
            quit,
        ] = lines.as_slice()
        else {
            panic!("{lines:?}");
        };
        assert!((1000..1200).contains(&query.len()), "{}", query.len());
        assert_eq!(*quit, line(2, 3, Entry::Quit));
    }
}
