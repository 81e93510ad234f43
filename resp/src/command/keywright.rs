//! `KEYWRIGHT …`: what Redis has no command for.

use super::alter::Altered;
use super::refusal::Refusal;
use super::user::UserCommand;
use super::word::{Word, integer};
use crate::request::Request;

/// A command under `KEYWRIGHT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywrightCommand<'a> {
    /// So many keys of a name, of every kind.
    Next {
        /// The name.
        name: &'a [u8],
        /// How many keys, as an array; `None`: one, as it is.
        count: Option<i64>,
    },
    /// What an id says of itself.
    Decode(&'a [u8]),
    /// The names, and where their keys come from.
    List,
    /// Figures of all names.
    Stats,
    /// What a program that takes ranges of a name must know.
    About(&'a [u8]),
    /// The tag of a name is to be made.
    Create {
        /// The name.
        name: &'a [u8],
        /// In which order its keys are to be given, if that was said.
        order: Option<&'a [u8]>,
    },
    /// All later keys of a name are to lie above one.
    Advance {
        /// The name.
        name: &'a [u8],
        /// The highest that was given.
        above: i64,
        /// Also where that leaves the tag none of its ids, or almost none.
        use_up: bool,
    },
    /// Something of a name's tag is to be otherwise.
    Alter {
        /// The name.
        name: &'a [u8],
        /// What.
        altered: Altered<'a>,
    },
    /// A tag is to be no more.
    Drop(&'a [u8]),
    /// Another program is to be the one that gives keys of ordered tags.
    Demote {
        /// Those of the slot group with this number only.
        group: Option<i64>,
    },
    /// Who may do what.
    User(UserCommand<'a>),
    /// Which of these commands there are.
    Help,
}

impl<'a> KeywrightCommand<'a> {
    pub(super) fn parse(request: &Request<'a>) -> Result<Self, Refusal<'a>> {
        let given = request.argument(1).unwrap_or_default();
        let word = Word::of(given);
        let arity = || Refusal::Arity("KEYWRIGHT");
        let name = request.argument(2);
        match (word.bytes(), request.count()) {
            (b"NEXT", 3) => Ok(Self::Next {
                name: name.ok_or_else(arity)?,
                count: None,
            }),
            (b"NEXT", 5) => {
                option(request, 3, b"COUNT", "KEYWRIGHT NEXT")?;
                Ok(Self::Next {
                    name: name.ok_or_else(arity)?,
                    count: Some(number(request, 4)?),
                })
            }
            (b"DECODE", 3) => name.map(Self::Decode).ok_or_else(arity),
            (b"LIST", 2) => Ok(Self::List),
            (b"STATS", 2) => Ok(Self::Stats),
            (b"ABOUT", 3) => name.map(Self::About).ok_or_else(arity),
            (b"CREATE", 3) => Ok(Self::Create {
                name: name.ok_or_else(arity)?,
                order: None,
            }),
            (b"CREATE", 5) => {
                option(request, 3, b"ORDER", "KEYWRIGHT CREATE")?;
                Ok(Self::Create {
                    name: name.ok_or_else(arity)?,
                    order: request.argument(4),
                })
            }
            (b"DEMOTE", 2) => Ok(Self::Demote { group: None }),
            (b"DEMOTE", 4) => {
                option(request, 2, b"GROUP", "KEYWRIGHT DEMOTE")?;
                Ok(Self::Demote {
                    group: Some(number(request, 3)?),
                })
            }
            (b"ADVANCE", 4) => Ok(Self::Advance {
                name: name.ok_or_else(arity)?,
                above: number(request, 3)?,
                use_up: false,
            }),
            (b"ADVANCE", 5) => {
                option(request, 4, b"USEUP", "KEYWRIGHT ADVANCE")?;
                Ok(Self::Advance {
                    name: name.ok_or_else(arity)?,
                    above: number(request, 3)?,
                    use_up: true,
                })
            }
            (b"ALTER", 5..) => Ok(Self::Alter {
                name: name.ok_or_else(arity)?,
                altered: Altered::parse(request)?,
            }),
            (b"DROP", 3) => name.map(Self::Drop).ok_or_else(arity),
            (b"HELP", 2) => Ok(Self::Help),
            (b"USER", _) => UserCommand::parse(request).map(Self::User),
            (
                b"NEXT" | b"DECODE" | b"LIST" | b"STATS" | b"ABOUT" | b"CREATE" | b"ADVANCE"
                | b"ALTER" | b"DROP" | b"DEMOTE" | b"HELP",
                _,
            ) => Err(arity()),
            _ => Err(Refusal::Subcommand("KEYWRIGHT", given)),
        }
    }
}

/// That the argument at this place is the name of the option that a command takes there.
fn option<'a>(
    request: &Request<'a>,
    at: usize,
    name: &[u8],
    command: &'static str,
) -> Result<(), Refusal<'a>> {
    let given = request.argument(at).unwrap_or_default();
    match Word::of(given).bytes() == name {
        true => Ok(()),
        false => Err(Refusal::Syntax(command)),
    }
}

/// The number at this place.
fn number<'a>(request: &Request<'a>, at: usize) -> Result<i64, Refusal<'a>> {
    integer(request.argument(at).unwrap_or_default()).ok_or(Refusal::NotInteger)
}
