//! The store's tables, as they must be.

use crate::engine::privileges::{Needed, Privilege};
use crate::engine::words::Words;

/// Columns by table, with MySQL's data types; the first ones are the primary key.
pub(super) struct Shape {
    pub(super) table: &'static str,
    pub(super) key_columns: usize,
    columns: &'static [(&'static str, &'static str)],
}

/// Kept by MySQL itself.
const UPDATED_AT: &str = "updated_at";

impl Shape {
    /// As an engine has them: elsewhere than in MySQL moments are numbers, and all texts alike.
    pub(super) fn columns(
        &self,
        words: Words,
    ) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = self.columns.iter().copied();
        all.filter_map(move |(name, data_type)| match (words, data_type) {
            (Words::MySql, _) => Some((name, data_type)),
            (Words::Postgres | Words::Sqlite, _) if name == UPDATED_AT => None,
            (Words::Postgres | Words::Sqlite, "varchar" | "text") => Some((name, "text")),
            (Words::Postgres, _) => Some((name, "bigint")),
            (Words::Sqlite, _) => Some((name, "integer")),
        })
    }

    /// What the account needs there.
    pub(super) fn needed(&self) -> Option<Needed<'_>> {
        let (column, _) = self.columns.first()?;
        Some(Needed {
            table: self.table,
            column,
            privileges: &Privilege::ALL,
        })
    }
}

pub(super) const SEGMENT: Shape = Shape {
    table: "keywright_segment",
    key_columns: 1,
    columns: &[
        ("tag", "varchar"),
        ("hi", "bigint"),
        ("id_max", "bigint"),
        ("step", "bigint"),
        ("step_min", "bigint"),
        ("step_max", "bigint"),
        ("cover_s", "bigint"),
        ("refill_percent", "bigint"),
        ("description", "varchar"),
        ("server", "varchar"),
        ("reserved_ids", "bigint"),
        ("reserved_ms", "bigint"),
        ("rate_per_s", "bigint"),
        ("generation", "bigint"),
        ("first_id", "bigint"),
        ("key_space_id", "varchar"),
        ("dropped_ms", "bigint"),
        ("issue_order", "varchar"),
        ("start_id", "bigint"),
        ("heir", "varchar"),
        ("closed_in", "varchar"),
        ("hide_bits", "bigint"),
        ("hide_fingerprint", "varchar"),
        (UPDATED_AT, "timestamp"),
    ],
};

pub(super) const WORKER: Shape = Shape {
    table: "keywright_worker",
    key_columns: 2,
    columns: &[
        ("space", "varchar"),
        ("worker_id", "bigint"),
        ("owner", "varchar"),
        ("holder", "varchar"),
        ("epoch", "bigint"),
        ("hi_ms", "bigint"),
        ("layout", "varchar"),
        ("server", "varchar"),
        ("expires_at", "datetime"),
    ],
};

pub(super) const RETURNED: Shape = Shape {
    table: "keywright_returned",
    key_columns: 1,
    columns: &[
        ("id", "bigint"),
        ("segment_table", "varchar"),
        ("tag", "varchar"),
        ("start_id", "bigint"),
        ("end_id", "bigint"),
        ("generation", "bigint"),
        ("server", "varchar"),
        ("returned_at", "timestamp"),
    ],
};

pub(super) const RETURNED_FLOOR: Shape = Shape {
    table: "keywright_returned_floor",
    key_columns: 2,
    columns: &[
        ("segment_table", "varchar"),
        ("tag", "varchar"),
        ("first_id", "bigint"),
    ],
};

const FORMER_SERVER: Shape = Shape {
    table: "keywright_former_server",
    key_columns: 2,
    columns: &[
        ("server", "varchar"),
        ("newest_ms", "bigint"),
        ("left_ms", "bigint"),
    ],
};

const SWITCH: Shape = Shape {
    table: "keywright_switch",
    key_columns: 1,
    columns: &[
        ("id", "bigint"),
        ("attempt", "bigint"),
        ("phase", "varchar"),
        ("leader", "varchar"),
        ("begun_at", "datetime"),
        ("snowflake_generation", "bigint"),
        ("snowflake_floor_ms", "bigint"),
        ("snowflake_first", "bigint"),
        ("readable_floor_ms", "bigint"),
    ],
};

const RULE: Shape = Shape {
    table: "keywright_rule",
    key_columns: 2,
    columns: &[
        ("table_pattern", "varchar"),
        ("column_name", "varchar"),
        ("key_space", "varchar"),
        ("attempt", "bigint"),
        ("next_key_space", "varchar"),
        ("above", "bigint"),
    ],
};

const RULE_SERVER: Shape = Shape {
    table: "keywright_rule_server",
    key_columns: 3,
    columns: &[
        ("table_pattern", "varchar"),
        ("column_name", "varchar"),
        ("server", "varchar"),
    ],
};

const SWITCH_TABLE: Shape = Shape {
    table: "keywright_switch_table",
    key_columns: 3,
    columns: &[
        ("server", "varchar"),
        ("schema_name", "varchar"),
        ("table_name", "varchar"),
        ("attempt", "bigint"),
        ("counter", "bigint"),
        ("was_fenced", "bigint"),
    ],
};

const FENCED: Shape = Shape {
    table: "keywright_fenced",
    key_columns: 3,
    columns: &[
        ("server", "varchar"),
        ("schema_name", "varchar"),
        ("table_name", "varchar"),
        ("table_pattern", "varchar"),
        ("column_name", "varchar"),
        ("key_space", "varchar"),
    ],
};

const LIFTED: Shape = Shape {
    table: "keywright_lifted",
    key_columns: 3,
    columns: &[
        ("server", "varchar"),
        ("schema_name", "varchar"),
        ("table_name", "varchar"),
    ],
};

const PROGRAM: Shape = Shape {
    table: "keywright_program",
    key_columns: 1,
    columns: &[
        ("program", "varchar"),
        ("holder", "varchar"),
        ("seen_at", "datetime"),
        ("held", "bigint"),
    ],
};

const WANTED: Shape = Shape {
    table: "keywright_wanted",
    key_columns: 3,
    columns: &[
        ("place", "varchar"),
        ("table_pattern", "varchar"),
        ("column_name", "varchar"),
        ("key_space", "varchar"),
    ],
};

pub(super) const NATIVE: Shape = Shape {
    table: "keywright_native",
    key_columns: 3,
    columns: &[
        ("program", "varchar"),
        ("table_pattern", "varchar"),
        ("column_name", "varchar"),
        ("ids", "bigint"),
        ("unknown", "bigint"),
        ("noted_at", "datetime"),
    ],
};

const UNSEEN: Shape = Shape {
    table: "keywright_unseen",
    key_columns: 3,
    columns: &[
        ("program", "varchar"),
        ("table_pattern", "varchar"),
        ("column_name", "varchar"),
        ("ids", "bigint"),
        ("report", "text"),
        ("noted_at", "datetime"),
    ],
};

const LATE: Shape = Shape {
    table: "keywright_late",
    key_columns: 3,
    columns: &[
        ("server", "varchar"),
        ("schema_name", "varchar"),
        ("table_name", "varchar"),
        ("report", "text"),
        ("noted_at", "datetime"),
    ],
};

pub(super) const WORKER_IDS: Shape = Shape {
    table: "keywright_worker_ids",
    key_columns: 1,
    columns: &[
        ("id", "bigint"),
        ("leased", "varchar"),
        ("fed", "varchar"),
        ("assigned", "varchar"),
        ("layout", "varchar"),
        ("next_id", "bigint"),
        ("is_restored", "bigint"),
        ("key_space_id", "varchar"),
        ("unknown_ms", "bigint"),
        ("unknown_server", "varchar"),
        ("ahead_ms", "bigint"),
    ],
};

const ASSIGNED: Shape = Shape {
    table: "keywright_assigned",
    key_columns: 1,
    columns: &[
        ("worker_id", "bigint"),
        ("state", "varchar"),
        ("mark", "varchar"),
        ("next_mark", "varchar"),
        ("asks", "bigint"),
        ("is_used", "bigint"),
        ("bound_ms", "bigint"),
        ("system_id", "varchar"),
        ("database_oid", "bigint"),
        ("place", "varchar"),
        ("assigned_at_ms", "bigint"),
        ("asked_at_ms", "bigint"),
        ("released_at_ms", "bigint"),
        ("is_restored", "bigint"),
        ("report", "varchar"),
    ],
};

pub(super) const USER: Shape = Shape {
    table: "keywright_user",
    key_columns: 1,
    columns: &[
        ("name", "varchar"),
        ("password", "varchar"),
        ("changed_at_ms", "bigint"),
    ],
};

pub(super) const USER_GRANT: Shape = Shape {
    table: "keywright_user_grant",
    key_columns: 2,
    columns: &[
        ("user_name", "varchar"),
        ("name_pattern", "varchar"),
        ("rights", "varchar"),
    ],
};

pub(super) const USER_VERSION: Shape = Shape {
    table: "keywright_user_version",
    key_columns: 1,
    columns: &[("id", "bigint"), ("version", "varchar")],
};

pub(super) const ORDER_LEASE: Shape = Shape {
    table: "keywright_order_lease",
    key_columns: 1,
    columns: &[
        ("id", "bigint"),
        ("owner", "varchar"),
        ("holder", "varchar"),
        ("address", "varchar"),
        ("epoch", "bigint"),
        ("renewal", "bigint"),
        ("ttl_ms", "bigint"),
    ],
};

pub(super) const ORDER_NODE: Shape = Shape {
    table: "keywright_order_node",
    key_columns: 1,
    columns: &[
        ("program", "varchar"),
        ("holder", "varchar"),
        ("address", "varchar"),
        ("seen_at", "datetime"),
    ],
};

pub(super) const BUCKET: Shape = Shape {
    table: "keywright_bucket",
    key_columns: 1,
    columns: &[
        ("store", "varchar"),
        ("name", "varchar"),
        ("store_id", "varchar"),
        ("giver", "varchar"),
        ("buckets", "varchar"),
        ("is_open", "bigint"),
        ("is_restored", "bigint"),
        ("version", "bigint"),
    ],
};

/// All of them; the first is not used where tags are another system's.
const MOVED: Shape = Shape {
    table: "keywright_moved",
    key_columns: 3,
    columns: &[
        ("tag", "varchar"),
        ("system_id", "varchar"),
        ("database_oid", "bigint"),
        ("move_number", "bigint"),
        ("place", "varchar"),
        ("moved_at_ms", "bigint"),
    ],
};

pub(super) const SHAPES: [&Shape; 25] = [
    &SEGMENT,
    &WORKER,
    &RETURNED,
    &RETURNED_FLOOR,
    &FORMER_SERVER,
    &SWITCH,
    &RULE,
    &RULE_SERVER,
    &SWITCH_TABLE,
    &FENCED,
    &LIFTED,
    &PROGRAM,
    &WANTED,
    &NATIVE,
    &UNSEEN,
    &LATE,
    &WORKER_IDS,
    &ASSIGNED,
    &USER,
    &USER_GRANT,
    &USER_VERSION,
    &ORDER_LEASE,
    &ORDER_NODE,
    &MOVED,
    &BUCKET,
];

/// The store's own tables, in whatever schema.
pub const OWN_TABLES: [&str; 25] = [
    SEGMENT.table,
    WORKER.table,
    RETURNED.table,
    RETURNED_FLOOR.table,
    FORMER_SERVER.table,
    SWITCH.table,
    RULE.table,
    RULE_SERVER.table,
    SWITCH_TABLE.table,
    FENCED.table,
    LIFTED.table,
    PROGRAM.table,
    WANTED.table,
    NATIVE.table,
    UNSEEN.table,
    LATE.table,
    WORKER_IDS.table,
    ASSIGNED.table,
    USER.table,
    USER_GRANT.table,
    USER_VERSION.table,
    ORDER_LEASE.table,
    ORDER_NODE.table,
    MOVED.table,
    BUCKET.table,
];
