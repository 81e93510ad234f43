//! What a statement sent as text is.

use keywright_rewrite::{NextValue, TableName, Unsupported};

use crate::answer::after::After;
use crate::server::context::TextStatement;

/// What is known of one statement before it is carried out.
pub(crate) enum Reading {
    /// Pass it on.
    Pass(After),
    /// It is an INSERT or REPLACE on a table with a rule, or may be.
    Insert,
    /// It is a LOAD DATA or LOAD XML into this table.
    Load(TableName),
    /// It would be one, in a shape that cannot be rewritten; what it changes where it is passed on.
    Unsupported(TableName, Unsupported, After),
    /// It may be one, and it cannot be told into which table.
    Hidden(Unsupported),
    /// It asks for keys of a table with a rule, or may.
    NextValue(NextValue),
    /// PREPARE of one out of a text.
    Prepare(Box<TextStatement>),
    /// EXECUTE of one that was prepared so.
    Execute(Vec<u8>),
}
