//! Calls into the server, each behind a safe function. What can raise a PostgreSQL error says so; such an error unwinds as a panic
//! that the entry point gives back to the server, so guards on the stack are dropped.

pub mod backend;
pub mod changes;
pub mod clock;
pub mod cluster;
pub mod control;
pub mod guc;
pub mod latch;
pub mod lock;
pub mod log;
pub mod process;
pub mod query;
pub mod random;
pub mod received;
pub mod relation;
pub mod role;
pub mod security_label;
pub mod sequence;
pub mod text;
pub mod timestamp;
pub mod transaction;
pub mod wal;
