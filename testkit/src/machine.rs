//! What a harness wants of the machine: accounts, processes, ports, directories, packages, cargo, and time.

pub(crate) mod account;
pub(crate) mod apt;
pub(crate) mod cargo;
pub(crate) mod flood;
pub(crate) mod kept;
pub(crate) mod ports;
pub(crate) mod process;
pub(crate) mod relay;
pub(crate) mod running;
pub(crate) mod scratch;
pub(crate) mod text;
pub(crate) mod wait;
