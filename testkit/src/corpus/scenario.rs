//! What a corpus file says, once it is read.

use crate::Flavour;
use crate::wire::Param;

/// A schema, and statements that are run in it one after another on one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Unique in the corpus.
    pub name: String,
    pub(super) only: Option<Flavour>,
    /// What is done depends on the types of the table's columns.
    pub needs_columns: bool,
    pub(super) setup: Vec<Vec<u8>>,
    pub(super) steps: Vec<Step>,
}

/// One statement or command with what is said of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) action: Action,
    pub(super) only: Option<Flavour>,
    pub(super) expect: Expect,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
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
pub(super) enum How {
    /// As text, and prepared in the pass that prepares.
    Both,
    /// As text only.
    Text,
    /// Prepared only, once per list.
    Params(Vec<Vec<Bound>>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    Now(Param),
    /// Sent before the others.
    LongData(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expect {
    Same,
    Refused(String),
    Deviates(String),
    DeviatesAfter(String),
}

impl Scenario {
    /// How many statements and commands it runs, without its setup.
    #[must_use]
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn is_for(&self, flavour: Flavour) -> bool {
        self.only.is_none_or(|only| only == flavour)
    }
}
