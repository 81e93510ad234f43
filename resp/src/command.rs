//! What a request asks for.

mod alter;
mod help;
mod keywright;
mod refusal;
pub mod table;
mod user;
mod word;

pub use alter::Altered;
pub use help::HELP;
pub use keywright::KeywrightCommand;
pub use refusal::Refusal;
pub use user::{Granted, Secret, UserCommand};

use crate::reply::Protocol;
use crate::request::Request;
use word::{Word, integer};

/// A command of a key port, its arguments read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// The next key of a name.
    Incr(&'a [u8]),
    /// So many keys of a name in one run; the last is told.
    IncrBy(&'a [u8], i64),
    /// The last key that was given of a name.
    Get(&'a [u8]),
    /// The same of several: all arguments behind the command.
    Mget,
    /// Whether anybody is there.
    Ping(Option<&'a [u8]>),
    /// The same bytes again.
    Echo(&'a [u8]),
    /// Another protocol, and who the client is.
    Hello(Hello<'a>),
    /// Who the client is.
    Auth(Login<'a>),
    /// The database 0, which is the only one.
    Select,
    /// The end.
    Quit,
    /// As if newly connected.
    Reset,
    /// The program's clock.
    Time,
    /// What the program says of itself. Sections are not told apart.
    Info,
    /// Which commands there are.
    Command(CommandQuery),
    /// What the client says of itself, or asks.
    Client(ClientCommand<'a>),
    /// Which user the client is.
    AclWhoami,
    /// That reads may come from a standby: nothing is to be done.
    Readonly,
    /// A setting of the server: there is none that clients need.
    ConfigGet,
    /// The cluster, which is this one node.
    Cluster(ClusterQuery<'a>),
    /// What Redis has no command for.
    Keywright(KeywrightCommand<'a>),
}

/// A user and a password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Login<'a> {
    /// `default` if the client names none.
    pub user: &'a [u8],
    /// As it was sent.
    pub password: &'a [u8],
}

/// Without the password.
impl std::fmt::Debug for Login<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Login({})", self.user.escape_ascii())
    }
}

/// How a client introduces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// What it wants to speak; `None`: what is spoken.
    pub protocol: Option<Protocol>,
    /// Who it is.
    pub login: Option<Login<'a>>,
    /// A name for the connection.
    pub name: Option<&'a [u8]>,
}

/// What is asked of commands. Names follow as arguments from the third on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandQuery {
    /// All.
    All,
    /// How many.
    Count,
    /// Those named, or all.
    Info,
    /// What they are for: of those named, or of all.
    Docs,
}

/// What a client says of itself, or asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCommand<'a> {
    /// A name for the connection.
    SetName(&'a [u8]),
    /// That name.
    GetName,
    /// The library and its version.
    SetInfo,
    /// The number of the connection.
    Id,
    /// A line about the connection.
    Info,
}

/// What is asked of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterQuery<'a> {
    /// Which node serves which slots.
    Slots,
    /// The same, as Redis 7 says it.
    Shards,
    /// The same, as a text.
    Nodes,
    /// Whether all is well.
    Info,
    /// This node.
    MyId,
    /// The slot of a name.
    KeySlot(&'a [u8]),
}

impl<'a> Command<'a> {
    /// Reads a request that has arguments.
    ///
    /// # Errors
    /// There is no such command, it is not one of a key port, or its arguments are others.
    pub fn parse(request: &Request<'a>) -> Result<Self, Refusal<'a>> {
        let name = request.argument(0).unwrap_or_default();
        let word = Word::of(name);
        // First what comes by the million.
        if let (b"INCR", 2, Some(key)) = (word.bytes(), request.count(), request.argument(1)) {
            return Ok(Self::Incr(key));
        }
        let Some(row) = table::find(word.bytes()) else {
            return Err(Refusal::of_unknown(name, &word));
        };
        if !row.takes(request.count()) {
            return Err(Refusal::Arity(row.name));
        }
        let argument = |index| request.argument(index).unwrap_or_default();
        match word.bytes() {
            b"INCR" => Ok(Self::Incr(argument(1))),
            b"INCRBY" => Ok(Self::IncrBy(
                argument(1),
                integer(argument(2)).ok_or(Refusal::NotInteger)?,
            )),
            b"GET" => Ok(Self::Get(argument(1))),
            b"MGET" => Ok(Self::Mget),
            b"PING" => Ok(Self::Ping(request.argument(1))),
            b"ECHO" => Ok(Self::Echo(argument(1))),
            b"HELLO" => hello(request),
            b"AUTH" => auth(request),
            b"SELECT" => match integer(argument(1)).ok_or(Refusal::NotInteger)? {
                0 => Ok(Self::Select),
                _ => Err(Refusal::Database),
            },
            b"QUIT" => Ok(Self::Quit),
            b"RESET" => Ok(Self::Reset),
            b"TIME" => Ok(Self::Time),
            b"INFO" => Ok(Self::Info),
            b"READONLY" | b"READWRITE" => Ok(Self::Readonly),
            b"COMMAND" => commands(request),
            b"CLIENT" => client(request),
            b"ACL" => one_word(request, "ACL", b"WHOAMI").map(|()| Self::AclWhoami),
            b"CONFIG" => one_word(request, "CONFIG", b"GET").map(|()| Self::ConfigGet),
            b"CLUSTER" => cluster(request),
            b"KEYWRIGHT" => KeywrightCommand::parse(request).map(Self::Keywright),
            _ => Err(Refusal::Unknown(name)),
        }
    }
}

/// The word behind a command that has only this one.
fn one_word<'a>(
    request: &Request<'a>,
    command: &'static str,
    known: &[u8],
) -> Result<(), Refusal<'a>> {
    let given = request.argument(1).unwrap_or_default();
    if Word::of(given).bytes() == known {
        Ok(())
    } else {
        Err(Refusal::Subcommand(command, given))
    }
}

fn hello<'a>(request: &Request<'a>) -> Result<Command<'a>, Refusal<'a>> {
    let mut hello = Hello {
        protocol: None,
        login: None,
        name: None,
    };
    if let Some(version) = request.argument(1) {
        hello.protocol = Some(match version {
            b"2" => Protocol::Resp2,
            b"3" => Protocol::Resp3,
            other if integer(other).is_none() => return Err(Refusal::NotInteger),
            _ => return Err(Refusal::Protocol),
        });
    }
    let mut at = 2_usize;
    while let Some(option) = request.argument(at) {
        let next = |behind: usize| request.argument(at.saturating_add(behind));
        match (Word::of(option).bytes(), next(1), next(2)) {
            (b"AUTH", Some(user), Some(password)) => {
                hello.login = Some(Login { user, password });
                at = at.saturating_add(3);
            }
            (b"SETNAME", Some(name), _) => {
                hello.name = Some(connection_name(name)?);
                at = at.saturating_add(2);
            }
            _ => return Err(Refusal::Syntax("HELLO")),
        }
    }
    Ok(Command::Hello(hello))
}

fn auth<'a>(request: &Request<'a>) -> Result<Command<'a>, Refusal<'a>> {
    let login = match (
        request.argument(1),
        request.argument(2),
        request.argument(3),
    ) {
        (Some(password), None, None) => Login {
            user: b"default",
            password,
        },
        (Some(user), Some(password), None) => Login { user, password },
        _ => return Err(Refusal::Syntax("AUTH")),
    };
    Ok(Command::Auth(login))
}

fn commands<'a>(request: &Request<'a>) -> Result<Command<'a>, Refusal<'a>> {
    let Some(given) = request.argument(1) else {
        return Ok(Command::Command(CommandQuery::All));
    };
    match Word::of(given).bytes() {
        b"COUNT" => Ok(Command::Command(CommandQuery::Count)),
        b"INFO" => Ok(Command::Command(CommandQuery::Info)),
        b"DOCS" => Ok(Command::Command(CommandQuery::Docs)),
        _ => Err(Refusal::Subcommand("COMMAND", given)),
    }
}

fn client<'a>(request: &Request<'a>) -> Result<Command<'a>, Refusal<'a>> {
    let given = request.argument(1).unwrap_or_default();
    let word = Word::of(given);
    let known = match (word.bytes(), request.count(), request.argument(2)) {
        (b"SETNAME", 3, Some(name)) => ClientCommand::SetName(connection_name(name)?),
        (b"SETINFO", 4, _) => ClientCommand::SetInfo,
        (b"GETNAME", 2, _) => ClientCommand::GetName,
        (b"ID", 2, _) => ClientCommand::Id,
        (b"INFO", 2, _) => ClientCommand::Info,
        (b"SETNAME" | b"SETINFO" | b"GETNAME" | b"ID" | b"INFO", _, _) => {
            return Err(Refusal::Arity("CLIENT"));
        }
        _ => return Err(Refusal::Subcommand("CLIENT", given)),
    };
    Ok(Command::Client(known))
}

/// Longest name of a connection, bytes.
const CONNECTION_NAME_BYTES_MAX: usize = 128;

/// The name of a connection has no blanks and no line ends, so that lists of them can be read.
fn connection_name(name: &[u8]) -> Result<&[u8], Refusal<'static>> {
    if name.len() <= CONNECTION_NAME_BYTES_MAX && name.iter().all(u8::is_ascii_graphic) {
        Ok(name)
    } else {
        Err(Refusal::ConnectionName)
    }
}

fn cluster<'a>(request: &Request<'a>) -> Result<Command<'a>, Refusal<'a>> {
    let given = request.argument(1).unwrap_or_default();
    let word = Word::of(given);
    let query = match (word.bytes(), request.count(), request.argument(2)) {
        (b"SLOTS", 2, _) => ClusterQuery::Slots,
        (b"SHARDS", 2, _) => ClusterQuery::Shards,
        (b"NODES", 2, _) => ClusterQuery::Nodes,
        (b"INFO", 2, _) => ClusterQuery::Info,
        (b"MYID", 2, _) => ClusterQuery::MyId,
        (b"KEYSLOT", 3, Some(name)) => ClusterQuery::KeySlot(name),
        (b"SLOTS" | b"SHARDS" | b"NODES" | b"INFO" | b"MYID" | b"KEYSLOT", _, _) => {
            return Err(Refusal::Arity("CLUSTER"));
        }
        _ => return Err(Refusal::Subcommand("CLUSTER", given)),
    };
    Ok(Command::Cluster(query))
}
