//! Keys over the Redis protocol.
//!
//! [`session`]: one connection as a state machine without sockets. [`commands`]: what becomes of a request: [`answer`] answers, [`told`] tells keys,
//! [`login`] lets in, [`manage`] changes users, [`tags`] tags, [`cluster`] says who gives keys of ordered ones. [`connection`]: its sockets.

mod answer;
mod client;
mod cluster;
mod commands;
pub(crate) mod connection;
mod context;
mod login;
mod manage;
mod outcome;
mod refused;
mod session;
mod tags;
mod told;
mod turn;
