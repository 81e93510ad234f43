//! `keywright.release`: the way back. Columns go to sequences of their own, above all that was issued for them, and then the
//! database can do without keywright.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{builder, column_default, expect_cause, text_rows};
use keywright_core::cause::Cause;
use keywright_testkit::{
    Pending, Result, SharedServer, TestDatabase, WAIT_MAX, expect_sql_error, query_i64, wait_until,
};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

fn database() -> Result<(TestDatabase, Client)> {
    let database = SERVER.database(builder)?;
    let client = database.client()?;
    Ok((database, client))
}

fn insert(client: &mut Client, table: &str) -> Result<i64> {
    let insert = format!("INSERT INTO {table} DEFAULT VALUES RETURNING id");
    Ok(query_i64(client, &insert)?)
}

fn release(client: &mut Client, table: &str) -> Result<i64> {
    let release = format!("SELECT keywright.release('{table}', 'id')");
    Ok(query_i64(client, &release)?)
}

#[test]
fn what_was_handed_out_and_not_inserted_lies_below() -> Result<()> {
    let (database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE tagged (id bigserial PRIMARY KEY); CREATE TABLE flaked (id bigint PRIMARY KEY DEFAULT snowflake_id());
         CREATE TABLE ahead (id bigint PRIMARY KEY DEFAULT snowflake_id());
         CREATE TABLE dropped (id bigserial PRIMARY KEY);
         INSERT INTO tagged SELECT FROM generate_series(1, 5); SELECT keywright.adopt('tagged', 'tagged', 'id');
         SELECT keywright.adopt('dropped', 'dropped', 'id'); SELECT next_biz_ids('dropped', 70); SELECT keywright.drop_tag('dropped');
         INSERT INTO ahead VALUES (snowflake_id() + 8000000000000000)",
    )?;
    let mut other = database.client()?;
    for (table, take) in [
        (
            "tagged",
            "SELECT max(id) FROM next_biz_ids('tagged', 3000) AS id",
        ),
        ("flaked", "SELECT max(id) FROM snowflake_ids(10000) AS id"),
        ("ahead", "SELECT max(id) FROM ahead"),
        ("dropped", "SELECT 70::bigint"),
    ] {
        let handed_out = query_i64(&mut other, take)?;
        let first = release(&mut client, table)?;
        assert!(first > handed_out, "{table}: {first} after {handed_out}");
        assert_eq!(insert(&mut other, table)?, first, "{table}");
        other.batch_execute(&format!(
            "INSERT INTO {table} VALUES ({handed_out}) ON CONFLICT DO NOTHING"
        ))?;
        assert_eq!(insert(&mut client, table)?, first + 1, "{table}");
        let owned = format!("SELECT pg_get_serial_sequence('{table}', 'id') IS NOT NULL");
        assert_eq!(text_rows(&mut client, &owned)?, [["t"]], "{table}");
        let default = column_default(&mut client, table)?;
        assert!(
            default.starts_with(&format!("nextval('{table}_id_seq")),
            "{default}"
        );
    }
    // Back and forth, and above each time.
    let start = query_i64(
        &mut client,
        "SELECT keywright.adopt('again', 'tagged', 'id')",
    )?;
    let id = insert(&mut client, "tagged")?;
    assert_eq!(id, start);
    assert!(release(&mut client, "tagged")? > id);
    Ok(())
}

#[test]
fn partitions_of_two_levels_are_released_with_their_table() -> Result<()> {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE p (id bigserial, x int, PRIMARY KEY (id, x)) PARTITION BY LIST (x);
         CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
         CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2, 3) PARTITION BY LIST (x);
         -- Its columns stand in another order.
         CREATE TABLE p2a (x int NOT NULL, gone int, id bigint NOT NULL); ALTER TABLE p2a DROP gone;
         ALTER TABLE p2 ATTACH PARTITION p2a FOR VALUES IN (2);
         INSERT INTO p (x) VALUES (1), (2), (2); SELECT keywright.adopt('p', 'p', 'id');
         INSERT INTO p (x) VALUES (1), (2);
         -- A partition with a tag of its own, which is further.
         SELECT keywright.create_tag('other', start => 5000);
         ALTER TABLE p2a ALTER id SET DEFAULT next_biz_id('other'); INSERT INTO p2a (x) VALUES (2)",
    )?;
    let first = release(&mut client, "p")?;
    assert!(first > 5000, "{first}");
    let default = column_default(&mut client, "p")?;
    let tables = [("p", 1), ("p1", 1), ("p2", 2), ("p2a", 2)];
    for (next, (table, x)) in (first..).zip(tables) {
        assert_eq!(column_default(&mut client, table)?, default, "{table}");
        let insert = format!("INSERT INTO {table} (x) VALUES ({x}) RETURNING id");
        assert_eq!(query_i64(&mut client, &insert)?, next, "{table}");
    }
    // A partition made afterwards has it as well.
    client.batch_execute("CREATE TABLE p2b PARTITION OF p2 FOR VALUES IN (3)")?;
    assert_eq!(column_default(&mut client, "p2b")?, default);
    Ok(())
}

#[test]
fn what_is_rolled_back_was_never_released() -> Result<()> {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY); SELECT keywright.adopt('t', 't', 'id')",
    )?;
    let before = column_default(&mut client, "t")?;
    let relations = "SELECT count(*) FROM pg_class";
    let count = query_i64(&mut client, relations)?;
    client.batch_execute("BEGIN")?;
    let first = release(&mut client, "t")?;
    assert_eq!(insert(&mut client, "t")?, first);
    client.batch_execute("ROLLBACK; BEGIN; SAVEPOINT s")?;
    release(&mut client, "t")?;
    client.batch_execute("ROLLBACK TO s; COMMIT")?;
    assert_eq!(column_default(&mut client, "t")?, before);
    assert_eq!(query_i64(&mut client, relations)?, count);
    let id = insert(&mut client, "t")?;
    assert!(release(&mut client, "t")? > id);
    // And an adoption that is rolled back leaves the sequence.
    let released = column_default(&mut client, "t")?;
    client.batch_execute("BEGIN; SELECT keywright.adopt_snowflake('t', 'id'); ROLLBACK")?;
    assert_eq!(column_default(&mut client, "t")?, released);
    insert(&mut client, "t")?;
    Ok(())
}

#[test]
fn who_might_use_the_tag_may_use_the_sequence() -> Result<()> {
    let (database, mut client) = database()?;
    let name = database.name();
    client.batch_execute(&format!(
        "CREATE ROLE owner_{name} LOGIN; CREATE ROLE writer_{name} LOGIN; CREATE ROLE other_{name} LOGIN;
         GRANT EXECUTE ON FUNCTION keywright.release TO owner_{name}; CREATE SCHEMA own AUTHORIZATION owner_{name};
         SELECT keywright.create_tag('narrow'); SELECT keywright.revoke_tag('narrow', 'public'), keywright.grant_tag('narrow', 'writer_{name}');
         SELECT keywright.create_tag('wide');
         SET ROLE owner_{name}; GRANT USAGE ON SCHEMA own TO PUBLIC;
         CREATE TABLE own.narrow (id bigint DEFAULT next_biz_id('narrow')); CREATE TABLE own.wide (id bigint DEFAULT next_biz_id('wide'));
         CREATE TABLE own.flaked (id bigint DEFAULT snowflake_id());
         GRANT INSERT, SELECT ON ALL TABLES IN SCHEMA own TO writer_{name}, other_{name}; RESET ROLE"
    ))?;
    let connect = |role: &str| database.server().connect(name, &format!("{role}_{name}"));
    let (mut owner, mut writer, mut other) =
        (connect("owner")?, connect("writer")?, connect("other")?);
    // Somebody else's table stays.
    let stranger = writer.batch_execute("SELECT keywright.release('own.wide', 'id')");
    expect_sql_error(stranger, "42501", "release");
    release(&mut owner, "own.wide")?;
    // A superuser's sequence is the table owner's.
    for table in ["own.narrow", "own.flaked"] {
        release(&mut client, table)?;
    }
    for table in ["own.narrow", "own.wide", "own.flaked"] {
        insert(&mut owner, table)?;
        insert(&mut writer, table)?;
        let inserted = insert(&mut other, table);
        assert_eq!(
            inserted.is_err(),
            table == "own.narrow",
            "{table}: {inserted:?}"
        );
    }
    let owners = "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'own'::regnamespace";
    assert_eq!(text_rows(&mut client, owners)?, [[format!("owner_{name}")]]);
    Ok(())
}

#[test]
fn what_cannot_be_released_is_left_as_it_was() -> Result<()> {
    let (_database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE serials (id bigserial); CREATE TABLE bare (id bigint); SELECT keywright.create_tag('t');
         CREATE TABLE veiled (id bigint DEFAULT coalesce(next_biz_id('t'), 0)); CREATE VIEW seen AS SELECT 1::bigint AS id;
         CREATE TABLE narrow (id int DEFAULT next_biz_id('t')); CREATE TABLE words (id text DEFAULT readable_id('a'));
         CREATE TABLE lost (id bigint DEFAULT next_biz_id('no such tag')); CREATE TABLE small (id serial);
         CREATE TABLE full_up (id bigint DEFAULT next_biz_id('t')); INSERT INTO full_up VALUES (9223372036854775806)",
    )?;
    for (arguments, cause, message_has, hint_has) in [
        (
            "'serials', 'id'",
            Cause::AdoptRefused,
            "no id of keywright goes into it",
            "does not draw from keywright",
        ),
        (
            "'bare', 'id'",
            Cause::AdoptRefused,
            "no id of keywright goes into it",
            "does not draw from keywright",
        ),
        (
            "'veiled', 'id'",
            Cause::AdoptRefused,
            "does not show whose ids they are",
            "Set the default to",
        ),
        (
            "'seen', 'id'",
            Cause::AdoptRefused,
            "no table with a column \"id\"",
            "not a view",
        ),
        (
            "'narrow', 'id'",
            Cause::AdoptRefused,
            "it is integer, and ids need bigint",
            "ALTER TABLE public.narrow ALTER id DROP DEFAULT",
        ),
        (
            "'words', 'id'",
            Cause::AdoptRefused,
            "it is text, and ids need bigint",
            "ALTER TABLE public.words ALTER id DROP DEFAULT",
        ),
        (
            "'full_up', 'id'",
            Cause::AdoptRefused,
            "ids up to 9223372036854775806",
            "Keep keywright",
        ),
        (
            "'bare', 'nope'",
            Cause::AdoptRefused,
            "no table with a column \"nope\"",
            "not a view",
        ),
        (
            "'small', 'id'",
            Cause::AdoptRefused,
            "no id of keywright goes into it",
            "does not draw from keywright",
        ),
        (
            "'lost', 'id'",
            Cause::AdoptRefused,
            "names a tag that does not exist",
            "DROP DEFAULT",
        ),
        (
            "NULL, 'id'",
            Cause::ArgumentNull,
            "none may be null",
            "release('orders', 'id')",
        ),
        (
            "'bare', NULL",
            Cause::ArgumentNull,
            "none may be null",
            "release('orders', 'id')",
        ),
    ] {
        let refused = client.batch_execute(&format!("SELECT keywright.release({arguments})"));
        let error = expect_cause(refused, cause, message_has);
        assert!(error.hint.contains(hint_has), "{error:#?}");
    }
    let repeatable =
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT keywright.release('full_up', 'id')";
    expect_cause(
        client.batch_execute(repeatable),
        Cause::AdoptRefused,
        "above READ COMMITTED",
    );
    client.batch_execute("ROLLBACK")?;
    assert_eq!(
        query_i64(
            &mut client,
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'full_up_id_seq%'"
        )?,
        0
    );
    // A tag at its end can be left once that is raised: what comes then may be another database's.
    client.batch_execute(
        "SELECT keywright.create_tag('ended', max => 3); CREATE TABLE ended (id bigint DEFAULT next_biz_id('ended'));
         INSERT INTO ended SELECT FROM generate_series(1, 3)",
    )?;
    let ended = client.batch_execute("SELECT keywright.release('ended', 'id')");
    let error = expect_cause(ended, Cause::AdoptRefused, "no other is left up to 3");
    assert!(error.hint.contains("Raise the tag's end"), "{error:#?}");
    client.batch_execute("SELECT keywright.alter_tag('ended', max => 5000)")?;
    let start = release(&mut client, "ended")?;
    assert!(start > 3, "{start} was issued");
    assert_eq!(insert(&mut client, "ended")?, start);
    Ok(())
}

#[test]
fn inserters_wait_and_then_use_the_sequence() -> Result<()> {
    let (database, mut client) = database()?;
    client.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_id()); CREATE TABLE u (id bigserial PRIMARY KEY); SELECT keywright.adopt('u', 'u', 'id')")?;
    let mut observer = database.client()?;
    let lock = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'";
    for table in ["t", "u"] {
        // One that has inserted and not committed: release waits for it.
        let mut early = database.client()?;
        early.batch_execute("BEGIN")?;
        let first = insert(&mut early, table)?;
        let releasing = Pending::start(
            database.client()?,
            &format!("SELECT keywright.release('{table}', 'id')"),
        )?;
        wait_until("release to wait for the inserter", WAIT_MAX, || {
            Ok(observer.query_opt(lock, &[&releasing.pid()])?.is_some())
        })?;
        let second = insert(&mut early, table)?;
        early.batch_execute("COMMIT")?;
        let start = releasing.finish()?.outcome?;
        assert!(first < second && second < start, "{table}");
        // What the sequence of `t` would give next lies as far ahead as the bound of snowflake ids.
        if table == "u" {
            client.batch_execute("BEGIN; SELECT keywright.adopt_snowflake('u', 'id'); ROLLBACK")?;
        }
        client.batch_execute("BEGIN")?;
        // One that comes while a change is open waits, and uses what is the default then.
        client.batch_execute(&format!("SELECT keywright.adopt('{table}_tag', '{table}', 'id'); SELECT keywright.release('{table}', 'id')"))?;
        let inserting = Pending::start(
            database.client()?,
            &format!("INSERT INTO {table} DEFAULT VALUES RETURNING id"),
        )?;
        wait_until("an inserter to wait for release", WAIT_MAX, || {
            Ok(observer.query_opt(lock, &[&inserting.pid()])?.is_some())
        })?;
        let mine = insert(&mut client, table)?;
        client.batch_execute("COMMIT")?;
        assert_eq!(inserting.finish()?.outcome?, mine + 1);
    }
    Ok(())
}

/// As the README says: each column is released while others insert, then the extension is dropped.
#[test]
fn uninstalled_step_by_step_under_load() -> Result<()> {
    let (database, mut client) = database()?;
    client.batch_execute(
        "CREATE TABLE t (id bigserial PRIMARY KEY); SELECT keywright.adopt('t', 't', 'id');
         CREATE TABLE u (id bigint PRIMARY KEY DEFAULT snowflake_id());
         CREATE TABLE v (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY); SELECT keywright.adopt_snowflake('v', 'id')",
    )?;
    let stop = AtomicBool::new(false);
    let insert_until_stopped = |table: &'static str| -> Result<usize> {
        let mut client = database.client()?;
        let statement = format!("INSERT INTO {table} SELECT FROM generate_series(1, 3)");
        let mut inserted = 0;
        while !stop.load(Ordering::Relaxed) {
            client.batch_execute(&statement)?;
            inserted += 3;
        }
        Ok(inserted)
    };
    let tables = ["t", "u", "v"];
    let inserted = thread::scope(|scope| -> Result<Vec<usize>> {
        let threads: Vec<_> = tables
            .iter()
            .flat_map(|table| [*table; 2])
            .map(|table| scope.spawn(move || insert_until_stopped(table)))
            .collect();
        let mut uninstall = || -> Result<()> {
            for table in tables {
                let count = format!("SELECT count(*) FROM {table}");
                let rows = query_i64(&mut client, &count)?;
                let grown_by = |client: &mut Client, more: i64| {
                    wait_until("rows", WAIT_MAX, || {
                        Ok(query_i64(client, &count)? >= rows + more)
                    })
                };
                grown_by(&mut client, 100)?;
                let dropped = client.batch_execute("DROP EXTENSION keywright");
                expect_sql_error(dropped, "2BP01", "other objects depend on it");
                release(&mut client, table)?;
                let rows = query_i64(&mut client, &count)?;
                wait_until("rows", WAIT_MAX, || {
                    Ok(query_i64(&mut client, &count)? >= rows + 100)
                })?;
            }
            client.batch_execute("DROP EXTENSION keywright")?;
            let rows = query_i64(&mut client, "SELECT count(*) FROM t")?;
            wait_until("rows", WAIT_MAX, || {
                Ok(query_i64(&mut client, "SELECT count(*) FROM t")? >= rows + 100)
            })
        };
        let uninstalled = uninstall();
        stop.store(true, Ordering::Relaxed);
        let mut inserted = Vec::new();
        for thread in threads {
            let outcome = thread.join();
            inserted.push(outcome.map_err(|_| anyhow::anyhow!("an inserting thread panicked"))??);
        }
        uninstalled.map(|()| inserted)
    })?;
    for (table, inserted) in tables.iter().zip(inserted.chunks(2)) {
        let rows = query_i64(&mut client, &format!("SELECT count(*) FROM {table}"))?;
        assert_eq!(
            rows,
            i64::try_from(inserted.iter().sum::<usize>())?,
            "{table}"
        );
    }
    Ok(())
}
