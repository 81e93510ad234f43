//! Prepared statements on rules' tables: [`prepare`], [`execute`], [`execute_bulk`], INSERT … SELECT ([`select_prepared`]), those that bring their own keys ([`by_order`]), and the
//! SQL statements PREPARE and EXECUTE ([`text_prepare`]). Keys among parameters: [`param_keys`], [`bulk_keys`], [`place`].

pub(crate) mod as_is;
pub(crate) mod bulk_keys;
pub(crate) mod by_order;
pub(crate) mod execute;
pub(crate) mod execute_bulk;
pub(crate) mod keyed;
pub(crate) mod observed;
pub(crate) mod param_keys;
pub(crate) mod place;
pub(crate) mod prepare;
pub(crate) mod refresh;
pub(crate) mod select_prepared;
pub(crate) mod statements;
pub(crate) mod text_prepare;
