//! A MySQL proxy that fills generated keys into INSERTs, and key ports that give them over the Redis protocol and HTTP: sockets, configuration,
//! checks and the command line around `keywright-session`, which decides what becomes of packets, `keywright-resp`, which reads requests,
//! and `keywright-store`, where keys come from.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// What a peer, a file or a server says is no reason to panic.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

mod admin;
pub mod config;
pub mod connection;
pub mod decode;
pub mod explain;
pub mod handshake;
pub mod in_force;
pub mod log;
pub mod metrics;
mod port;
pub mod release;
pub mod schema;
pub mod serve;
pub mod status;
pub mod switch;
pub mod tags_in_use;
pub mod users;
