//! The commands, as `COMMAND` shows them.

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// In capitals.
    pub name: &'static str,
    /// How many arguments it has, itself included; if that is negative, at least so many.
    pub arity: i64,
    /// The first argument that is a name, the last (-1: the last of all), and the distance; zeros: there is none.
    pub keys: [i64; 3],
    /// Whether it changes something.
    pub is_write: bool,
    /// What it is for.
    pub summary: &'static str,
}

const NONE: [i64; 3] = [0, 0, 0];
const ONE: [i64; 3] = [1, 1, 1];

const fn row(name: &'static str, arity: i64, keys: [i64; 3], summary: &'static str) -> Row {
    Row {
        name,
        arity,
        keys,
        is_write: false,
        summary,
    }
}

const fn issuing(name: &'static str, arity: i64, summary: &'static str) -> Row {
    Row {
        is_write: true,
        ..row(name, arity, ONE, summary)
    }
}

/// All of them.
pub const ROWS: [Row; 21] = [
    issuing("INCR", 2, "Gives the next key of a name."),
    issuing(
        "INCRBY",
        3,
        "Gives n consecutive keys of a name, and tells the last.",
    ),
    row(
        "GET",
        2,
        ONE,
        "Tells the last key of a name that this node has given.",
    ),
    row(
        "MGET",
        -2,
        [1, -1, 1],
        "Tells the last keys of names that this node has given.",
    ),
    row("PING", -1, NONE, "Answers PONG, or what was sent."),
    row("ECHO", 2, NONE, "Answers what was sent."),
    row(
        "HELLO",
        -1,
        NONE,
        "Chooses the protocol, and tells what the server is.",
    ),
    row("AUTH", -2, NONE, "Tells who the client is."),
    row("SELECT", 2, NONE, "Chooses database 0, the only one."),
    row("QUIT", -1, NONE, "Ends the connection."),
    row("RESET", 1, NONE, "Has the connection be as it began."),
    row("TIME", 1, NONE, "Tells the program's clock."),
    row(
        "INFO",
        -1,
        NONE,
        "Tells what the program is, and what it has done.",
    ),
    row("COMMAND", -1, NONE, "Tells which commands there are."),
    row(
        "CLIENT",
        -2,
        NONE,
        "SETNAME, GETNAME, SETINFO, ID, INFO: of the connection.",
    ),
    row("ACL", -2, NONE, "WHOAMI: tells which user the client is."),
    row("CONFIG", -2, NONE, "GET: has no setting to tell."),
    row(
        "READONLY",
        1,
        NONE,
        "Does nothing: no key is read from a standby.",
    ),
    row(
        "READWRITE",
        1,
        NONE,
        "Does nothing: no key is read from a standby.",
    ),
    row(
        "CLUSTER",
        -2,
        NONE,
        "SLOTS, SHARDS, NODES, INFO, MYID, KEYSLOT: tells who gives keys of ordered tags, where the listener says cluster_address.",
    ),
    row(
        "KEYWRIGHT",
        -2,
        NONE,
        "NEXT, DECODE, LIST, STATS, ABOUT, CREATE, ALTER, ADVANCE, DROP, DEMOTE, USER, HELP: what Redis has no command for.",
    ),
];

impl Row {
    /// Whether so many arguments, the command included, are enough and not too many.
    #[must_use]
    pub fn takes(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if self.arity < 0 {
            count >= self.arity.saturating_neg()
        } else {
            count == self.arity
        }
    }
}

/// A command by its name in capitals.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name.as_bytes() == name)
}
