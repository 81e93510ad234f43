//! The Redis protocol as values: requests read with every length checked, the commands of a key port, and replies written. No keys
//! or sockets.
//!
//! - [`request`]: arrays of bulk strings, and inline commands ([`inline`]). [`limits`]: how long they may be. [`fault`]: what is none.
//! - [`command`]: what a request asks for, and why it is refused; `command::table` is what `COMMAND` shows.
//! - [`reply`]: answers in RESP2 and RESP3.
#![forbid(unsafe_code)]
#![warn(missing_docs)]
// What a peer says is no reason to panic.
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

pub mod command;
pub mod fault;
mod inline;
pub mod limits;
pub mod reply;
pub mod request;
mod span;
