//! Why a statement is not rewritten.

mod constructs;

use thiserror::Error;

pub use constructs::{
    AttributesConstruct, BulkConstruct, LoadConstruct, LongDataConstruct, SelectConstruct,
    SetStatementTarget,
};

/// Why reading a statement gave no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unread {
    /// The text ends too early, or the server certainly refuses it. A whole statement is forwarded untouched: the server
    /// answers with its own error. Of the beginning of a statement more must be read.
    #[error("the server refuses this text by itself")]
    Refused,
    /// It cannot be rewritten exactly.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// What cannot be rewritten exactly, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Unsupported {
    /// The rows come from a query, in a statement that is prepared out of a text.
    #[error("INSERT … SELECT in PREPARE from a text")]
    Select,
    /// The rows come from a query with something that forbids rewriting.
    #[error("INSERT … SELECT {0}")]
    SelectWith(SelectConstruct),
    /// `VALUES` or `TABLE` as a query: parenthesised, united, limited.
    #[error("a table value constructor")]
    TableValue,
    /// LOAD XML into a table with a rule.
    #[error("LOAD XML")]
    LoadXml,
    /// LOAD DATA into a table with a rule, with something that forbids rewriting.
    #[error("LOAD DATA {0}")]
    LoadWith(LoadConstruct),
    /// PREPARE out of a text: its keys would have to change with every EXECUTE.
    #[error("PREPARE from a text")]
    TextPrepare,
    /// MariaDB's EXECUTE IMMEDIATE of an INSERT on a rule's table.
    #[error("EXECUTE IMMEDIATE of an INSERT")]
    ExecuteImmediate,
    /// Non-ASCII text in a character set whose second bytes look like backslashes.
    #[error(
        "text beyond ASCII in a character set whose characters may contain a backslash (big5, cp932, gb18030, gbk, sjis)"
    )]
    Charset,
    /// Bytes that are blanks to the server in this character set, and letters in others.
    #[error("blanks beyond ASCII, such as the no-break space of latin1, outside of strings")]
    Blank,
    /// A name that only the server can tell: its bytes are others in UTF-8, in which it keeps names.
    #[error("a table or database named beyond ASCII in a character set other than UTF-8")]
    NameCharset,
    /// Whether it failed for want of keys its error does not say.
    #[error(
        "a statement whose error the server cuts off, as character_set_results is utf16, utf16le, utf32 or ucs2"
    )]
    ErrorCutOff,
    /// In swe7 bytes below 0x80 are letters.
    #[error("swe7, the client's character set, in which brackets and backslashes are letters")]
    NoAscii,
    /// Versions read such comments in different ways.
    #[error("an executable comment whose version runs into its text")]
    VersionComment,
    /// A hint sets a variable for this statement.
    #[error("the hint SET_VAR")]
    SetVar,
    /// `SET STATEMENT` of a variable that changes how the INSERT would be carried out.
    #[error("SET STATEMENT of {0}")]
    SetStatement(&'static str),
    /// `SET STATEMENT` of something that only an execution tells.
    #[error("SET STATEMENT of a parameter")]
    SetStatementParameter,
    /// `SET STATEMENT … FOR` a statement in which rows may come, or another statement.
    #[error("SET STATEMENT FOR {0}")]
    SetStatementFor(SetStatementTarget),
    /// More than one statement in the text.
    #[error("several statements in one text")]
    Several,
    /// The live column order is not known.
    #[error("an INSERT without column list whose columns are not known")]
    ColumnsUnknown,
    /// The configured column's name has bytes beyond ASCII: names are compared by rules of the server's own.
    #[error("a key column whose name is not ASCII")]
    KeyName,
    /// The key column's type holds no keys as large as the rule's may be.
    #[error("a column without room for the rule's keys")]
    KeyNarrow,
    /// The table has ids that its rule is still to give, or keys by another rule.
    #[error("a table that gets no keys now")]
    TableAhead,
    /// The program's own account may not see the table, so nobody knows which ids it has, and it has no fence.
    #[error("a table that the program's own account may not see")]
    TableUnshown,
    /// The server has not said in time whether the account may see the table.
    #[error(
        "a table of which the server has not said whether the program's own account may see it"
    )]
    TableUnanswered,
    /// The key column came after the statement was prepared.
    #[error("a statement that was prepared before the key column was there: prepare it again")]
    KeyLater,
    /// Another text would be needed for the table as it is now.
    #[error("a statement that was prepared before its table was changed: prepare it again")]
    TableChanged,
    /// Another text would be needed, whose names mean other tables in the database that is chosen now.
    #[error("a statement that was prepared in another database: prepare it again")]
    Elsewhere,
    /// Another text would be needed, and the server would read it in another sql_mode or character set.
    #[error("a statement that was prepared in another sql_mode or character set: prepare it again")]
    ReadOtherwise,
    /// A temporary table hid the table with the rule when the statement was prepared, and is gone.
    #[error("a statement that was prepared for a temporary table that is gone: prepare it again")]
    Hidden,
    /// A value refers to the key column, which native auto-increment fills later.
    #[error("a value that refers to the key column")]
    KeyReferred,
    /// The key is computed.
    #[error("{0} as key")]
    Key(KeyExpression),
    /// 0 or DEFAULT beside NULL, while it is not known whether 0 asks for a key.
    #[error("0 beside NULL in the key column while sql_mode is not known")]
    ZeroAmbiguous,
    /// A prepared statement whose 0 or DEFAULT asked for a key when it was prepared and is one now, or whose computed key was an error if it was NULL.
    #[error(
        "0, DEFAULT or a computed key in the key column under another sql_mode than that of PREPARE"
    )]
    ZeroChanged,
    /// `SELECT NEXT n VALUES FOR …` of too many.
    #[error("NEXT VALUES for more than 1000 keys in one statement")]
    NextValues,
    /// With its keys it takes one packet of 16 MiB more: the server's answer would be numbered otherwise than the client expects.
    #[error("a statement that takes another packet of 16 MiB with its keys")]
    Longer,
    /// The text is larger than offsets go.
    #[error("a statement of 4 GiB or more")]
    TooLong,
    /// More parameters than a prepared statement may have.
    #[error("more than 65535 parameters")]
    Parameters,
    /// The server has found other parameters in a statement than were read in it: values would go to others than their own.
    #[error(
        "a statement whose parameters the server counts otherwise, such as :1 in sql_mode ORACLE"
    )]
    OtherParameters,
    /// Query attributes that cannot be sent again with another text.
    #[error("a statement with query attributes {0}")]
    Attributes(AttributesConstruct),
    /// Many rows of parameters for one prepared statement.
    #[error("a bulk execution {0}")]
    Bulk(BulkConstruct),
    /// The rows go through a view into a table with a rule, and what the view is forbids rewriting.
    #[error("an INSERT through a view {0}")]
    View(&'static str),
    /// What stands behind the rows is no part of an INSERT that is known.
    #[error("an INSERT that goes on behind its rows")]
    BehindRows,
    /// What stands behind the table is no part of an INSERT that is known.
    #[error("an INSERT that goes on behind its table with neither rows nor a query")]
    BehindTable,
    /// The text, or the keys, are not those that the plan was made for.
    #[error("a statement that was planned for another text or another number of keys")]
    NotAsPlanned,
    /// What was sent as long data went to another text than the one that is needed.
    #[error("an execution with COM_STMT_SEND_LONG_DATA {0}")]
    LongData(LongDataConstruct),
    /// Several keys of which the first must show the others, as they are one apart.
    #[error("a prepared statement of several rows whose keys are not one apart")]
    KeysApart,
}

/// Kinds of computed keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum KeyExpression {
    /// `f(x)`.
    #[error("a function call")]
    Call,
    /// `@a`, `@@a`.
    #[error("a variable")]
    Variable,
    /// `(SELECT …)`.
    #[error("a subquery")]
    Subquery,
    /// Another column.
    #[error("a column")]
    Column,
    /// Operators.
    #[error("an expression")]
    Operator,
    /// `_utf8mb4'0'`, `DATE'…'`.
    #[error("a string with an introducer")]
    Introducer,
    /// `''`, `'abc'`, `'0 '`: an error, or a 0, with a warning or without.
    #[error("a string that is no number")]
    NotNumber,
    /// `''` where that is NULL, for a key that is no number.
    #[error("'' in sql_mode EMPTY_STRING_IS_NULL")]
    EmptyText,
    /// `-1`: an UNSIGNED column takes it for 0 where it is no error.
    #[error("a number below 0 for a column that may be UNSIGNED")]
    Negative,
    /// `/*!(*/NULL)`.
    #[error("a value that begins or ends inside an executable comment")]
    Comment,
    /// `DEFAULT(other)`.
    #[error("the default of another column")]
    DefaultOfOther,
    /// MariaDB's `IGNORE` as a value.
    #[error("IGNORE")]
    Ignore,
    /// An expression whose value the server was asked for.
    #[error("an expression whose value is not of the kind of the key, or has a warning,")]
    Value,
    /// A number too long to be rounded with certainty.
    #[error("a number of very many digits")]
    LongNumber,
    /// `ROW(DEFAULT)` and the like.
    #[error("DEFAULT inside ROW()")]
    DefaultInRow,
}

impl Unsupported {
    /// The construct's name as a metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Select | Self::SelectWith(_) => "insert_select",
            Self::TableValue => "table_value_constructor",
            Self::LoadXml => "load_xml",
            Self::LoadWith(_) => "load_data",
            Self::TextPrepare => "text_prepare",
            Self::ExecuteImmediate => "execute_immediate",
            Self::Charset | Self::Blank | Self::NameCharset | Self::ErrorCutOff | Self::NoAscii => {
                "charset"
            }
            Self::VersionComment => "version_comment",
            Self::SetVar => "set_var",
            Self::SetStatement(_) | Self::SetStatementParameter | Self::SetStatementFor(_) => {
                "set_statement"
            }
            Self::Several => "several_statements",
            Self::ColumnsUnknown => "columns_unknown",
            Self::KeyName => "key_name",
            Self::KeyNarrow => "key_narrow",
            Self::TableAhead => "table_ahead",
            Self::TableUnshown => "table_unshown",
            Self::TableUnanswered => "table_unanswered",
            Self::KeyLater => "key_later",
            Self::TableChanged => "table_changed",
            Self::Elsewhere => "another_database",
            Self::ReadOtherwise => "another_sql_mode",
            Self::Hidden => "temporary_table",
            Self::KeyReferred => "key_referred",
            Self::Key(_) => "key_expression",
            Self::ZeroAmbiguous => "zero_ambiguous",
            Self::ZeroChanged => "zero_changed",
            Self::NextValues => "next_values",
            Self::Longer => "longer",
            Self::TooLong => "too_long",
            Self::Parameters | Self::OtherParameters => "parameters",
            Self::Attributes(_) => "query_attributes",
            Self::Bulk(_) => "bulk_execution",
            Self::View(_) => "view",
            Self::BehindRows
            | Self::BehindTable
            | Self::NotAsPlanned
            | Self::LongData(_)
            | Self::KeysApart => "unknown",
        }
    }
}
