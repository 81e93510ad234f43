//! Private MariaDB and MySQL servers.

pub(crate) mod client;
pub(crate) mod flavour;
pub(crate) mod named;
pub(crate) mod pki;
pub(crate) mod upstream;
