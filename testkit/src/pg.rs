//! Private PostgreSQL servers: an installation with the extension under test in it, servers on it, and clients.

pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod extension;
pub(crate) mod install;
pub(crate) mod pending;
pub(crate) mod server;
pub(crate) mod shared;
pub(crate) mod suite;
pub(crate) mod version;
mod wheel;
