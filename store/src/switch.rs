//! The switch: how tables go over to keys, to another tag, and back to native auto-increment, while programs run.
//!
//! It is a barrier that the store holds, so that any program can finish what another began ([`Phase`]). The argument that no id
//! comes twice, whichever program pauses, dies or hears late (`tests/switch_model` checks all orders):
//! 1. Under a table's lock its counter is read, recorded if the attempt still stands, and fenced. After that the server makes no
//!    id there, so the highest recorded counter is above all that it ever made.
//! 2. One transaction that finds the attempt as it should be raises the tag's bound above that, and its generation. Ranges that
//!    were reserved before are of an older generation, and are taken by nobody any more. Snowflake ids have one generation for all
//!    leases, and a moment at which they begin; each lease begins above its own bound too, so that of other leases, which lie ahead of the
//!    clock while somebody issues, nothing is asked.
//! 3. An attempt that is given up is ended in the store first. Its sessions are killed, and its fences are lifted under the lock
//!    by whoever is then told by the store that it is still being ended.
//! 4. A table that comes later, whose counter says that its own ids may be among those that were reserved, gets its fence behind a new
//!    generation, under its lock: programs drop what they have, each when it hears of it. The same transaction records by which rule the table has its
//!    fence ([`FencedTable`]), and so does the one that makes a switch. A fence of which nothing is recorded was brought by its table: that is treated
//!    like a table without fence, by its highest row.
//! 5. Back to native, the tag's generation is raised in the transaction that reads its bound, and counters go on from there.
//! 6. What looks like a fence may be the end of a native counter. So tables whose fence was lifted, or that were seen without one, are recorded, and nobody
//!    lifts anything there, until the transaction of 1. or 4. says that they are to be fenced again.

mod board;
pub(crate) mod commit;
mod decide;
pub(crate) mod fenced;
#[cfg(test)]
mod fixture;
mod given_up;
pub(crate) mod reached;
pub(crate) mod space;
pub(crate) mod state;

pub use crate::store::switch_commit::Committed;
pub use board::Switchboard;
pub use commit::{Bound, CommitRefusal, SnowflakeStart, bound_after, floor_after};
pub use decide::{Next, Participant, decide, missing};
pub use fenced::{FencedTable, Origin, keys_in_force, origin};
pub use given_up::why_given_up;
pub use reached::Reached;
pub use space::KeySpace;
pub use state::{
    Change, Dropped, IdSpan, InForce, LateTable, NativeInserts, Peer, PeerReport, PeerReports,
    Phase, Recorded, RuleName, Standing, TableName, Unseen, WantedKeys,
};
