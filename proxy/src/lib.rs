//! A MySQL proxy that fills generated keys into INSERTs: sockets, configuration, checks and the command line around
//! `keywright-session`, which decides what becomes of packets, and `keywright-store`, where keys come from.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod admin;
pub mod clients;
pub mod config;
mod config_snapshot;
mod config_updates;
mod connection_slot;
mod connection_span;
pub mod decode;
pub mod explain;
pub mod general_log;
pub mod handshake;
pub mod in_force;
mod input;
mod keepalive;
pub mod known;
mod leaving;
mod linger;
pub mod listener;
pub mod listener_context;
pub mod listening;
pub mod memory;
pub mod metrics;
mod origin;
pub mod password;
mod refusal;
pub mod relay;
pub mod release;
pub mod schema;
pub mod serve;
mod side;
pub mod status;
mod stopping;
pub mod stream;
pub mod switch;
pub mod take_over;
mod threads;
pub mod tls;
