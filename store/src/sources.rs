//! What keys come from: ranges of tags, states of leased worker ids, and UUIDs; how those who take and the task that refills meet.
pub(crate) mod buckets;
pub(crate) mod demand;
mod left;
pub(crate) mod ordered;
pub(crate) mod segment;
pub(crate) mod source;
pub(crate) mod stats;
pub(crate) mod time;
pub(crate) mod uuids;
