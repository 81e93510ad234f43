//! Reads MySQL statements and splices keys into them; pure.
//!
//! A statement's text is never regenerated: it is read with the eyes of the server, in the session's modes, and the key is
//! put in at the places found. What cannot be done exactly is refused by name. In the order of use:
//! 1. [`kind()`]: a look at the first keyword, for every statement.
//! 2. [`InsertHead::read`]: up to the table's name, to find the rule.
//! 3. [`Insert::read`] and [`Insert::plan`]: one walk over the rows at memory speed tells which of them need a key.
//!    [`Insert::plan_query`] does so where the rows come from a SELECT, [`Load::plan`] where they come from a file.
//! 4. [`Plan::splice`] writes the text with its keys, [`Plan::prepare`] the text of a prepared statement.
//!    [`Plan::in_place`] and [`Plan::write_in_place`] rewrite a long text of many rows where it lies.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod blanks;
mod constant;
mod cursor;
mod decimal;
mod head;
mod in_place;
mod insert;
mod key;
mod load;
mod loading;
mod look;
mod marks;
mod modes;
mod name;
mod numbered;
mod others;
mod outline;
mod plain;
mod plan;
mod prepared;
mod query;
mod refusal;
mod rows;
mod scan;
mod second;
mod sight;
mod splice;
mod split;
mod token;
mod view;
mod within;
mod words;

pub use blanks::has_blanks_beyond_ascii;
pub use constant::{Ask, Care, Meaning, double_asks, text_asks};
pub use head::{InsertHead, Verb};
pub use in_place::InPlace;
pub use insert::Insert;
pub use key::KeyForm;
pub use load::Load;
pub use loading::{LoadPlan, is_given_key};
pub use look::{Kind, behind_set_statement, kind};
pub use modes::{CharsetClass, Flavour, Modes, Server};
pub use name::TableName;
pub use numbered::{InQuery, PreparedQuery, QueryPlan, is_out_of_range};
pub use others::{
    PrepareSource, execute_by, load_target, named_statement, prepare_source, tables_touched,
    use_target,
};
pub use plan::{KeyColumn, KeyParameter, LastInsertId, Plan};
pub use prepared::{Injected, Prepared, Variant};
pub use refusal::{KeyExpression, Unread, Unsupported};
pub use second::SecondReading;
pub use sight::{LastInsertIdChange, Sight, last_insert_id_change, sight, sight_of};
pub use splice::SpliceError;
pub use split::{Piece, split, split_first, without_terminator};
pub use view::ViewText;
pub use within::{tables_filled, tables_read};
