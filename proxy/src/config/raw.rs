//! The configuration file as it is written. The comments on fields are the configuration reference.

use keywright_session::Limits;
use keywright_store::{RawFeed, RawHiddenTag, RawSnowflakeSettings, RawStores};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::listener::RawListener;

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
    /// With `stride:TAG`: ids are this modulo `increment`.
    pub(super) offset: Option<i64>,
    /// With `stride:TAG`: the distance between ids.
    pub(super) increment: Option<i64>,
    /// A statement that brings its own key: `keep` the key, or `refuse` the statement (3105).
    #[serde(default = "keep")]
    pub(super) on_explicit: String,
    /// A statement that cannot be rewritten exactly: `refuse` it (1235), or `pass` it as it is.
    #[serde(default = "refuse")]
    pub(super) on_unsupported: String,
    /// Several rows with IGNORE or ON DUPLICATE KEY UPDATE, where the first new id may be unknown: report the `first` proposed, or
    /// `refuse` the statement.
    #[serde(default = "first")]
    pub(super) on_ambiguous_id: String,
    /// A statement with several rows, where the tag hides how many keys there are, so that the keys do not follow from the first: `refuse` it
    /// (1235), or `allow` it, where no client computes ids from LAST_INSERT_ID(). Default: `refuse`. It has no meaning for other keys.
    pub(super) on_several_rows: Option<String>,
    /// `rewrite` gives keys; `observe` changes nothing and counts what it would do. Change it and send SIGHUP, while applications write.
    #[serde(default = "rewrite")]
    pub(super) mode: String,
    /// While the rule gives keys, the server is kept from issuing ids of its own in this column (InnoDB only). With `false` whoever inserts
    /// past the proxy may repeat an id. Default: `true` where the rule's tables are switched, or the rule gives keys.
    pub(super) fence: Option<bool>,
    /// Keys have at most this many bits, 1 to 63; 53 where clients are written in JavaScript, whose numbers hold no more.
    #[serde(default = "bits")]
    pub(super) bits_max: u32,
    /// Whether the log tells which keys each statement gets, with the number of its connection. A line per statement: for tables with few
    /// INSERTs.
    #[serde(default)]
    pub(super) log_keys: bool,
}

/// Without this section nothing is served over HTTP.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMetrics {
    /// `address:port` or `unix:/path` where the status page, `/metrics`, `/healthz` and `/readyz` are served.
    pub(super) bind: String,
    /// Names of hosts, as `metrics.example.com`, that requests may name (`Host`) beside addresses and `localhost`; `["*"]`: any. Default: none
    /// where `bind` is a loopback address, so that no page in a browser reads there; elsewhere any.
    pub(super) host_names: Option<Vec<String>>,
}

/// Who may ask the program how it is.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawStatus {
    /// Users who get an answer to `SHOW KEYWRIGHT …`.
    pub(super) users: Vec<String>,
}

/// What is bounded, and by how much. Only `schema_refresh_s` and `switch_peer_wait_s` are taken by SIGHUP; the others take a new program (SIGUSR2).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLimits {
    /// Clients' connections at most, over all listeners that lead to servers; key ports have limits of their own.
    pub(super) connections_max: u64,
    /// Longest INSERT on a rule's table, and longest file of LOAD DATA LOCAL into one, bytes.
    pub(super) rewrite_bytes_max: usize,
    /// Memory for statements on rules' tables, their rewritten copies and clients' files while they are buffered, and for the texts of
    /// prepared ones while they are there, over all connections, bytes; at least four times `rewrite_bytes_max`.
    pub(super) memory_bytes_max: usize,
    /// Prepared statements on rules' tables, per connection.
    pub(super) statements_max: usize,
    /// Rows of one INSERT … SELECT or LOAD DATA. Its keys are tried for 64, 512, 4096, … rows, and more than `range_ids_max` are never
    /// reserved.
    pub(super) select_rows_max: u64,
    /// How long connecting to a server may take, its greeting included, milliseconds.
    pub(super) connect_ms_max: u64,
    /// How long it may take from the server's greeting to its OK, and at a key port until TLS stands and until the password has come, milliseconds.
    pub(super) login_ms_max: u64,
    /// How long a client may take for each packet of its login, milliseconds; less than the server's `connect_timeout`, which counts those
    /// that take longer.
    pub(super) answer_ms_max: u64,
    /// A client or server that was silent for so long is asked whether it is there (TCP keepalive), and given up after as long again,
    /// seconds; 0: never.
    pub(super) keepalive_s: u32,
    /// How long connections may go on after SIGTERM, milliseconds. Where a new program has taken over (SIGUSR2) they go on for so long
    /// before that begins.
    pub(super) drain_ms_max: u64,
    /// How long a new program may take, from SIGUSR2 until it serves clients, milliseconds. One that takes longer is given up, and killed
    /// if it does not end in 5 s; the one that runs goes on.
    pub(super) take_over_wait_ms_max: u64,
    /// How often the servers' tables, fences, triggers and views are looked at, seconds.
    pub(super) schema_refresh_s: u64,
    /// How long an attempt to switch tables over to keys, or back, may take, milliseconds. Statements on them wait meanwhile.
    pub(super) switch_wait_ms_max: u64,
    /// A program of which the store has heard nothing for so long holds no switch up, seconds.
    pub(super) switch_peer_wait_s: u64,
    /// How long users of key ports stay in force as they were known last while the store does not answer, seconds; after that nobody is
    /// given keys where there are users. 0: without end.
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
