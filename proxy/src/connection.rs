//! One connection: how it is accepted ([`acceptor`]; `accept_failures`: or not), both sockets ([`relay`], [`stream`]), what is read and not passed on yet, its
//! memory, how it ends, and what its log lines carry.

pub(crate) mod accept_failures;
pub mod acceptor;
pub mod buffers;
pub(crate) mod changes;
pub(crate) mod input;
pub(crate) mod keepalive;
pub(crate) mod leaving;
pub(crate) mod linger;
pub mod memory;
pub(crate) mod origin;
pub(crate) mod refusal;
pub mod relay;
pub(crate) mod side;
pub(crate) mod slot;
pub mod span;
pub(crate) mod stopping;
pub mod stream;
