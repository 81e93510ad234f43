//! Why a request is not carried out.

use std::fmt;

use super::word::Word;

/// Why a request is not carried out. The connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// There is no such command.
    Unknown(&'a [u8]),
    /// A command of Redis that a key port cannot have; the reason.
    Unsupported(&'static str),
    /// The command has another number of arguments.
    Arity(&'static str),
    /// There is no such word behind the command.
    Subcommand(&'static str, &'a [u8]),
    /// The options of the command cannot be read.
    Syntax(&'static str),
    /// An argument is no number of 64 bits.
    NotInteger,
    /// Another database than 0.
    Database,
    /// Another protocol than 2 and 3.
    Protocol,
    /// The name of the connection is too long, or has blanks.
    ConnectionName,
}

/// Longest part of what the client sent that an error shows, bytes.
const SHOWN_BYTES_MAX: usize = 64;

const COUNTERS: &str =
    "keys are given once: nothing sets, changes, lowers or deletes them (INCR name, INCRBY name n)";
const TRANSACTIONS: &str = "there are no transactions: send the commands one after another in a pipeline (redis-py: pipeline(transaction=False))";
/// Of which commands there is help.
const WITH_HELP: &str = "KEYWRIGHT";
const OTHER_DATA: &str = "this is a key port: it gives keys (INCR name, INCRBY name n, KEYWRIGHT NEXT name) and keeps nothing else";

impl<'a> Refusal<'a> {
    /// Of a command that is not in the table.
    pub(super) fn of_unknown(name: &'a [u8], word: &Word) -> Self {
        match word.bytes() {
            b"SET" | b"SETNX" | b"SETEX" | b"PSETEX" | b"MSET" | b"MSETNX" | b"GETSET"
            | b"GETDEL" | b"GETEX" | b"APPEND" | b"SETRANGE" | b"DEL" | b"UNLINK" | b"EXPIRE"
            | b"PEXPIRE" | b"EXPIREAT" | b"PEXPIREAT" | b"PERSIST" | b"RENAME" | b"RENAMENX"
            | b"MOVE" | b"COPY" | b"RESTORE" | b"FLUSHALL" | b"FLUSHDB" | b"DECR" | b"DECRBY"
            | b"INCRBYFLOAT" => Self::Unsupported(COUNTERS),
            b"MULTI" | b"EXEC" | b"DISCARD" | b"WATCH" | b"UNWATCH" | b"EVAL" | b"EVALSHA"
            | b"FCALL" | b"SCRIPT" | b"FUNCTION" => Self::Unsupported(TRANSACTIONS),
            b"EXISTS" | b"KEYS" | b"SCAN" | b"TYPE" | b"TTL" | b"PTTL" | b"STRLEN" | b"DBSIZE"
            | b"HSET" | b"HGET" | b"HINCRBY" | b"LPUSH" | b"RPUSH" | b"LPOP" | b"RPOP"
            | b"SADD" | b"ZADD" | b"XADD" | b"SUBSCRIBE" | b"PSUBSCRIBE" | b"PUBLISH"
            | b"MONITOR" | b"REPLICAOF" | b"SLAVEOF" | b"PSYNC" | b"SYNC" | b"WAIT" | b"SAVE"
            | b"BGSAVE" | b"SHUTDOWN" | b"DEBUG" => Self::Unsupported(OTHER_DATA),
            _ => Self::Unknown(name),
        }
    }

    /// The code that the error begins with.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Protocol => "NOPROTO",
            Self::Unknown(_)
            | Self::Unsupported(_)
            | Self::Arity(_)
            | Self::Subcommand(_, _)
            | Self::Syntax(_)
            | Self::NotInteger
            | Self::Database
            | Self::ConnectionName => "ERR",
        }
    }
}

/// What was sent, as far as it is shown.
fn shown(bytes: &[u8]) -> impl fmt::Display + '_ {
    let part = bytes.get(..SHOWN_BYTES_MAX).unwrap_or(bytes);
    part.escape_ascii()
}

/// What tells of the command's arguments.
fn help(command: &str) -> &'static str {
    match command.starts_with(WITH_HELP) {
        true => ". Try KEYWRIGHT HELP.",
        false => "",
    }
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(out, "unknown command '{}'", shown(name)),
            Self::Unsupported(reason) => out.write_str(reason),
            Self::Arity(command) => write!(
                out,
                "wrong number of arguments for '{}' command{}",
                command.to_ascii_lowercase(),
                help(command)
            ),
            Self::Subcommand(command, given) => write!(
                out,
                "unknown subcommand '{}' of {command}{}",
                shown(given),
                help(command)
            ),
            Self::Syntax(command) => write!(out, "syntax error in the options of {command}"),
            Self::NotInteger => out.write_str("value is not an integer or out of range"),
            Self::Database => out.write_str("DB index is out of range: there is only database 0"),
            Self::Protocol => out.write_str("unsupported protocol version"),
            Self::ConnectionName => out.write_str(
                "a connection's name has at most 128 characters, and no spaces, newlines or special characters",
            ),
        }
    }
}

impl std::error::Error for Refusal<'_> {}
