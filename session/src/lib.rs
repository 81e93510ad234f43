//! What a MySQL connection through Keywright does with packets and keys, without sockets.
//!
//! A [`Session`] is fed with the bytes of both sides and says what becomes of them: most are passed on unchanged, without
//! being looked at more closely than where a packet ends. An INSERT on a table with a rule is gathered, rewritten, and its
//! answer corrected to what native auto-increment would have shown.
//!
//! - [`rules`]: which column of which tables gets keys.
//! - `session`: whose turn it is. `command`, `text`, `kinds`: what the client wants.
//!   `passing`: what is passed on untouched; `after`: what that changes.
//! - `insert`, `select`, `load`, `local_file`, `prepare`, `execute`, `execute_bulk`, `select_prepared`, `statements`, `text_prepare`: statements on rules' tables, as text and prepared; `as_is`:
//!   those that the server gives the client's own insert_id; `observed`: those that were prepared before their rule rewrote; `native`: those that the server may refuse at the fence. `multi_statement`: several in one text.
//! - `last_insert_id`: LAST_INSERT_ID() and ROW_COUNT(). `context`: what is known of the server's state; `question`: what is asked of
//!   tables.
//! - `param_keys`, `bulk_keys`: keys among parameters. `attributes`: what clients of MySQL send with a text.
//! - `traffic`: what is under way on rules' tables, so that rules can change while connections are open; `flow`: where nobody reads.
//! - `budget`: what prepared statements take of the driver's memory.
//! - `show`: what the proxy lists of itself; `ending`: what clients are told when it stops.
//! - `errors`: failures as clients are told of them. [`imagine`]: what would become of a statement, without a server.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod after;
mod as_is;
mod attributes;
mod blanks;
mod budget;
mod bulk_keys;
mod command;
mod context;
mod ending;
mod errors;
mod execute;
mod execute_bulk;
mod flow;
pub mod imagine;
mod in_place;
mod insert;
mod kinds;
mod last_insert_id;
mod load;
mod local_file;
mod multi_statement;
mod native;
mod observed;
mod param_keys;
mod passing;
mod place;
mod plan;
mod prepare;
mod question;
mod refresh;
mod refuse;
pub mod rules;
mod schema;
mod select;
mod select_prepared;
mod session;
mod set_statement;
mod show;
mod statements;
mod step;
mod temporary;
mod text;
mod text_prepare;
mod traffic;

pub use budget::Budget;
pub use flow::Rest;
pub use in_place::Room;
pub use rules::{
    Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Pattern, PatternError, Rule, Rules, SeenTable,
    Sighting, View, ViewKey,
};
pub use schema::SchemaChanges;
pub use session::Session;
pub use show::{List, Listing};
pub use step::{Event, KeyFailure, KeyRequest, Limits, SessionFacts, Step, What};
pub use traffic::{Adopted, Door, Traffic, Unread};
