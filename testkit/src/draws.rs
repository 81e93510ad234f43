//! Ids that were drawn: connections that draw them, and a log that checks them.

pub(crate) mod id_log;
pub(crate) mod load;
