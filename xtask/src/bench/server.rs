//! The server that is measured, and whom it is measured on.

use anyhow::Result;
use keywright_testkit::PgServer;
use postgres::Client;

use super::sizes::Sizes;

/// How the server differs from a default one. The rest of the benchmark's private server: fsync is on.
const SETTINGS: &[(&str, &str)] = &[
    ("synchronous_commit", "on"),
    // One backend is one figure.
    ("max_parallel_workers_per_gather", "0"),
    // Compiling would be counted as calling.
    ("jit", "off"),
    // No run pays for the rows of another, and no checkpoint falls into one; inserts ask for one before they start.
    ("autovacuum", "off"),
    ("checkpoint_timeout", "1h"),
    ("max_wal_size", "8GB"),
    ("shared_buffers", "256MB"),
    ("max_connections", "250"),
    // A loop makes more ids than 4096 per millisecond. The benchmark measures what they cost until they are an hour ahead of
    // the clock, not how calls are slowed down then; with the default of 10 s a burst may be that long.
    ("keywright.lead_ms_max", "3600000"),
];

/// Instagram's published function: a sequence, the clock, shifts.
const SCHEMA: &str = "
CREATE EXTENSION keywright;
SELECT keywright.set_worker_id(1);
SELECT keywright.create_tag('t');
SELECT keywright.create_tag('hidden', hide_bits => 63);
CREATE SEQUENCE c1;
CREATE SEQUENCE c1000 CACHE 1000;
CREATE SEQUENCE plpgsql_sequence;
CREATE FUNCTION plpgsql_snowflake() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
    result bigint;
BEGIN
    SELECT nextval('plpgsql_sequence') % 1024 INTO seq_id;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
    RETURN result;
END $$;
";

/// An expression that makes an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Issuer {
    Snowflake,
    Tag,
    NextvalOne,
    NextvalThousand,
}

impl Issuer {
    pub(super) const ALL: [Issuer; 4] = [
        Issuer::Snowflake,
        Issuer::Tag,
        Issuer::NextvalOne,
        Issuer::NextvalThousand,
    ];

    /// How it is called in SQL.
    pub(super) fn sql(self) -> &'static str {
        match self {
            Issuer::Snowflake => "snowflake_id()",
            Issuer::Tag => "next_biz_id('t')",
            Issuer::NextvalOne => "nextval('c1')",
            Issuer::NextvalThousand => "nextval('c1000')",
        }
    }

    /// What to call it in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Issuer::Snowflake => "snowflake_id()",
            Issuer::Tag => "next_biz_id('t')",
            Issuer::NextvalOne => "nextval, CACHE 1",
            Issuer::NextvalThousand => "nextval, CACHE 1000",
        }
    }
}

/// Starts the server and makes what is measured; the tag has issued enough for its step to have grown.
pub(super) fn start(sizes: Sizes) -> Result<PgServer> {
    let mut builder = PgServer::builder().fsync(true);
    for (name, value) in SETTINGS {
        builder = builder.setting(name, value);
    }
    let server = builder.start()?;
    let mut client = server.client("postgres")?;
    client.batch_execute(SCHEMA)?;
    call(&mut client, Issuer::Tag.sql(), 2 * sizes.calls)?;
    Ok(server)
}

/// The query that calls an expression `times` times.
///
/// The series is in the SELECT list of the subquery, where the executor makes its rows one by one. In FROM it would
/// store them all first: two thirds of the loop's time, page faults included, and most of its noise.
pub(super) fn loop_sql(expression: &str, times: u32) -> String {
    format!("SELECT count({expression}) FROM (SELECT generate_series(1, {times})) AS series")
}

/// Runs that query.
///
/// # Errors
/// The server's.
pub(super) fn call(client: &mut Client, expression: &str, times: u32) -> Result<()> {
    client.query_one(&loop_sql(expression, times), &[])?;
    Ok(())
}
