//! The session of an earlier commit beside the one that stands, behind the interface of one: what drives a [`Session`] drives both
//! with the same bytes. After every call their answers are compared, and a difference is a panic that shows both.
//!
//! Compared are steps, bytes for each side, key requests, events, what a long INSERT becomes in the driver's buffer, memory that is
//! held, what is counted of traffic and of changed tables, and all that a session says of itself.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod budget;
mod compare;
mod convert;
mod rules;
mod session;

pub use now::{
    Budget, Event, KeyColumnState, KeyFailure, KeyRequest, Limits, List, Listing, MetTable, Mode,
    OnAmbiguousId, OnExplicit, OnUnsupported, Pattern, PatternError, Rest, Room, Rule,
    RuleAdmission, RulesUpdate, SessionFacts, SeveralRows, StatementOutcome, Step, TableSnapshot,
    View, ViewKey,
};
pub use rules::{Rules, SchemaChanges, Traffic};
pub use session::Session;
