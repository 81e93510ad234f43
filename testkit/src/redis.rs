//! Redis: its tools and server as Debian has them, and a client that shows what is sent.

mod client;
mod tools;

pub use client::{RespClient, RespValue};
pub use tools::{RedisServer, RedisTools};
