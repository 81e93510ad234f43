//! Snowflake and readable keys: states of the words of a leased worker id, below a bound that is durable before it is used.

mod clock_watch;
pub(crate) mod keeper;
pub(crate) mod supply;
