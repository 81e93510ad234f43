//! What the end of an answer that was passed on changes.

use crate::answer::reply::Reply;
use crate::prepared::passed_statement::Passed;
use crate::server::context::{Named, TextStatement};

/// What an answer that was passed on changes.
#[derive(Debug)]
pub(crate) enum After {
    Nothing,
    /// Anything may have changed.
    Unknown,
    /// That, and tables were changed.
    Defined,
    /// The database, if it succeeded.
    Database(Vec<u8>),
    /// Tables were dropped, then temporary ones were made.
    Tables {
        dropped: Vec<Named>,
        made: Vec<Named>,
    },
    /// What was prepared out of texts, and whether anything else may have changed.
    Texts {
        texts: Texts,
        unknown: bool,
    },
    /// Several statements in one text; how many of them were carried out is not known.
    Several {
        /// Temporary tables that may be there now.
        made: Vec<Named>,
        /// One of them may have prepared another statement out of a text.
        doubts_texts: bool,
        /// One of them may have made temporary tables out of sight.
        doubts_unseen: bool,
    },
    /// Rows with generated keys were returned, if it succeeded.
    Returned(Reply),
    /// An INSERT on a table without a rule: LAST_INSERT_ID() is still this if no key was generated.
    Inserted(Option<u64>),
    /// COM_RESET_CONNECTION.
    Reset,
    /// COM_SET_OPTION: whether several statements are allowed.
    Multi(bool),
    /// A statement was prepared that is passed on.
    Prepared(Box<Passed>),
    /// A statement on a rule's table was prepared out of a text, if it succeeded.
    TextPrepared(Box<TextStatement>),
}

/// What becomes of statements that were prepared out of texts.
#[derive(Debug)]
pub(crate) enum Texts {
    /// No statement of a rule has this name any more.
    Gone(Vec<u8>),
    /// Any name may have another one.
    Doubtful,
}

impl After {
    /// Anything may have changed, what was prepared out of texts too.
    pub(crate) const ANYTHING: Self = Self::Texts {
        texts: Texts::Doubtful,
        unknown: true,
    };

    /// Whether temporary tables may have been made out of sight.
    pub(crate) fn makes_unseen(&self) -> bool {
        match self {
            Self::Texts { unknown, .. } => *unknown,
            Self::Several { doubts_unseen, .. } => *doubts_unseen,
            Self::Defined => true,
            Self::Nothing
            | Self::Unknown
            | Self::Database(_)
            | Self::Tables { .. }
            | Self::Returned(_)
            | Self::Inserted(_)
            | Self::Reset
            | Self::Multi(_)
            | Self::Prepared(_)
            | Self::TextPrepared(_) => false,
        }
    }

    /// Whether it comes of a PREPARE, whose statement is carried out later.
    pub(crate) fn names_text(&self) -> bool {
        match self {
            Self::Texts { texts, .. } => match texts {
                Texts::Gone(_) => true,
                Texts::Doubtful => false,
            },
            Self::TextPrepared(_) => true,
            Self::Nothing
            | Self::Unknown
            | Self::Defined
            | Self::Database(_)
            | Self::Tables { .. }
            | Self::Several { .. }
            | Self::Returned(_)
            | Self::Inserted(_)
            | Self::Reset
            | Self::Multi(_)
            | Self::Prepared(_) => false,
        }
    }
}
