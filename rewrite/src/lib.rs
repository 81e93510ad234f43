//! Reads MySQL statements and splices keys into them; pure.
//!
//! A statement's text is never regenerated: it is read with the eyes of the server, in the session's modes, and the key is
//! put in at the places found. What cannot be done exactly is refused by name. In the order of use:
//! 1. [`kind()`]: reads the first keyword, for every statement.
//! 2. [`InsertHead::read`]: up to the table's name, to find the rule.
//! 3. [`Insert::read`] and [`Insert::plan`]: one walk over the rows at memory speed finds those that need a key.
//!    [`Insert::plan_query`] does so where the rows come from a SELECT, [`Load::plan`] where they come from a file.
//! 4. [`Plan::splice`] writes the text with its keys, [`Plan::prepare`] the text of a prepared statement.
//!    [`Plan::in_place`] and [`Plan::write_in_place`] rewrite a long text of many rows where it lies.
//!
//! ```
//! use keywright_core::KeyBatch;
//! use keywright_rewrite::{
//!     CharsetClass, Flavour, Insert, InsertHead, KeyColumn, KeyForm, Modes, Server,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = b"INSERT INTO orders (item) VALUES ('tea'), ('salt /* and */ pepper')";
//! let modes = Modes {
//!     ansi_quotes: false,
//!     no_backslash_escapes: false,
//!     no_auto_value_on_zero: Some(false),
//!     strict: Some(true),
//!     empty_is_null: false,
//!     charset: CharsetClass::Safe,
//!     server: Server { flavour: Flavour::MySql, version: 90_700 },
//! };
//! let key = KeyColumn {
//!     name: b"id",
//!     form: KeyForm::Integer,
//!     live: &[],
//!     watched: false,
//!     is_signed: false,
//!     is_strict: false,
//! };
//! let head = InsertHead::read(text, &modes)?;
//! let plan = Insert::read(head, text, &modes)?.plan(text, &modes, &key)?;
//! assert_eq!(plan.keys(), 2);
//!
//! let keys = KeyBatch::Numbers { first: 1001, spacing: 1, count: plan.keys() };
//! let mut rewritten = Vec::new();
//! plan.splice(text, &keys, &mut rewritten)?;
//! assert_eq!(
//!     String::from_utf8(rewritten)?,
//!     "INSERT INTO orders (`id`,item) VALUES (1001,'tea'), (LAST_INSERT_ID(1001)+1,'salt /* and */ pepper')"
//! );
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// What a peer, a file or a server says is no reason to panic.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

mod lex;
mod modes;
mod plan;
mod read;
mod refusal;
mod splice;

pub use lex::name::TableName;
pub use lex::non_ascii_blanks::{
    begins_with_blanks_beyond_ascii, brings_rows, has_blanks_beyond_ascii,
    may_have_blanks_beyond_ascii, reads_blanks_beyond_ascii,
};
pub use lex::quote::{quote_name, quote_string};
pub use lex::swe7::{is_other_in_swe7, reads_otherwise_in_swe7};
pub use modes::{CharsetClass, Flavour, Modes, Server};
pub use plan::computed_keys::ComputedKeys;
pub use plan::insert_plan::{LastInsertId, Plan};
pub use plan::key_column::KeyColumn;
pub use plan::key_of_query::KeyOfQuery;
pub use plan::load_data::LoadPlan;
pub use plan::query_columns::ResultColumn;
pub use plan::select_plan::QueryPlan;
pub use plan::site::KeyParameter;
pub use read::constant::{AsInteger, Care, Meaning, double_as_integer, text_as_integer};
pub use read::doubtful_quotes::{doubtful_quotes_end, has_doubtful_quotes};
pub use read::insert::Insert;
pub use read::insert_head::{InsertHead, Verb};
pub use read::key_wanted::KeyForm;
pub use read::kind_facts::{KindFacts, RowsFrom, SeesLastInsertId, StateChange, unread_kind};
pub use read::last_insert_id::{
    LastInsertIdChange, LastInsertIdUse, last_insert_id_change, last_insert_id_use,
    last_insert_id_use_of,
};
pub use read::load_data::Load;
pub use read::next_value::{NEXT_VALUES_MAX, NextValue, next_value};
pub use read::query::cross_check::SecondReading;
pub use read::split::{Piece, split, split_first, without_empty_end, without_terminator};
pub use read::statement_kind::{Kind, behind_set_statement, kind, kind_of_beginning};
pub use read::table_references::{names_new, tables_filled, tables_of_documents, tables_read};
pub use read::targets::{load_target, tables_touched, unread_load_target, use_target};
pub use read::text_prepare::{PrepareSource, execute_by, named_statement, prepare_source};
pub use read::view_definition::ViewText;
pub use refusal::{
    AttributesConstruct, BulkConstruct, KeyExpression, LoadConstruct, LongDataConstruct,
    SelectConstruct, SetStatementTarget, Unread, Unsupported,
};
pub use splice::error::SpliceError;
pub use splice::in_place::InPlace;
pub use splice::out_of_range::{is_cut_off, is_given_key, is_no_key, is_out_of_range};
pub use splice::prepared::{Injected, Prepared, Variant};
pub use splice::select::{InQuery, PreparedQuery};
