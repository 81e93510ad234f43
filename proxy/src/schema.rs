//! A server's schema: read as a whole into a [`Snapshot`], and what follows from it.
//!
//! `take` and `inspect` ask the server and change nothing; `diagnose`, `facts`, `counting`, `highest_ids` and `obstacles` look at the
//! snapshot alone; `apply_fence` is what changes a server.

mod column_type;
mod counting;
mod diagnose;
mod elsewhere;
mod fence;
mod finding;
mod highest;
mod inspect;
mod key_column;
mod matched;
pub(crate) mod new_tables;
mod obstacles;
mod patterns;
mod quote;
mod replication;
mod rule_changes;
mod rules;
mod snapshot;
mod statistics;
mod take;
mod unshown;
mod views;

pub use column_type::ColumnType;
pub use counting::{Count, Counting, counting};
pub use diagnose::{diagnose, unmatched};
pub use elsewhere::elsewhere;
pub(crate) use fence::has_fence_by;
pub use fence::{FenceRecord, apply_fence, left_fences, unfenced};
pub use finding::{Finding, Severity};
pub use highest::{
    Highest, Origin, Unknown, highest_ids, highest_ids_of_new, highest_ids_of_unfenced,
    read_highest_ids, read_highest_ids_of_new,
};
pub use inspect::{Extent, inspect, replication};
pub use key_column::{KeyColumn, Partitions};
pub use matched::key_columns;
pub use new_tables::{Naming, NewTables};
pub use obstacles::{Obstacles, obstacles};
pub use patterns::may_share_tables;
pub use quote::{quoted, quoted_string};
pub use replication::{Filter, Replication, Source};
pub use rule_changes::{OfRule, TableRules, rules_of_tables};
pub use rules::{TableFacts, facts, listed, rules};
pub use snapshot::{
    Accounts, Column, Denied, ListedView, NativeIds, Privileges, Program, Reference, Server,
    Settings, Snapshot, StatementContext, Surroundings, SwitchContext, Table, Trigger, Unshown,
};
pub(crate) use statistics::forget_old_statistics;
pub use take::{ADMIN_SQL_MODE, Taken, connect, take, take_all};
pub use unshown::{TableAnswer, shown};
