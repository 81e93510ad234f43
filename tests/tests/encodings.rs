//! Databases whose encoding is not UTF-8: what is no tag, layout or id is refused in plain words, and names that the
//! server can spell are no obstacle.

mod common;

use common::{builder, expect_cause};
use keywright_core::cause::Cause;
use keywright_testkit::{
    Result, SharedServer, TestDatabase, expect_sql_error, query_i64, query_text,
};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

/// An encoding, and a letter in it that is not UTF-8, as the inside of E''.
const ENCODINGS: [(&str, &str); 3] = [
    ("LATIN1", "\\xe9"),
    ("SQL_ASCII", "\\xe9"),
    ("EUC_JP", "\\xb0\\xa1"),
];

/// A database of that encoding with the extension and a worker id of its own.
fn database(encoding: &str, purpose: &str) -> Result<(TestDatabase, Client)> {
    let keeps_the_server = SERVER.database(builder)?;
    let name = format!("{purpose}_{}", encoding.to_lowercase());
    let mut admin = keeps_the_server.client()?;
    admin.batch_execute(&format!(
        "CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    ))?;
    let worker = query_i64(
        &mut admin,
        &format!("SELECT 200 + oid::bigint % 800 FROM pg_database WHERE datname = '{name}'"),
    )?;
    let mut client = keeps_the_server.server().client(&name)?;
    client.batch_execute(&format!(
        "CREATE EXTENSION keywright; SET keywright.lead_ms_max = 100; SELECT keywright.set_worker_id({worker})"
    ))?;
    Ok((keeps_the_server, client))
}

#[test]
fn what_is_not_ascii_is_refused_in_plain_words() -> Result<()> {
    let calls = [
        ("next_biz_id($)", Cause::TagInvalid),
        ("next_biz_ids($, 2)", Cause::TagInvalid),
        ("keywright.create_tag($)", Cause::TagInvalid),
        ("keywright.alter_tag($)", Cause::TagInvalid),
        ("keywright.drop_tag($)", Cause::TagInvalid),
        ("keywright.advance_tag($, 1)", Cause::TagInvalid),
        ("keywright.grant_tag($, 'public')", Cause::TagInvalid),
        ("keywright.revoke_tag($, 'public')", Cause::TagInvalid),
        ("keywright.adopt($, 't', 'id')", Cause::TagInvalid),
        ("keywright.set_layout($)", Cause::LayoutInvalid),
        ("snowflake_decode(1, $)", Cause::LayoutInvalid),
        ("snowflake_timestamp(1, $)", Cause::LayoutInvalid),
        ("snowflake_worker(1, $)", Cause::LayoutInvalid),
        ("snowflake_sequence(1, $)", Cause::LayoutInvalid),
        ("snowflake_floor(now(), $)", Cause::LayoutInvalid),
        ("readable_id($)", Cause::ArgumentOutOfRange),
        ("readable_decode($)", Cause::IdForeign),
        ("readable_decode('', $)", Cause::ZoneInvalid),
        ("keywright.set_readable_zone($)", Cause::ZoneInvalid),
    ];
    for (encoding, letter) in ENCODINGS {
        let (_database, mut client) = database(encoding, "refused")?;
        client.batch_execute("CREATE TABLE t (id bigserial)")?;
        for (call, cause) in calls {
            for text in [format!("E'{letter}'"), format!("E'twitter,{letter}=1'")] {
                let call = call.replace('$', &text);
                let refused = client.batch_execute(&format!("SELECT {call}"));
                let error = expect_cause(refused, cause, "which is not ASCII");
                let byte = letter.split('\\').nth(1).unwrap_or_default();
                assert!(
                    error
                        .message
                        .contains(&format!("byte \\{byte} at position")),
                    "{error:#?}"
                );
            }
        }
        // A column that is not there.
        for call in [
            format!("keywright.adopt('n', 't', E'{letter}')"),
            format!("keywright.adopt_snowflake('t', E'{letter}')"),
            format!("keywright.release('t', E'{letter}')"),
        ] {
            let refused = client.batch_execute(&format!("SELECT {call}"));
            expect_cause(refused, Cause::AdoptRefused, "no table with a column \"\\x");
        }
        // A role that is not there.
        client.batch_execute("SELECT keywright.create_tag('t')")?;
        let nobody = client.batch_execute(&format!("SELECT keywright.grant_tag('t', E'{letter}')"));
        let unknown = format!("role \"{letter}\" does not exist");
        expect_sql_error(nobody, "42704", &unknown);
        assert_eq!(query_i64(&mut client, "SELECT next_biz_id('t')")?, 1);
        query_i64(&mut client, "SELECT snowflake_id()")?;
    }
    Ok(())
}

/// What is said comes in whole, also where it abbreviates.
#[test]
fn what_is_said_is_ascii() -> Result<()> {
    for (encoding, _) in ENCODINGS {
        let (database, mut client) = database(encoding, "said")?;
        let lowered = client.batch_execute("ALTER SEQUENCE keywright.snowflake_bound RESTART");
        let error = expect_cause(lowered, Cause::OwnTables, "how its sequences count");
        assert!(error.hint.is_ascii(), "{encoding}: {error:#?}");

        // More tags than a row of health names, of which nothing says how far they were used.
        client.batch_execute(
            "SET session_replication_role = replica;
             INSERT INTO keywright.tag (tag, step, step_min, step_max, start, max)
                 SELECT 'tag_' || n, 1, 1, 1, 1, 9 FROM generate_series(10, 30) n;
             RESET session_replication_role",
        )?;
        let health = "SELECT detail FROM keywright.health WHERE name = 'tags'";
        let said = query_text(&mut client, health)?;
        assert!(
            said.ends_with("21 tags were used: tag_10, tag_11, tag_12, tag_13, tag_14, tag_15, tag_16, tag_17, tag_18, tag_19, ..."),
            "{encoding}: {said}"
        );

        // In a session that has used none of ours yet, where a worker may run it, too.
        client.batch_execute(
            "CREATE FUNCTION wrapped() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN snowflake_id(); END'",
        )?;
        let name = query_text(&mut client, "SELECT current_database()::text")?;
        let mut client = database.server().client(&name)?;
        client.batch_execute(
            "SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')",
        )?;
        let refused = client.batch_execute("SELECT wrapped()");
        let error = expect_cause(refused, Cause::InParallelQuery, "in a parallel query");
        assert!(error.hint.is_ascii(), "{encoding}: {error:#?}");
    }
    Ok(())
}

#[test]
fn names_that_are_not_ascii_work() -> Result<()> {
    for (encoding, letter) in ENCODINGS {
        let (_database, mut client) = database(encoding, "named")?;
        let role = format!("E'r\u{20}{letter}{encoding}'");
        let name = format!("E'n\"{letter}'");
        client.batch_execute(&format!(
            "SELECT keywright.create_tag('shared'), keywright.revoke_tag('shared', 'public');
             DO $$ BEGIN
                 EXECUTE format('CREATE ROLE %I', {role});
                 EXECUTE format('CREATE SCHEMA %I', {name});
                 EXECUTE format('SET search_path = %I, public', {name});
                 EXECUTE format('CREATE TABLE %1$I (x int DEFAULT 0, %1$I bigserial PRIMARY KEY)', {name});
                 EXECUTE format('CREATE TABLE p (x int, %1$I bigserial) PARTITION BY LIST (x)', {name});
                 EXECUTE format('CREATE TABLE %1$I PARTITION OF p FOR VALUES IN (0)', {name} || '0');
                 EXECUTE format('INSERT INTO %I SELECT FROM generate_series(1, 5)', {name});
                 EXECUTE format('GRANT ALL ON SCHEMA %I TO %I', {name}, {role});
                 EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %I TO %I', {name}, {role});
             END $$;
             SELECT keywright.grant_tag('shared', {role})"
        ))?;
        let insert = |client: &mut Client| {
            client.batch_execute(&format!(
                "DO $$ BEGIN EXECUTE format('INSERT INTO %I DEFAULT VALUES', {name}); END $$"
            ))
        };
        let adopt = format!(
            "SELECT keywright.adopt('shared', format('%I', {name})::regclass, {name}),
                    keywright.adopt('p', 'p', {name})"
        );
        assert_eq!(query_i64(&mut client, &adopt)?, 6, "{encoding}");
        client.batch_execute(&format!(
            "DO $$ BEGIN EXECUTE format('SET ROLE %I', {role}); END $$"
        ))?;
        insert(&mut client)?;
        client.batch_execute("RESET ROLE")?;
        let release = format!(
            "SELECT keywright.release(format('%I', {name})::regclass, {name}), keywright.release('p', {name})"
        );
        let first = query_i64(&mut client, &release)?;
        assert!(first > 6, "{encoding}: {first}");
        // Who might use the tag may use the sequence.
        client.batch_execute(&format!(
            "DO $$ BEGIN EXECUTE format('SET ROLE %I', {role}); END $$"
        ))?;
        insert(&mut client)?;
        client.batch_execute("RESET ROLE")?;
        client.batch_execute(&format!(
            "SELECT keywright.adopt_snowflake(format('%I', {name})::regclass, {name});
             SELECT keywright.adopt_snowflake('p', {name}); INSERT INTO p VALUES (0);
             SELECT keywright.revoke_tag('shared', {role})"
        ))?;
        insert(&mut client)?;
        let columns = format!(
            "SELECT keywright.release(attrelid, attname) FROM pg_attribute WHERE attrelid = format('%I', {name})::regclass AND attname = {name};
             SELECT keywright.release('p', {name}); DROP EXTENSION keywright; INSERT INTO p VALUES (0)"
        );
        client.batch_execute(&columns)?;
        insert(&mut client)?;
        let count = "SELECT sum(n_live)::bigint FROM (SELECT count(*) AS n_live FROM p) AS counted";
        assert_eq!(query_i64(&mut client, count)?, 2, "{encoding}");
    }
    Ok(())
}
