//! Prepared statements on rules' tables: [`prepare`], [`prepare_rows`] and what the server says ([`preparing`]), [`prepare_passed`], [`execute`], [`execution`] and what else its text may be ([`variant`]), [`execute_bulk`] ([`send_bulk`]), executions that wait for keys ([`keyed`]) or are refused
//! ([`refuse`], [`long_data`]), keys that the server computes ([`computed`]), INSERT … SELECT ([`select_statement`], [`select_prepared`], [`send_select`]), keys before an INSERT
//! ([`next_value`], [`send_next_value`]), and the SQL statements PREPARE and EXECUTE ([`text_prepare`]). Those that are passed on: [`passed`], [`passed_statement`], among them
//! INSERTs that bring their own keys ([`by_order`]). Commands that only name one: [`named`]. What sql_mode changes: [`sql_mode`]. Keys among parameters: [`param_keys`],
//! [`bulk_keys`], [`place`].

pub(crate) mod anew;
pub(crate) mod as_is;
pub(crate) mod bulk_keys;
pub(crate) mod by_order;
pub(crate) mod computed;
pub(crate) mod database;
pub(crate) mod execute;
pub(crate) mod execute_bulk;
pub(crate) mod execution;
pub(crate) mod keyed;
pub(crate) mod long_data;
pub(crate) mod named;
pub(crate) mod next_value;
pub(crate) mod observed;
pub(crate) mod param_keys;
pub(crate) mod passed;
pub(crate) mod passed_statement;
pub(crate) mod place;
pub(crate) mod prepare;
pub(crate) mod prepare_passed;
pub(crate) mod prepare_rows;
pub(crate) mod preparing;
pub(crate) mod refresh;
pub(crate) mod refuse;
pub(crate) mod select_prepared;
pub(crate) mod select_statement;
pub(crate) mod send_bulk;
pub(crate) mod send_next_value;
pub(crate) mod send_select;
pub(crate) mod sql_mode;
pub(crate) mod statements;
pub(crate) mod text_prepare;
pub(crate) mod variant;
