//! An Oracle MySQL server by name.

use std::ops::{Deref, DerefMut};

use crate::{Flavour, Result, Upstream};

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
