//! Keys over the Redis protocol.
//!
//! [`session`]: one connection as a state machine without sockets; it answers with [`answer`], and [`told`] tells keys. [`connection`]: its
//! sockets.

mod answer;
mod client;
pub(crate) mod connection;
mod login;
mod refused;
mod session;
mod told;
