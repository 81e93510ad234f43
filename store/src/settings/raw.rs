//! Settings as they are written.

use std::fmt;
use std::path::PathBuf;

use keywright_core::Step;
use keywright_core::slot::SLOT_GROUPS_MAX;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Where bounds are kept. Any number of programs share it. Write several stores as `[[store]]`, each with a `name`. SIGHUP applies `url` and
/// `password_file`, if they lead to the same store.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawStoreSettings {
    /// The name of the store, where there are several.
    pub name: String,
    /// The tags that the store holds, as patterns: `*` stands for any characters, `?` for one, as in `shop.*`. A tag is in the first store that has a
    /// pattern for it, or else in the one store without `tags`. That store also holds everything else: worker ids, the switch, users, the order.
    pub tags: Vec<String>,
    /// The buckets of readable ids that this store leases, as `0-127`, where `readable` keys come from several stores. While one store does not answer,
    /// the others issue keys. `keywright init` divides the buckets. No two stores may share one.
    pub readable_buckets: Option<String>,
    /// `mysql://user[:password]@host[:port]/schema`, or with `?socket=/path` for a UNIX socket; `postgres://user[:password]@host[:port]/database`; `etcd://[user[:password]@]host[:port],host[:port]/prefix`; `file:/path` for a file of this machine; or `redis://[user[:password]@]host[:port],host[:port]` (`rediss://` with TLS) for ranges out of a key port of another program. In user and password, write `/ : @ ? # %` as `%2F %3A %40 %3F %23 %25`.
    pub url: String,
    /// Allow any file system for the store's file and the file of kept ranges: also tmpfs, overlayfs, FUSE and the network, where commits or locks may be
    /// lost.
    pub any_file_system: bool,
    /// A file of this machine that keeps a part of the reserved ranges, so that the program has keys when it starts while its store does not answer.
    /// Without it such a program issues no keys of tags before the store answers. The file also says how far tags had come: a store that says less has gone back, and
    /// issues none before `keywright advance`.
    pub kept_ranges_file: Option<PathBuf>,
    /// Allow `redis://` to lead to a Redis instead of a key port. Its restarts and failovers suspend tags until `keywright advance`.
    pub accept_loss_on_failover: bool,
    /// A file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// The name of the environment variable that holds the password.
    pub password_env: Option<String>,
    /// Whose table the tags are in: `keywright`, `leaf`, `id_generator` or `tinyid`.
    pub dialect: String,
    /// The table, if it does not have the usual name of its dialect.
    pub segment_table: Option<String>,
    /// TLS to the store: `disabled` or `required`.
    pub tls: String,
    /// The authorities that may have signed the store's certificate, PEM. Default: the public ones.
    pub tls_ca_file: Option<PathBuf>,
    /// The program's own certificate, for members of etcd that ask for one, PEM.
    pub tls_cert_file: Option<PathBuf>,
    /// The key of that certificate, PEM.
    pub tls_key_file: Option<PathBuf>,
    /// Most connections to the store. Where there are several, reservations leave one to everything else: leases, looks, the switch.
    #[schemars(range(min = 1, max = 64))]
    pub connections_max: u32,
    /// The longest time of one transaction in the store, with connecting, milliseconds.
    #[schemars(range(min = 10, max = 3_600_000))]
    pub store_ms_max: u64,
    /// The longest time that a statement waits for a key, milliseconds.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub wait_ms_max: u64,
    /// Most statements that wait for keys of one source at the same time.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub waiters_max: u32,
    /// The first pause after the store failed, milliseconds. It doubles with each further failure.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub backoff_ms_min: u64,
    /// The longest pause, milliseconds.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub backoff_ms_max: u64,
    /// Refill when this percentage of a range is left. Keywright's own table has a value for each tag.
    #[schemars(range(min = 1, max = 99))]
    pub refill_percent: u32,
    /// Ids of a full range, for `redis://` only (default there: 1000). The first range is a tenth of it. Elsewhere the table has the step.
    #[schemars(range(min = 1, max = Step::MAX))]
    pub step: Option<i64>,
    /// Largest step in tables of other systems. The smallest is the row's own; a program's first reservation takes a tenth of it.
    #[schemars(range(min = 1, max = Step::MAX))]
    pub step_max: i64,
    /// How long a reservation should last in tables of other systems, milliseconds.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub cover_ms: u64,
    /// Most keys of one statement.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub range_ids_max: u64,
    /// The number of groups into which slots are divided, 1 to 16. For each group another program can issue keys of ordered tags. It must be the same in
    /// all programs. The store records it, and a program with another number issues no ordered keys.
    #[schemars(range(min = 1, max = SLOT_GROUPS_MAX))]
    pub slot_groups: u32,
}

impl Default for RawStoreSettings {
    fn default() -> Self {
        Self {
            name: String::new(),
            tags: Vec::new(),
            readable_buckets: None,
            url: String::new(),
            any_file_system: false,
            kept_ranges_file: None,
            accept_loss_on_failover: false,
            password_file: None,
            password_env: None,
            dialect: "keywright".to_owned(),
            segment_table: None,
            tls: "disabled".to_owned(),
            tls_ca_file: None,
            tls_cert_file: None,
            tls_key_file: None,
            connections_max: 4,
            store_ms_max: 2_000,
            wait_ms_max: 2_000,
            waiters_max: 10_000,
            backoff_ms_min: 50,
            backoff_ms_max: 5_000,
            refill_percent: 50,
            step: None,
            step_max: 1_000_000,
            cover_ms: 900_000,
            range_ids_max: 1_000_000,
            slot_groups: 1,
        }
    }
}

/// Snowflake and readable keys.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawSnowflakeSettings {
    /// A preset's name, or a layout's fields. The epoch must be in the past.
    pub layout: String,
    /// Lease only this worker id. Default: any free one.
    #[schemars(range(min = 0))]
    pub worker_id: Option<i64>,
    /// Lease only the worker id in the environment variable of this name.
    pub worker_id_env: Option<String>,
    /// Lease only the worker id at the end of the host's name, after a dash: 3 on `shop-3`.
    pub worker_id_from_host: bool,
    /// Each start of a program takes a new number from this table of UidGenerator's, beside its generators: `WORKER_NODE`, or `schema.WORKER_NODE`, on the
    /// store's server. No number comes twice.
    pub worker_id_table: Option<String>,
    /// Worker ids that programs lease, as `256-511`. Default: any, or none if one of the next two options is set. `keywright init` records all ranges in
    /// the store, and a program with other ranges gets no worker id.
    pub leased_worker_ids: Option<String>,
    /// Worker ids for PostgreSQL databases whose snowflake ids are fed, as `896-1023`. Reserve several for each database: a restarted server takes
    /// another one, until the time that was handed over has passed.
    pub fed_worker_ids: Option<String>,
    /// Worker ids that `keywright worker assign` gives to PostgreSQL databases for good, as `512-895`. Numbers in none of the ranges are for
    /// `keywright.set_worker_id`.
    pub assigned_worker_ids: Option<String>,
    /// Other programs may take a lease that was not renewed for so long, milliseconds.
    #[schemars(range(min = 1_000, max = 3_600_000))]
    pub lease_ms: u64,
    /// How far ahead of need the bound is made durable, milliseconds.
    #[schemars(range(min = 100, max = 600_000))]
    pub bound_window_ms: u64,
    /// How far ids may run ahead of the clock, milliseconds.
    #[schemars(range(min = 100, max = 3_600_000))]
    pub lead_ms_max: u64,
    /// Gap left when another server wrote the bound, milliseconds: more than replication lag and clock difference.
    #[schemars(range(min = 0, max = 86_400_000))]
    pub skew_ms_max: u64,
    /// Largest step forward of the clock that ids follow, milliseconds.
    #[schemars(range(min = 1_000, max = 86_400_000))]
    pub clock_jump_ms_max: u64,
    /// Snowflake keys while the clock reads earlier than before, since the program started. `carry`: go on from the last one. `wait`: wait for the clock,
    /// `clock_wait_ms_max` at most, then refuse. `refuse`: refuse at once. `spare_worker`: use the clock's time with the spare bit set, but no time from
    /// before the program's lease began. Such keys may be smaller than earlier ones. The layout needs `spare=1`.
    pub clock_policy: String,
    /// Longest wait for the clock with `clock_policy = "wait"`, milliseconds. A clock that is further behind is refused at once.
    #[schemars(range(min = 0, max = 3_600_000))]
    pub clock_wait_ms_max: u64,
}

impl Default for RawSnowflakeSettings {
    fn default() -> Self {
        Self {
            layout: "twitter".to_owned(),
            worker_id: None,
            worker_id_env: None,
            worker_id_from_host: false,
            worker_id_table: None,
            leased_worker_ids: None,
            fed_worker_ids: None,
            assigned_worker_ids: None,
            lease_ms: 30_000,
            bound_window_ms: 5_000,
            lead_ms_max: 10_000,
            skew_ms_max: 10_000,
            clock_jump_ms_max: 600_000,
            clock_policy: "carry".to_owned(),
            clock_wait_ms_max: 1_000,
        }
    }
}

/// One store, or several: `[store]`, or `[[store]]` for each.
#[derive(Clone, JsonSchema)]
#[schemars(transparent)]
pub struct RawStores(pub Vec<RawStoreSettings>);

impl<'de> Deserialize<'de> for RawStores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;

        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = RawStores;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("[store], or [[store]] for each of several")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawStores, A::Error> {
                let one = RawStoreSettings::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawStores(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<RawStores, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(RawStores)
            }
        }

        deserializer.deserialize_any(OneOrSeveral)
    }
}
