//! Answers: LAST_INSERT_ID() and ROW_COUNT() as native auto-increment shows them ([`reply`], [`last_insert_id`]), what is passed on
//! untouched ([`passing`]), what that sees and makes of them ([`effect`]) and what else it changes ([`after`], [`finish`]), and what clients
//! are told otherwise ([`errors`], [`refuse`]).

pub(crate) mod after;
mod effect;
pub(crate) mod errors;
pub(crate) mod finish;
pub(crate) mod last_insert_id;
pub(crate) mod passing;
pub(crate) mod refuse;
pub(crate) mod reply;
