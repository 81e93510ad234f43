//! The proxy as users run it.

pub(crate) mod config;
pub(crate) mod process;
mod program;
mod users;
