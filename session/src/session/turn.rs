//! Whose turn it is.

use crate::answer::after::After;
use crate::answer::last_insert_id::Reply;
use crate::insert::native::{Answered, PassedOn, Sent};
use crate::prepared::select_prepared::SelectStatement;
use crate::prepared::statements::Statement;
use crate::prepared::text_prepare::Reprepared;

/// Whose turn it is.
#[derive(Debug)]
pub(crate) enum Turn {
    /// The client's: its next command.
    Command,
    /// The upstream's: its answer is passed on to the client.
    Answer(After),
    /// The upstream's: its answer is gathered. It decides what is next, or goes to the client once it is complete.
    Gather(Gather),
    /// The driver's: it looks for keys.
    Keys,
    /// The client's: the file that it was asked for.
    File,
    /// Nobody's: bytes pass both ways until the end.
    Passthrough,
}

impl Turn {
    /// The upstream's, to answer a rewritten INSERT.
    pub(crate) fn of_reply(reply: Reply, returning: bool) -> Self {
        if returning {
            // A result set: rows pass as they are.
            Turn::Answer(After::Returned(reply))
        } else {
            Turn::Gather(Gather::Insert(reply))
        }
    }
}

/// What a gathered answer is for.
#[derive(Debug)]
pub(crate) enum Gather {
    /// A rewritten INSERT.
    Insert(Reply),
    /// A try of an INSERT … SELECT.
    Select(Reply),
    /// LAST_INSERT_ID() is made 0 for a LOAD DATA.
    LoadStart,
    /// Which file a LOAD DATA LOCAL wants.
    FileName,
    /// A try of a LOAD DATA.
    Load,
    /// A rewritten COM_STMT_PREPARE.
    Prepare(Box<Statement>),
    /// A PREPARE out of a text, with keys in it.
    Reprepare(Reprepared),
    /// A rewritten COM_STMT_PREPARE of an INSERT … SELECT.
    PrepareSelect(Box<SelectStatement>),
    /// An INSERT for which the server makes the key.
    Native(Sent),
    /// The warnings of one.
    Warnings(Answered),
    /// The warnings of one that was passed on, and whose client waits for the end of its answer.
    PassedWarnings(PassedOn),
}
