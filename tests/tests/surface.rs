//! Every function and view does what the README says of it.

mod common;
#[path = "common/vectors.rs"]
mod vectors;

use std::collections::BTreeSet;

use common::{builder, expect_cause, text_rows};
use keywright_core::Preset;
use keywright_core::cause::Cause;
use keywright_testkit::{
    Result, SharedServer, TestDatabase, expect_sql_error, query_i64, query_text,
};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

fn database() -> Result<TestDatabase> {
    SERVER.database(builder)
}

/// A database in which no worker id was set yet, so that any layout may be chosen.
fn unused_database() -> Result<(TestDatabase, Client)> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute(&format!(
        "SECURITY LABEL FOR keywright ON DATABASE {} IS NULL; DROP EXTENSION keywright; CREATE EXTENSION keywright",
        database.name()
    ))?;
    Ok((database, client))
}

fn ids(client: &mut Client, sql: &str) -> Result<Vec<i64>> {
    let rows = client.query(sql, &[])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn explain(client: &mut Client, sql: &str) -> Result<String> {
    let lines = text_rows(client, &format!("EXPLAIN (COSTS OFF) {sql}"))?.concat();
    Ok(lines.join("\n"))
}

fn unix_ms(client: &mut Client) -> Result<i64> {
    let sql = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    Ok(query_i64(client, sql)?)
}

#[test]
fn columns_fill_themselves_as_the_readme_shows() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute(
        "SELECT keywright.create_tag('orders');
         CREATE TABLE event (id bigint PRIMARY KEY DEFAULT snowflake_id(), body text);
         CREATE TABLE orders(id bigint PRIMARY KEY DEFAULT next_biz_id('orders'), body text);
         CREATE TABLE memo  (id text PRIMARY KEY DEFAULT readable_id('memo'), body text)",
    )?;
    let insert = "INSERT INTO orders (body) VALUES ('a'), ('b'), ('c') RETURNING id";
    assert_eq!(ids(&mut client, insert)?, [1, 2, 3]);
    let insert = "INSERT INTO event (body) SELECT 'x' FROM generate_series(1, 1000) RETURNING id";
    let events = ids(&mut client, insert)?;
    assert!(events.is_sorted_by(|a, b| a < b));
    let recent = "SELECT count(*) FROM event WHERE id >= snowflake_floor(now() - interval '1 day')";
    assert_eq!(query_i64(&mut client, recent)?, 1000);
    client.batch_execute("INSERT INTO memo (body) VALUES ('a'), ('b')")?;
    let memos = "SELECT count(*) FROM memo WHERE length(id) = 27";
    assert_eq!(query_i64(&mut client, memos)?, 2);
    Ok(())
}

#[test]
fn snowflake_ids_of_one_call_are_consecutive() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.set_worker_id(617)")?;
    let mut last = query_i64(&mut client, "SELECT snowflake_id()")?;
    for n in [1, 2, 100, 4096, 1] {
        let taken = ids(&mut client, &format!("SELECT snowflake_ids({n})"))?;
        assert_eq!(taken.len(), n);
        assert!(taken.windows(2).all(|pair| pair[1] == pair[0] + 1), "{n}");
        assert!(taken[0] > last, "{n}");
        last = taken[n - 1];
    }
    // More than a tick holds: still in order, in ticks that follow one another.
    let taken = ids(&mut client, "SELECT snowflake_ids(10000)")?;
    assert_eq!(taken.len(), 10_000);
    assert!(taken[0] > last && taken.is_sorted_by(|a, b| a < b));
    let worker = 617;
    assert!(taken.iter().all(|id| id >> 12 & 1023 == worker));
    let sequences: BTreeSet<i64> = taken.iter().map(|id| id >> 22 << 12 | id & 4095).collect();
    let (Some(first), Some(end)) = (sequences.first(), sequences.last()) else {
        panic!("there are 10000");
    };
    assert_eq!(end - first, 9_999);
    Ok(())
}

#[test]
fn tag_ids_of_one_call_are_consecutive() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.create_tag('t', start => 500, step => 100)")?;
    // Across many refills, the first of which holds only ten.
    let mut next = 500;
    for n in [1, 9, 10, 1_000, 10_000, 7] {
        let taken = ids(&mut client, &format!("SELECT next_biz_ids('t', {n})"))?;
        assert_eq!(taken.len(), usize::try_from(n)?);
        assert_eq!(taken[0], next, "no gap without a reason");
        assert!(taken.windows(2).all(|pair| pair[1] == pair[0] + 1), "{n}");
        next += n;
    }
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('t')")?, next);
    Ok(())
}

#[test]
fn ids_tell_when_and_where_they_were_made() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.set_worker_id(6 << 5 | 3)")?;
    // A database that never issued starts ahead of the clock by the largest lead; only then is it near.
    let before = unix_ms(&mut client)?;
    let id = query_i64(&mut client, "SELECT snowflake_id()")?;
    let after = unix_ms(&mut client)?;
    let decoded = text_rows(
        &mut client,
        &format!(
            "SELECT extract(epoch FROM issued_at) * 1000, datacenter_id, worker_id,
                    snowflake_worker({id}), sequence = snowflake_sequence({id}), issued_at = snowflake_timestamp({id})
             FROM snowflake_decode({id})"
        ),
    )?;
    let issued_ms: f64 = decoded[0][0].parse()?;
    assert!(before as f64 <= issued_ms && issued_ms <= after as f64 + 10_100.0);
    assert_eq!(decoded[0][1..], ["6", "3", "195", "t", "t"]);
    Ok(())
}

/// What both of these tests read of a fixed id.
fn decoded(vector: &vectors::SnowflakeVector) -> [&'static str; 8] {
    [
        vector.issued_at,
        vector.datacenter,
        vector.worker_field,
        vector.sequence,
        vector.worker_id,
        vector.sequence,
        "t",
        vector.floor,
    ]
}

#[test]
fn fixed_ids_decode_with_a_named_layout() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute("SET timezone = 'Asia/Kathmandu'")?;
    let known = vectors::snowflake();
    let presets: BTreeSet<&str> = known.iter().map(|vector| vector.preset).collect();
    assert_eq!(presets, Preset::ALL.map(Preset::name).into());
    for vector in known {
        let (id, preset) = (vector.id, vector.preset);
        let sql = format!(
            "SELECT to_char(d.issued_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS'), d.datacenter_id, d.worker_id,
                    d.sequence, snowflake_worker({id}, '{preset}'), snowflake_sequence({id}, '{preset}'),
                    snowflake_timestamp({id}, '{preset}') = d.issued_at, snowflake_floor(d.issued_at, '{preset}')
             FROM snowflake_decode({id}, '{preset}') AS d"
        );
        let rows = text_rows(&mut client, &sql)?;
        assert_eq!(rows, [decoded(&vector)], "{preset} {id}");
    }
    Ok(())
}

#[test]
fn fixed_ids_decode_with_the_layout_of_the_database() -> Result<()> {
    let (_database, mut client) = unused_database()?;
    for vector in vectors::snowflake() {
        let (id, preset) = (vector.id, vector.preset);
        let set = client.batch_execute(&format!("SELECT keywright.set_layout('{preset}')"));
        if preset == "baidu" {
            expect_cause(set, Cause::LayoutRanOut, "layout \"baidu\" cannot issue");
            continue;
        }
        set?;
        let sql = format!(
            "SELECT to_char(d.issued_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS'), d.datacenter_id, d.worker_id,
                    d.sequence, snowflake_worker({id}), snowflake_sequence({id}),
                    snowflake_timestamp({id}) = d.issued_at, snowflake_floor(d.issued_at)
             FROM snowflake_decode({id}) AS d"
        );
        let rows = text_rows(&mut client, &sql)?;
        assert_eq!(rows, [decoded(&vector)], "{preset} {id}");
    }
    Ok(())
}

#[test]
fn layouts_of_ones_own_decode_what_they_issued() -> Result<()> {
    let (_database, mut client) = unused_database()?;
    let own = "worker=10,time=33,unused=2,sequence=10,epoch=2025-01-01T00:00:00Z,tick=10ms";
    client.batch_execute(&format!(
        "SELECT keywright.set_layout('{own}'); SELECT keywright.set_worker_id(700)"
    ))?;
    let sql = format!(
        "SELECT worker_id, datacenter_id IS NULL, issued_at BETWEEN now() AND now() + interval '11 s',
                snowflake_decode(id, '{own}') = snowflake_decode(id)
         FROM (SELECT snowflake_id() AS id) AS one, snowflake_decode(id)"
    );
    assert_eq!(text_rows(&mut client, &sql)?, [["700", "t", "t", "t"]]);
    let floor = client.query("SELECT snowflake_floor(now())", &[]);
    expect_cause(floor, Cause::ArgumentOutOfRange, "time");
    Ok(())
}

#[test]
fn floor_finds_recent_rows_by_the_primary_key() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute(
        "CREATE TABLE event (id bigint PRIMARY KEY DEFAULT snowflake_id(), body text);
         INSERT INTO event SELECT snowflake_floor(now() - interval '1 day' - n * interval '1 minute') + n, 'old'
             FROM generate_series(1, 20000) AS n;
         INSERT INTO event (body) SELECT 'new' FROM generate_series(1, 100);
         ANALYZE event",
    )?;
    let query = "SELECT count(*) FROM event WHERE id >= snowflake_floor(now() - interval '1 day')";
    assert_eq!(query_i64(&mut client, query)?, 100);
    let plan = explain(&mut client, query)?;
    assert!(
        plan.contains("using event_pkey") && plan.contains("Index Cond: (id >= snowflake_floor("),
        "{plan}"
    );
    Ok(())
}

#[test]
fn decoders_with_a_layout_can_be_indexed_and_others_not() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute(
        "CREATE TABLE event (id bigint PRIMARY KEY DEFAULT snowflake_id());
         INSERT INTO event SELECT FROM generate_series(1, 10);
         CREATE INDEX ON event (snowflake_timestamp(id, 'twitter'));
         CREATE INDEX ON event (snowflake_worker(id, 'twitter'))",
    )?;
    let refused = client.batch_execute("CREATE INDEX ON event (snowflake_timestamp(id))");
    expect_sql_error(refused, "42P17", "must be marked IMMUTABLE");
    Ok(())
}

#[test]
fn readable_ids_have_27_characters_and_sort_by_time() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute(
        "CREATE TABLE memo (id text PRIMARY KEY DEFAULT readable_id('A1'), n int GENERATED ALWAYS AS IDENTITY);
         INSERT INTO memo SELECT FROM generate_series(1, 10000);
         -- More than a millisecond holds, so that there are several also in a burst ahead of the clock.
         SELECT count(readable_id('A1')) FROM generate_series(1, 270000);
         INSERT INTO memo SELECT FROM generate_series(1, 10000);
         ANALYZE memo",
    )?;
    let shape = "SELECT count(*) FROM memo WHERE id ~ '^[0-9]{15}A1__[0-9]{8}$'";
    assert_eq!(query_i64(&mut client, shape)?, 20_000);
    let middle = query_text(&mut client, "SELECT id FROM memo WHERE n = 10000")?;
    let query =
        format!("SELECT n::bigint FROM memo WHERE id > '{middle}' ORDER BY id DESC LIMIT 10");
    let plan = explain(&mut client, &query)?;
    assert!(
        plan.contains("Index Scan Backward using memo_pkey") && plan.contains("Index Cond: (id >"),
        "{plan}"
    );
    let newest = ids(&mut client, &query)?;
    assert_eq!(newest.len(), 10);
    let out_of_order =
        "SELECT count(*) FROM (SELECT issued_at, max(issued_at) OVER (ORDER BY n) AS highest
                        FROM memo, readable_decode(id)) AS seen WHERE issued_at < highest";
    assert_eq!(query_i64(&mut client, out_of_order)?, 0);
    let milliseconds = "SELECT count(DISTINCT issued_at) FROM memo, readable_decode(id)";
    assert!(
        query_i64(&mut client, milliseconds)? > 1,
        "nothing to order"
    );
    Ok(())
}

#[test]
fn fixed_readable_ids_decode() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute("SET timezone = 'America/St_Johns'")?;
    for vector in vectors::readable() {
        let sql = format!(
            "SELECT to_char(issued_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS'), biz, bucket, sequence
             FROM readable_decode('{}')",
            vector.id
        );
        let expected = [vector.issued_at, vector.biz, vector.bucket, vector.sequence];
        assert_eq!(text_rows(&mut client, &sql)?, [expected], "{}", vector.id);
    }
    Ok(())
}

#[test]
fn generators_refuse_where_nextval_does() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.create_tag('t')")?;
    for call in [
        "snowflake_id()",
        "snowflake_ids(2)",
        "next_biz_id('t')",
        "next_biz_ids('t', 2)",
        "readable_id('a')",
    ] {
        // Warm or not: the fast way must look too.
        client.batch_execute(&format!("SELECT {call}"))?;
        let refused = client.batch_execute(&format!("BEGIN READ ONLY; SELECT {call}"));
        expect_cause(refused, Cause::ReadOnly, "in a read-only transaction");
        client.batch_execute("ROLLBACK")?;
    }
    Ok(())
}

#[test]
fn functions_follow_the_schema_chosen_at_creation() -> Result<()> {
    let database = database()?;
    let mut client = database.client()?;
    client.batch_execute(
        "DROP EXTENSION keywright; CREATE SCHEMA ids; CREATE EXTENSION keywright SCHEMA ids;
         SELECT keywright.create_tag('t');
         CREATE TABLE t (id bigint DEFAULT ids.next_biz_id('t'), at bigint DEFAULT ids.snowflake_id())",
    )?;
    let id = query_i64(&mut client, "INSERT INTO t DEFAULT VALUES RETURNING id")?;
    assert_eq!(id, 1);
    let gone = client.query("SELECT snowflake_id()", &[]);
    expect_sql_error(gone, "42883", "snowflake_id() does not exist");
    Ok(())
}
