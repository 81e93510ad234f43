//! Servers of one flavour by name.

use std::ops::{Deref, DerefMut};

use crate::{Flavour, Result, Upstream};

/// A private MariaDB server; see [`Upstream`].
#[derive(Debug)]
pub struct MariaServer(Upstream);

impl MariaServer {
    /// Initialises a data directory and starts a server on it.
    ///
    /// # Errors
    /// MariaDB is missing or does not start; the error shows its log.
    pub fn start() -> Result<MariaServer> {
        Upstream::start(Flavour::MariaDb).map(MariaServer)
    }
}

impl Deref for MariaServer {
    type Target = Upstream;

    fn deref(&self) -> &Upstream {
        &self.0
    }
}

impl DerefMut for MariaServer {
    fn deref_mut(&mut self) -> &mut Upstream {
        &mut self.0
    }
}

/// A private MySQL server; see [`Upstream`].
#[derive(Debug)]
pub struct MySqlServer(Upstream);

impl MySqlServer {
    /// Initialises a data directory and starts a server on it; the server's packages are fetched when they are not below
    /// `target/` yet.
    ///
    /// # Errors
    /// MySQL cannot be fetched or does not start; the error shows why.
    pub fn start() -> Result<MySqlServer> {
        Upstream::start(Flavour::MySql).map(MySqlServer)
    }
}

impl Deref for MySqlServer {
    type Target = Upstream;

    fn deref(&self) -> &Upstream {
        &self.0
    }
}

impl DerefMut for MySqlServer {
    fn deref_mut(&mut self) -> &mut Upstream {
        &mut self.0
    }
}
