//! What an engine tells of the store that it is connected to.

/// What a store says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerFacts {
    /// Different for stores with data of their own: another one after a failover, the same after a restart.
    pub(crate) identity: String,
    /// Why a commit that was acknowledged can be lost.
    pub(crate) weaknesses: Vec<String>,
    /// It is one of a Galera cluster: all servers of it may be written to, and one that comes back takes over what the others have.
    pub(crate) is_in_group: bool,
}
