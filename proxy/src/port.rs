//! The key port: keys for any program, over the Redis protocol.
//!
//! [`keys`]: which names there are, and what they give now. [`session`]: one connection as a state machine without sockets; it answers with
//! [`answer`], and [`issue`] takes keys. [`connection`]: its sockets.

mod answer;
mod client;
pub(crate) mod connection;
mod issue;
pub(crate) mod keys;
mod password;
mod refused;
mod session;
