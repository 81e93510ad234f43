//! What an engine tells of the store that it is connected to.

/// What a store says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ServerFacts {
    /// Different for stores with data of their own: another one after a failover, the same after a restart.
    pub(crate) identity: String,
    /// Why a commit that was acknowledged can be lost.
    pub(crate) weaknesses: Vec<String>,
    /// It is one of a group, in which each commit is with all before it is acknowledged: a Galera cluster, group replication.
    pub(crate) is_in_group: bool,
}
