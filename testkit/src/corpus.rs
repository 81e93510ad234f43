//! Statements that are run natively and once more in another way, and must not be told apart.
//!
//! A corpus file holds scenarios:
//!
//! ```text
//! === name of the scenario
//! only: mariadb                        (optional)
//! CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
//! --- run
//! @params 1
//! INSERT INTO t (a) VALUES (?);
//! ```
//!
//! What stands before `--- run` is run on the server itself, in a schema of the scenario's own. A statement ends with a
//! `;` at the end of a line, or between the lines `<<` and `>>`; `{db}` in it is the schema, `{DB}` too but in capitals, `{xBF5C}`
//! are bytes. `#` begins a comment. Lines with `@` belong to the next statement:
//!
//! | | |
//! |---|---|
//! | `@params 1, 'x', x'00', NULL` | it is prepared, and executed with these; several lines: several times. `ahead 'x'` is sent before, by COM_STMT_SEND_LONG_DATA |
//! | `@local a\nb\n` | what the server gets for a local file |
//! | `@elsewhere` | it is run by somebody else, directly on the server |
//! | `@only mysql` | on that flavour only |
//! | `@text` | it is never prepared |
//! | `@command init_db {db}` | instead of a statement: `init_db`, `ping`, `reset_connection`, `change_user` |
//! | `@refused construct` | the proxy refuses it with error 1235 that names this; nothing is run natively |
//! | `@deviates reason` | the answers differ, which is known and documented; that they do is checked as well |
//! | `@deviates_after reason` | the answer is the same, but what the session says of it afterwards differs |
//!
//! The keys of [`KEY_SPACES`] may differ. They are numbers from [`KEY_FIRST`], each space's in a range of its own, and are
//! compared by their order: the smallest of `t` that is seen on either side is `#t.1`. Everything else must be the same, byte
//! by byte.

mod compare;
mod parse;
mod run;
pub(crate) mod transcript;

use std::path::Path;

use anyhow::Context;

use crate::wire::Param;
use crate::{Flavour, Result};

pub use compare::{Report, Side, TwinKeys, compare, set_up};

/// Where keys begin; all of them fit INT.
pub const KEY_FIRST: u64 = 1_000_000_000;

/// How many keys each of [`KEY_SPACES`] has.
pub const KEY_SPACE_SIZE: u64 = 100_000_000;

/// The tables whose keys may differ: what the schema's name ends with, and the table's name. The keys of the `i`th are
/// from [`KEY_FIRST`] + `i` × [`KEY_SPACE_SIZE`].
pub const KEY_SPACES: [(&str, &str); 9] = [
    ("", "t"),
    ("", "t_parent"),
    ("", "t_child"),
    ("", "t_int"),
    ("", "t_uint"),
    ("", "t_ubig"),
    ("", "t-1"),
    ("", "t`q"),
    ("_2", "t"),
];

/// A schema, and statements that are run in it one after another on one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Unique in the corpus.
    pub name: String,
    only: Option<Flavour>,
    setup: Vec<Vec<u8>>,
    steps: Vec<Step>,
}

/// One statement or command with what is said of it.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    line: usize,
    action: Action,
    only: Option<Flavour>,
    expect: Expect,
}

#[derive(Debug, Clone, PartialEq)]
enum Action {
    Sql {
        text: Vec<u8>,
        how: How,
        local_file: Vec<u8>,
    },
    Elsewhere(Vec<u8>),
    InitDb(Vec<u8>),
    Ping,
    ResetConnection,
    ChangeUser,
}

#[derive(Debug, Clone, PartialEq)]
enum How {
    /// As text, and prepared in the pass that prepares.
    Both,
    /// As text only.
    Text,
    /// Prepared only, once per list.
    Params(Vec<Vec<Bound>>),
}

#[derive(Debug, Clone, PartialEq)]
enum Bound {
    Now(Param),
    /// Sent before the others.
    Ahead(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq)]
enum Expect {
    Same,
    Refused(String),
    Deviates(String),
    DeviatesAfter(String),
}

/// Reads all files of a directory.
///
/// # Errors
/// A file cannot be read or understood, or two scenarios have the same name.
pub fn load(dir: &Path) -> Result<Vec<Scenario>> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .with_context(|| format!("listing {}", dir.display()))?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    let mut scenarios: Vec<Scenario> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let found =
            parse::scenarios(&text).with_context(|| format!("reading {}", file.display()))?;
        for scenario in found {
            if scenarios.iter().any(|other| other.name == scenario.name) {
                anyhow::bail!("scenario {:?} is there twice", scenario.name);
            }
            scenarios.push(scenario);
        }
    }
    Ok(scenarios)
}

impl Scenario {
    /// How many statements and commands it runs, without its setup.
    #[must_use]
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    fn is_for(&self, flavour: Flavour) -> bool {
        self.only.is_none_or(|only| only == flavour)
    }
}
