//! What is to be done with a statement: which rows need a key, and where each is written. Writes nothing.

mod computed_behind;
pub(crate) mod computed_keys;
mod computed_rows;
pub(crate) mod insert;
pub(crate) mod insert_plan;
pub(crate) mod key_column;
pub(crate) mod key_of_query;
pub(crate) mod load_data;
pub(crate) mod plain_rows;
pub(crate) mod query_columns;
pub(crate) mod row_sites;
pub(crate) mod rows;
pub(crate) mod select;
pub(crate) mod select_plan;
pub(crate) mod select_rows;
pub(crate) mod site;
mod table_of_with;
mod values_to_ask_for;
