//! What clients send: a [`command`], whose front [`decode`] reads, a statement as [`text`] (a [`query`], of which [`read`] makes a [`reading`]; [`pass_text`]), several of them ([`multi_statement`], [`one_by_one`]), one that is too [`long`] to gather,
//! `SHOW KEYWRIGHT` ([`show`]).

pub(crate) mod attributes;
pub(crate) mod blanks;
pub(crate) mod command;
pub(crate) mod decode;
pub(crate) mod long;
pub(crate) mod multi_statement;
pub(crate) mod one_by_one;
pub(crate) mod pass_text;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod reading;
pub(crate) mod set_statement;
mod several_observed;
pub(crate) mod show;
pub(crate) mod text;
