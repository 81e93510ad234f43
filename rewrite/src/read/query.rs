//! Queries whose rows are inserted.

pub(crate) mod cross_check;
pub(crate) mod outline;
