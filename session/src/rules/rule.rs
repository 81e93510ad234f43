//! One rule, and a view through which rows go into its tables.

use keywright_rewrite::KeyForm;

use crate::rules::pattern::Pattern;

/// What to do with a key that the application gives itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExplicit {
    /// Let it be.
    Keep,
    /// Refuse the statement.
    Refuse,
}

/// What to do with a statement that cannot be rewritten exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnsupported {
    /// Error 1235 that names the construct.
    Refuse,
    /// Forward it untouched.
    Pass,
}

/// What to do when several rows may or may not go in (IGNORE, ON DUPLICATE KEY UPDATE), so that the id to report is not sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnAmbiguousId {
    /// Report the first key proposed.
    First,
    /// Refuse the statement.
    Refuse,
}

/// Whether several keys of one statement follow from the first, as drivers compute them, and what becomes of the statement if they do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SeveralRows {
    /// They do.
    #[default]
    Spaced,
    /// They do not, and it is refused.
    Refused,
    /// They do not, and it gets its keys: nobody computes them.
    Apart,
}

/// Whether statements are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They are.
    Rewrite,
    /// What would be done is counted only.
    Observe,
}

/// A column that gets keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Tables it is for.
    pub table: Pattern,
    /// The column's name.
    pub column: String,
    /// What the column holds.
    pub form: KeyForm,
    /// What to do with keys that the application gives itself.
    pub on_explicit: OnExplicit,
    /// What to do with statements that cannot be rewritten exactly.
    pub on_unsupported: OnUnsupported,
    /// What to do when the id to report is not sure.
    pub on_ambiguous_id: OnAmbiguousId,
    /// What becomes of a statement whose several keys may not follow from the first.
    pub several_rows: SeveralRows,
    /// Whether statements are changed.
    pub mode: Mode,
    /// Bits of the largest key: 63, or 53 for clients that read numbers as doubles.
    pub bits_max: u32,
    /// Keys at equal distances that may be asked for at once: for a snowflake those of a tick.
    pub keys_max: u64,
    /// A trigger of a matching table may read LAST_INSERT_ID(). This and what follows holds for all of them; of a table of which
    /// something else is known, that holds ([`TableTraits`]).
    pub watched: bool,
    /// A statement that fails leaves nothing behind: matching tables are InnoDB without triggers.
    pub repeatable: bool,
    /// A query can be carried out more than once: no view calls a function.
    pub is_steady: bool,
    /// Key columns of matching tables have numbers below 0: none is UNSIGNED.
    pub is_signed: bool,
    /// Key columns of matching tables are AUTO_INCREMENT: the server reports the key of a row of VALUES that went in, whoever gave it.
    pub is_auto_increment: bool,
}

impl Rule {
    /// As it is where nothing more is said, and before anybody knows more of its tables, its keys and where they come from.
    #[must_use]
    pub fn new(table: Pattern, column: &str, form: KeyForm) -> Self {
        Self {
            table,
            column: column.to_owned(),
            form,
            on_explicit: OnExplicit::Keep,
            on_unsupported: OnUnsupported::Refuse,
            on_ambiguous_id: OnAmbiguousId::First,
            several_rows: SeveralRows::Spaced,
            mode: Mode::Rewrite,
            bits_max: 63,
            keys_max: u64::MAX,
            watched: false,
            repeatable: false,
            is_steady: false,
            is_signed: false,
            is_auto_increment: false,
        }
    }

    /// What holds for its tables.
    pub(super) fn traits(&self) -> TableTraits {
        TableTraits {
            watched: self.watched,
            repeatable: self.repeatable,
            is_steady: self.is_steady,
            is_signed: self.is_signed,
            is_auto_increment: self.is_auto_increment,
        }
    }

    /// The rule for a table of which this holds.
    pub(super) fn of_table(&self, traits: TableTraits) -> Self {
        let TableTraits {
            watched,
            repeatable,
            is_steady,
            is_signed,
            is_auto_increment,
        } = traits;
        Self {
            watched,
            repeatable,
            is_steady,
            is_signed,
            is_auto_increment,
            ..self.clone()
        }
    }
}

/// What holds for a table, or for all tables of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableTraits {
    /// A trigger may read LAST_INSERT_ID().
    pub watched: bool,
    /// A statement that fails leaves nothing behind: InnoDB without triggers.
    pub repeatable: bool,
    /// A query can be carried out more than once: no view of the server calls a function.
    pub is_steady: bool,
    /// The key column has numbers below 0: it is not UNSIGNED.
    pub is_signed: bool,
    /// The key column is AUTO_INCREMENT.
    pub is_auto_increment: bool,
}

/// A view through which rows go into a table with a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Which of the rules is for the table behind it.
    pub rule: usize,
    /// How it shows the key.
    pub key: ViewKey,
}

/// How a view shows the key of the table behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewKey {
    /// As the column of this name.
    Column(String),
    /// In a way that forbids rewriting, in words that follow "a view".
    Unsupported(&'static str),
}
