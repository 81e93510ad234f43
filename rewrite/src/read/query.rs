//! Queries whose rows are inserted.

mod ahead;
pub(crate) mod clause;
pub(crate) mod cross_check;
pub(crate) mod one_group;
pub(crate) mod outline;
pub(crate) mod outline_reader;
pub(crate) mod own_tail;
pub(crate) mod sorted_within;
pub(crate) mod steady;
pub(crate) mod table_parameters;
