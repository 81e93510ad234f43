//! `KEYWRIGHT USER …`: who may do what.

use std::fmt;

use super::refusal::Refusal;
use super::word::Word;
use crate::request::Request;

/// A command about users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserCommand<'a> {
    /// There is one more.
    Add {
        /// Its name.
        name: &'a [u8],
        /// Its password.
        password: Secret<'a>,
    },
    /// It has another password.
    SetPassword {
        /// Its name.
        name: &'a [u8],
        /// The new one.
        password: Secret<'a>,
    },
    /// It may do more.
    Grant(Granted<'a>),
    /// It may do less.
    Revoke(Granted<'a>),
    /// It is no more.
    Remove(&'a [u8]),
    /// All users, and what they may do.
    List,
    /// Which user the client is.
    Whoami,
}

/// Rights of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted<'a> {
    /// Whose.
    pub name: &'a [u8],
    /// Which, with commas.
    pub rights: &'a [u8],
    /// On which names.
    pub pattern: &'a [u8],
}

/// What is not shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret<'a>(pub &'a [u8]);

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

impl<'a> UserCommand<'a> {
    pub(super) fn parse(request: &Request<'a>) -> Result<Self, Refusal<'a>> {
        let given = request.argument(2).unwrap_or_default();
        let argument = |at: usize| request.argument(at).unwrap_or_default();
        let granted = || Granted {
            name: argument(3),
            rights: argument(4),
            pattern: argument(5),
        };
        match (Word::of(given).bytes(), request.count()) {
            (b"ADD", 5) => Ok(Self::Add {
                name: argument(3),
                password: Secret(argument(4)),
            }),
            (b"SETPASS", 5) => Ok(Self::SetPassword {
                name: argument(3),
                password: Secret(argument(4)),
            }),
            (b"GRANT", 6) => Ok(Self::Grant(granted())),
            (b"REVOKE", 6) => Ok(Self::Revoke(granted())),
            (b"REMOVE", 4) => Ok(Self::Remove(argument(3))),
            (b"LIST", 3) => Ok(Self::List),
            (b"WHOAMI", 3) => Ok(Self::Whoami),
            (b"ADD" | b"SETPASS" | b"GRANT" | b"REVOKE" | b"REMOVE" | b"LIST" | b"WHOAMI", _) => {
                Err(Refusal::Arity("KEYWRIGHT USER"))
            }
            (_, 2) => Err(Refusal::Arity("KEYWRIGHT USER")),
            _ => Err(Refusal::Subcommand("KEYWRIGHT USER", given)),
        }
    }
}
