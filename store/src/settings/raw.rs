//! Settings as they are written.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Where bounds are kept; any number of programs share it. Several are written as `[[store]]`, each with a `name`. SIGHUP takes `url` and
/// `password_file` where they lead to the same store.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawStoreSettings {
    /// What the store is called where there are several.
    pub name: String,
    /// The tags that it holds, as `shop.*`; `*` stands for any characters, `?` for one. A tag is in the first store that has a pattern for it, or else in
    /// the one store that has none, which also holds everything else: worker ids, the switch, users, the order.
    pub tags: Vec<String>,
    /// The buckets of readable ids that are leased there, as `0-127`, where `readable` keys come from several stores; while one does not answer the others give them. Divided with `keywright init`; no two stores may have one in common.
    pub readable_buckets: Option<String>,
    /// `mysql://user[:password]@host[:port]/schema`, or with `?socket=/path` for a UNIX socket; `postgres://user[:password]@host[:port]/database`; `etcd://[user[:password]@]host[:port],host[:port]/prefix`; `file:/path` for a file of this machine; or `redis://[user[:password]@]host[:port],host[:port]` (`rediss://` with TLS) for ranges out of a key port of another program.
    pub url: String,
    /// Let the store's file, and the file of kept ranges, be on any file system: also on tmpfs, overlayfs, FUSE or the network, where commits or locks may be lost.
    pub any_file_system: bool,
    /// A file of this machine in which a part of what is reserved is kept, so that the program has keys when it starts while its store does not answer. Without it such a program starts, and gives none of tags before the store answers. The file also says how far tags had come: a store that says less has gone back, and gives none before `keywright advance`.
    pub kept_ranges_file: Option<PathBuf>,
    /// Let `redis://` be a Redis and no key port: its restarts and failovers suspend tags until `keywright advance`.
    pub accept_loss_on_failover: bool,
    /// A file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// The name of the environment variable that holds the password.
    pub password_env: Option<String>,
    /// Whose table the tags are in: `keywright`, `leaf`, `id_generator` or `tinyid`.
    pub dialect: String,
    /// The table, if it has not the name that is usual in its dialect.
    pub segment_table: Option<String>,
    /// TLS to the store: `disabled` or `required`.
    pub tls: String,
    /// Certificates that the store's is checked with, PEM; without it the web's usual ones.
    pub tls_ca_file: Option<PathBuf>,
    /// The program's own certificate, where members of etcd ask for one, PEM.
    pub tls_cert_file: Option<PathBuf>,
    /// Its key, PEM.
    pub tls_key_file: Option<PathBuf>,
    /// Connections to the store at most.
    pub connections_max: u32,
    /// How long one transaction in the store may last, connecting included, milliseconds.
    pub store_ms_max: u64,
    /// How long a statement waits for a key, milliseconds.
    pub wait_ms_max: u64,
    /// Statements that wait for keys of one source at the same time at most.
    pub waiters_max: u32,
    /// The first pause after the store failed, milliseconds; doubles with each further failure.
    pub backoff_ms_min: u64,
    /// The longest pause, milliseconds.
    pub backoff_ms_max: u64,
    /// Refill when so many percent of a range are left. Keywright's own table says it for each tag.
    pub refill_percent: u32,
    /// Ids of a full range where no table says it, which is `redis://` only (1000 there); a tenth of it at first.
    pub step: Option<i64>,
    /// Largest step in tables of other systems; the smallest is the row's own.
    pub step_max: i64,
    /// How long a reservation should last in tables of other systems, milliseconds.
    pub cover_ms: u64,
    /// Most keys that one statement may ask for.
    pub range_ids_max: u64,
    /// Into how many groups slots are divided, 1 to 16: for each group another program can give keys of ordered tags. The same in all programs; the store
    /// records it, and programs that say otherwise give none.
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
    /// A preset's name, or a layout's fields.
    pub layout: String,
    /// Only this worker id will do; without it any free one is leased.
    pub worker_id: Option<i64>,
    /// The same, out of an environment variable of this name.
    pub worker_id_env: Option<String>,
    /// The same: the number that the host's name ends with, behind a dash, as in `shop-3`.
    pub worker_id_from_host: bool,
    /// Each start of a program takes a number of its own from this table of UidGenerator's, as its generators do beside it: `WORKER_NODE`, or
    /// `schema.WORKER_NODE`, on the server of the store. No number comes twice.
    pub worker_id_table: Option<String>,
    /// Worker ids that programs lease, as `256-511`; without it any, or none where one of the next two options says something. The store records
    /// all ranges when `keywright init` runs, and programs that say otherwise get none.
    pub leased_worker_ids: Option<String>,
    /// Worker ids that PostgreSQL databases lease whose snowflake ids are fed, as `896-1023`: several for each database, since each start of a
    /// server takes another one until the time that was handed over is past.
    pub fed_worker_ids: Option<String>,
    /// Worker ids that `keywright worker assign` gives to PostgreSQL databases for good, as `512-895`. Whatever is in none of the ranges is for
    /// `keywright.set_worker_id`.
    pub assigned_worker_ids: Option<String>,
    /// A lease that was not renewed for so long may be taken by others, milliseconds.
    pub lease_ms: u64,
    /// How far ahead of need the bound is made durable, milliseconds.
    pub bound_window_ms: u64,
    /// How far ids may run ahead of the clock, milliseconds.
    pub lead_ms_max: u64,
    /// Gap left when another server wrote the bound, milliseconds: more than replication lag and clock difference.
    pub skew_ms_max: u64,
    /// Largest step forward of the clock that ids follow, milliseconds.
    pub clock_jump_ms_max: u64,
    /// What becomes of snowflake keys while the clock reads earlier than it did: `carry` goes on from the last one, `wait` waits for the clock,
    /// `clock_wait_ms_max` at most, then refuses, `refuse` refuses at once, and `spare_worker` tells the clock's own time with the spare bit set, for
    /// which the layout has `spare=1`, but none from before the program's lease began: such keys may be smaller than those before. The clock is
    /// compared with what it read since the program began.
    pub clock_policy: String,
    /// Longest wait for the clock with `clock_policy = "wait"`, milliseconds. A clock that is further behind is refused at once.
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
