//! The configuration file as it is written. The comments on fields are the configuration reference.

use keywright_core::residue::Residue;
use keywright_session::Limits;
use keywright_store::{RawFeed, RawHiddenTag, RawSnowflakeSettings, RawStores};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::listener::RawListener;
use crate::connection::keepalive::KEEPALIVE_S_MAX;

/// Smallest `rewrite_bytes_max`, bytes: servers take no smaller `max_allowed_packet` either.
pub(super) const REWRITE_BYTES_MIN: usize = 1_024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) store: RawStores,
    #[serde(default)]
    pub(super) snowflake: RawSnowflakeSettings,
    #[serde(default)]
    pub(super) listener: Vec<RawListener>,
    #[serde(default)]
    pub(super) rule: Vec<RawRule>,
    #[serde(default)]
    pub(super) hidden_tag: Vec<RawHiddenTag>,
    #[serde(default)]
    pub(super) feed: Vec<RawFeed>,
    #[serde(default)]
    pub(super) limits: RawLimits,
    pub(super) metrics: Option<RawMetrics>,
    #[serde(default)]
    pub(super) status: RawStatus,
}

/// A column that gets keys. The first rule that matches a table is the table's.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    /// The tables, as `SCHEMA.TABLE`; `*` in either stands for any characters, `?` for one.
    pub(super) table: String,
    /// The key column, in ASCII.
    pub(super) column: String,
    /// Where keys come from: `segment:TAG`, `snowflake`, `stride:TAG`, `uuid_v1`, `uuid_v4` or `uuid_v7` (each with `:text36`, `:text32` or
    /// `:bytes16`), `readable:BIZ`.
    pub(super) key: String,
    /// With `stride:TAG`: the remainder of ids when divided by `increment`.
    #[schemars(range(min = 1, max = Residue::MODULUS_MAX))]
    pub(super) offset: Option<i64>,
    /// With `stride:TAG`: the distance between ids.
    #[schemars(range(min = 1, max = Residue::MODULUS_MAX))]
    pub(super) increment: Option<i64>,
    /// A statement that brings its own key: `keep` the key, or `refuse` the statement (3105).
    #[serde(default = "keep")]
    pub(super) on_explicit: String,
    /// A statement that cannot be rewritten exactly: `refuse` it (1235), or `pass` it as it is.
    #[serde(default = "refuse")]
    pub(super) on_unsupported: String,
    /// Several rows with IGNORE or ON DUPLICATE KEY UPDATE, where the first new id may be unknown: report the `first` proposed id, or `refuse` the
    /// statement.
    #[serde(default = "first")]
    pub(super) on_ambiguous_id: String,
    /// A statement with several rows, where the tag hides how many keys there are: `refuse` it (1235), or `allow` it. Allow it only where no client
    /// computes ids from LAST_INSERT_ID(), because such keys do not follow from the first. Default: `refuse`. It has no meaning for other keys.
    pub(super) on_several_rows: Option<String>,
    /// `rewrite` gives keys. `observe` changes nothing, and counts what it would do. To change it while applications write, send SIGHUP.
    #[serde(default = "rewrite")]
    pub(super) mode: String,
    /// While the rule gives keys, the server is kept from issuing ids of its own in this column (InnoDB only). With `false` whoever inserts
    /// past the program may repeat an id. Default: `true` where the rule's tables are switched, or the rule gives keys.
    pub(super) fence: Option<bool>,
    /// Keys have at most this many bits, 1 to 63; 53 where clients are written in JavaScript, whose numbers hold no more.
    #[serde(default = "bits")]
    #[schemars(range(min = 1, max = 63))]
    pub(super) bits_max: u32,
    /// Whether the program logs the keys of each statement, with the number of its connection. That is a line per statement: use it for tables with few
    /// INSERTs.
    #[serde(default)]
    pub(super) log_keys: bool,
}

/// The metrics listener. Without this section there is none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMetrics {
    /// `address:port` or `unix:/path` where the status page, `/metrics`, `/healthz` and `/readyz` are served.
    pub(super) bind: String,
    /// Names of hosts, as `metrics.example.com`, that requests may name in `Host`, besides addresses and `localhost`; `["*"]`: any. Default: none
    /// where `bind` is a loopback address, so that no page in a browser can read there; any elsewhere.
    pub(super) host_names: Option<Vec<String>>,
}

/// Who may ask the program for its state by `SHOW KEYWRIGHT …`.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawStatus {
    /// Users who get an answer to `SHOW KEYWRIGHT …`.
    pub(super) users: Vec<String>,
}

/// Limits. SIGHUP applies only `schema_refresh_s` and `switch_peer_wait_s`. The others take a new program (SIGUSR2).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLimits {
    /// Most connections of clients, over all listeners that lead to servers. Key ports have limits of their own.
    #[schemars(range(min = 1))]
    pub(super) connections_max: u64,
    /// Longest INSERT on a rule's table, and longest file of LOAD DATA LOCAL into one, bytes.
    #[schemars(range(min = REWRITE_BYTES_MIN))]
    pub(super) rewrite_bytes_max: usize,
    /// Memory over all connections, bytes: for buffered statements on rules' tables, their rewritten copies, clients' files, the texts of prepared
    /// statements, and long answers of key ports. At least four times `rewrite_bytes_max`.
    #[schemars(range(min = 4 * REWRITE_BYTES_MIN))]
    pub(super) memory_bytes_max: usize,
    /// Prepared statements on rules' tables, per connection.
    #[schemars(range(min = 1))]
    pub(super) statements_max: usize,
    /// Rows of one INSERT … SELECT or LOAD DATA. Its keys are tried for 64, 512, 4096, … rows, and more than `range_ids_max` are never
    /// reserved.
    #[schemars(range(min = 1))]
    pub(super) select_rows_max: u64,
    /// How long connecting to a server may take, its greeting included, milliseconds.
    #[schemars(range(min = 1))]
    pub(super) connect_ms_max: u64,
    /// The longest time of a login, milliseconds: from the server's greeting to its OK; at a key port until TLS stands, and until the password has come.
    #[schemars(range(min = 1))]
    pub(super) login_ms_max: u64,
    /// The longest time that a client may take for each packet of its login, milliseconds. Keep it below the server's `connect_timeout`: the server
    /// counts clients that take longer, and blocks the program's address in the end.
    #[schemars(range(min = 1))]
    pub(super) answer_ms_max: u64,
    /// The program probes a client or server that was silent for so long (TCP keepalive), and gives it up after as long again, seconds. 0: never.
    #[schemars(range(min = 0, max = KEEPALIVE_S_MAX))]
    pub(super) keepalive_s: u32,
    /// How long connections may go on after SIGTERM, milliseconds. After a take-over (SIGUSR2) they first go on for the same time without being asked to
    /// end.
    pub(super) drain_ms_max: u64,
    /// How long a new program may take from SIGUSR2 until it serves clients, milliseconds. The old program gives up a slower one, kills it if it does not
    /// end within 5 s, and goes on.
    #[schemars(range(min = 1))]
    pub(super) take_over_wait_ms_max: u64,
    /// How often the program reads the servers' tables, fences, triggers and views, seconds: the schema refresh.
    #[schemars(range(min = 1))]
    pub(super) schema_refresh_s: u64,
    /// The longest time of an attempt to switch tables over to keys, or back, milliseconds. Statements on them wait meanwhile.
    #[schemars(range(min = 1))]
    pub(super) switch_wait_ms_max: u64,
    /// A switch does not wait for a program that the store has not heard of for so long, seconds.
    #[schemars(range(min = 1))]
    pub(super) switch_peer_wait_s: u64,
    /// How long the last known users of key ports stay in force while the store does not answer, seconds. After that, key ports with users issue nothing.
    /// 0: without end.
    pub(super) users_stale_s_max: u64,
}

impl Default for RawLimits {
    fn default() -> Self {
        let session = Limits::default();
        Self {
            connections_max: 10_000,
            rewrite_bytes_max: session.rewrite_bytes_max,
            memory_bytes_max: 1 << 30,
            statements_max: session.statements_max,
            select_rows_max: session.select_rows_max,
            connect_ms_max: 5_000,
            login_ms_max: 60_000,
            answer_ms_max: 8_000,
            keepalive_s: 60,
            drain_ms_max: 30_000,
            take_over_wait_ms_max: 600_000,
            schema_refresh_s: 60,
            switch_wait_ms_max: 3_000,
            switch_peer_wait_s: 60,
            users_stale_s_max: 3_600,
        }
    }
}

fn keep() -> String {
    "keep".to_owned()
}

fn refuse() -> String {
    "refuse".to_owned()
}

fn first() -> String {
    "first".to_owned()
}

fn rewrite() -> String {
    "rewrite".to_owned()
}

fn bits() -> u32 {
    63
}
