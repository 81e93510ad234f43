//! Statements on rules' tables, as text: what is read of them ([`plan`], [`plan_cache`]), their keys ([`keys`]), which way one goes ([`text_insert`]): INSERTs of rows ([`values`], [`in_place`]), those whose keys the server computes ([`computed`]) or are queries ([`key_of_query`]),
//! INSERT … SELECT ([`select`], [`guarded`]), LOAD DATA ([`load`], [`loading`], [`load_try`], [`local_file`]), keys before an INSERT ([`next_value`]). What cannot be done exactly ([`refuse`]), and what the
//! server may refuse or leave out at the fence ([`native`], [`watch_fence`], [`at_fence`], [`leaves_out`], [`warnings`]).

pub(crate) mod at_fence;
pub(crate) mod computed;
pub(crate) mod guarded;
pub(crate) mod in_place;
pub(crate) mod key_of_query;
pub(crate) mod keys;
pub(crate) mod leaves_out;
pub(crate) mod load;
pub(crate) mod load_try;
pub(crate) mod loading;
pub(crate) mod local_file;
pub(crate) mod native;
pub(crate) mod next_value;
pub(crate) mod plan;
pub(crate) mod plan_cache;
pub(crate) mod refuse;
pub(crate) mod select;
pub(crate) mod text_insert;
pub(crate) mod values;
pub(crate) mod warnings;
pub(crate) mod watch_fence;
