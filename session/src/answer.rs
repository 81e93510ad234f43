//! Answers: LAST_INSERT_ID() and ROW_COUNT() as native auto-increment shows them ([`reply`], [`last_insert_id`]), what is passed on
//! untouched ([`passing`]) and what that changes ([`after`], [`finish`]), and what clients are told otherwise ([`errors`], [`refuse`]).

pub(crate) mod after;
pub(crate) mod errors;
pub(crate) mod finish;
pub(crate) mod last_insert_id;
pub(crate) mod passing;
pub(crate) mod refuse;
pub(crate) mod reply;
