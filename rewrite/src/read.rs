//! What statements say: of which kind they are, which tables they name, what is given as key, what they see of LAST_INSERT_ID().
//! Knows nothing of plans.

pub(crate) mod computed;
pub(crate) mod constant;
pub(crate) mod doubtful_quotes;
pub(crate) mod insert;
pub(crate) mod insert_head;
mod key_constant;
pub(crate) mod key_value;
pub(crate) mod key_wanted;
pub(crate) mod kind_facts;
pub(crate) mod last_insert_id;
pub(crate) mod load_data;
mod never_null;
pub(crate) mod next_value;
pub(crate) mod outer_names;
pub(crate) mod query;
pub(crate) mod split;
pub(crate) mod statement_kind;
pub(crate) mod table_references;
pub(crate) mod targets;
pub(crate) mod text_prepare;
pub(crate) mod view_definition;
