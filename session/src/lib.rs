//! What a MySQL connection through Keywright does with packets and keys, without sockets.
//!
//! A [`Session`] is fed with the bytes of both sides and says what becomes of them. Most are passed on unchanged: the session only
//! finds where a packet ends. An INSERT on a table with a rule is gathered and rewritten, and its answer is corrected to what
//! native auto-increment would have shown.
//!
//! - [`rules`]: which column of which tables gets keys, and which rule is for a table that a statement names (`rules/lookup`);
//!   `rules/admissions`, `rules/traffic`: who may begin something on those tables, and what is under way there, so that rules can change
//!   while connections are open.
//! - `session`: what drivers call. `connection`: what a connection knows. `job`: what is under way for the client's command, one job at a
//!   time; it takes events and the connection.
//! - `client`: what clients send. `server`: what is known of the server, and how it is asked.
//! - `judge`: what becomes of a statement by what its rule says and what is known of it; everything that acts on it goes by this.
//! - `insert`, `prepared`: statements on rules' tables, as text and prepared. `budget`: the memory that prepared ones may take.
//! - `answer`: answers as clients get them, LAST_INSERT_ID() among them. `flow`: connections whose bytes nobody reads.
//! - [`imagine`]: what would become of a statement, without a server.
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

mod answer;
mod budget;
mod client;
mod connection;
mod flow;
pub mod imagine;
mod insert;
mod job;
mod judge;
mod prepared;
pub mod rules;
mod server;
mod session;
mod step;

pub use budget::Budget;
pub use client::show::{List, Listing};
pub use flow::Rest;
pub use insert::in_place::Room;
pub use judge::ROWS_FIRST;
pub use rules::admissions::RuleAdmission;
pub use rules::traffic::{PassthroughConnection, Traffic};
pub use rules::{
    KeyColumnState, Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Pattern, PatternError, Rule,
    Rules, SeveralRows, TableSnapshot, TableTraits, View, ViewKey, in_lower_case,
};
pub use server::listed::ListedTables;
pub use server::met_table::MetTable;
pub use server::schema::SchemaChanges;
pub use session::{RulesUpdate, Session};
pub use step::{Event, KeyFailure, KeyRequest, Limits, SessionFacts, StatementOutcome, Step};
