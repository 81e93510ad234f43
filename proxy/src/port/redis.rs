//! Keys over the Redis protocol.
//!
//! [`session`]: one connection as a state machine without sockets. [`commands`]: what becomes of a request: [`answer`] answers, [`told`] tells keys, [`held`] those that wait for the store,
//! [`login`] lets in, [`manage`] changes users, [`tags`] tags, [`cluster`] says who gives keys of ordered ones. [`connection`]: its sockets,
//! with what waits to go out in [`output`]. [`limits`]: how long requests may be.

mod answer;
mod client;
mod cluster;
mod commands;
pub(crate) mod connection;
mod context;
mod held;
mod limits;
mod login;
mod manage;
mod outcome;
mod output;
mod refused;
mod role;
mod session;
mod tags;
mod told;
mod turn;
