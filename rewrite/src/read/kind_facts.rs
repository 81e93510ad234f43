//! What statements of each kind may do, beyond what their text shows: one table.

use crate::lex::cursor::Cursor;
use crate::modes::Modes;
use crate::read::statement_kind::Kind;
use crate::refusal::{Unread, Unsupported};

/// What statements of a kind may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindFacts {
    /// How rows come into a table by it.
    pub rows: RowsFrom,
    /// What it changes of what is known of the session.
    pub changes: StateChange,
    /// What it may see of LAST_INSERT_ID().
    pub sees: SeesLastInsertId,
    /// Whether it may set LAST_INSERT_ID() although its text does not name it, and nothing tells.
    pub may_set_last_insert_id: bool,
}

/// How rows come into a table by a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsFrom {
    /// They do not, or only by a trigger, a function or an update, or as what is left of a period by FOR PORTION OF.
    Never,
    /// They stand in it, or come from its query.
    Written,
    /// They come from a file.
    File,
    /// By a statement that stands behind `SET STATEMENT … FOR`.
    BehindSet,
    /// By a statement that it prepares out of a text, at once or later.
    OfText,
    /// By a statement that was prepared out of a text.
    Prepared,
    /// By statements of a block.
    Block,
    /// By what a procedure does, or nobody knows what.
    Unseen,
    /// What was read of it is blank: it may be any statement.
    Blank,
}

/// What a statement changes of what is known of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange {
    /// Nothing.
    Nothing,
    /// The database that is chosen.
    Database,
    /// Variables.
    Variables,
    /// A temporary table is made.
    TemporaryMade,
    /// Tables are dropped, temporary ones among them.
    TablesDropped,
    /// Tables and views are defined otherwise.
    Definitions,
    /// What is prepared out of texts.
    Texts,
    /// Anything.
    Anything,
}

/// What a statement may see of LAST_INSERT_ID().
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeesLastInsertId {
    /// Nothing, whatever its text names: it is not carried out now. But for the schedule of an event.
    Nothing,
    /// What its text names, and what may be behind the tables that its text reads.
    ByText,
    /// The same, and it uses tables: a view or a trigger could see it.
    ByTables,
    /// It is taken to see it.
    Always,
}

/// It may do anything.
const OPAQUE: KindFacts = KindFacts {
    rows: RowsFrom::Unseen,
    changes: StateChange::Anything,
    sees: SeesLastInsertId::Always,
    may_set_last_insert_id: true,
};

/// It does what its text says, and changes nothing of what is known.
const PLAIN: KindFacts = KindFacts {
    rows: RowsFrom::Never,
    changes: StateChange::Nothing,
    sees: SeesLastInsertId::ByText,
    may_set_last_insert_id: false,
};

/// The same, with tables.
const OF_TABLES: KindFacts = KindFacts {
    sees: SeesLastInsertId::ByTables,
    ..PLAIN
};

/// It puts rows into a table.
const INSERT: KindFacts = KindFacts {
    rows: RowsFrom::Written,
    ..OF_TABLES
};

/// It changes what is known.
const fn changing(changes: StateChange) -> KindFacts {
    KindFacts { changes, ..PLAIN }
}

/// It changes tables. Nothing is saved by looking closer at what it sees: most end the transaction. A table that it makes may get rows of a
/// query, which the server numbers.
const fn defining(changes: StateChange) -> KindFacts {
    KindFacts {
        changes,
        sees: SeesLastInsertId::Always,
        may_set_last_insert_id: true,
        ..PLAIN
    }
}

/// It may do what another statement does.
const fn carrying(rows: RowsFrom) -> KindFacts {
    KindFacts { rows, ..OPAQUE }
}

impl Kind {
    /// What statements of this kind may do.
    pub const fn facts(self) -> KindFacts {
        match self {
            Self::Empty => KindFacts {
                rows: RowsFrom::Blank,
                ..PLAIN
            },
            Self::Insert | Self::Replace => INSERT,
            Self::LoadData => KindFacts {
                rows: RowsFrom::File,
                may_set_last_insert_id: true,
                ..OF_TABLES
            },
            Self::Select | Self::NextValue | Self::Show | Self::Do => PLAIN,
            // It sets user variables. Whatever went out before it would be what it tells of.
            Self::GetDiagnostics => PLAIN,
            Self::With
            | Self::OtherQuery
            | Self::Update
            | Self::Delete
            | Self::Explain
            | Self::Handler => OF_TABLES,
            // It carries out the statement that it analyzes.
            Self::Analyze => KindFacts {
                may_set_last_insert_id: true,
                ..OF_TABLES
            },
            Self::Lock | Self::Unlock | Self::Flush | Self::Kill => PLAIN,
            Self::Begin | Self::Commit | Self::Rollback | Self::Savepoint | Self::Xa => PLAIN,
            Self::Set => changing(StateChange::Variables),
            Self::Use => changing(StateChange::Database),
            Self::Prepare => KindFacts {
                rows: RowsFrom::OfText,
                ..changing(StateChange::Texts)
            },
            Self::Deallocate => changing(StateChange::Texts),
            Self::DropTable => changing(StateChange::TablesDropped),
            Self::CreateTemporary => defining(StateChange::TemporaryMade),
            Self::Ddl => defining(StateChange::Definitions),
            // Its body is carried out later.
            Self::CreateRoutine => KindFacts {
                sees: SeesLastInsertId::Nothing,
                ..PLAIN
            },
            Self::SetStatement => carrying(RowsFrom::BehindSet),
            Self::ExecuteImmediate => carrying(RowsFrom::OfText),
            Self::Execute => carrying(RowsFrom::Prepared),
            Self::Compound => carrying(RowsFrom::Block),
            Self::Call | Self::Other => OPAQUE,
        }
    }
}

/// What keeps the first keywords of a statement from being read that may bring rows, or have them brought; [`crate::kind()`] takes it for any.
pub fn unread_kind(text: &[u8], modes: &Modes) -> Option<Unsupported> {
    let cursor = Cursor::new(text, modes);
    let Err(Unread::Unsupported(what)) = { cursor }.kind() else {
        return None;
    };
    let may_bring_rows = match { cursor }.token() {
        Err(_) => true,
        Ok(verb) => match cursor.verb_kind(verb).facts().rows {
            RowsFrom::Written
            | RowsFrom::File
            | RowsFrom::BehindSet
            | RowsFrom::OfText
            | RowsFrom::Prepared => true,
            RowsFrom::Never | RowsFrom::Block | RowsFrom::Unseen | RowsFrom::Blank => false,
        },
    };
    may_bring_rows.then_some(what)
}
