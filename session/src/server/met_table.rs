//! How a table is told from others, over all servers.

use std::sync::Arc;

/// A table that no schema refresh has shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetTable {
    /// Its server, in the words of the store.
    pub server: Arc<[u8]>,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The column of its rule.
    pub column: String,
}
