//! MySQL's protocol as values: what packets say, read with every length checked, and packets written. No rules, keys or sockets.
//!
//! - [`protocol`], [`capability`]: its numbers by their names. [`bytes`]: packets and the fields in them; [`values`]: values of the binary protocol.
//! - [`done`]: what ends a result; [`answer`]: where an answer ends. [`rows`]: results that are made up.
//! - [`packets`]: commands, errors, and what is read from answers that were gathered whole. [`attributes`]: query attributes.
//! - [`params`], [`bulk`]: executions of prepared statements, for one row of parameters and for many.
//! - [`handshake`]: how server and client introduce themselves.
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

pub mod answer;
pub mod attributes;
pub mod bulk;
pub mod bytes;
pub mod capability;
pub mod done;
pub mod handshake;
pub mod packets;
pub mod params;
pub mod protocol;
pub mod rows;
pub mod values;
