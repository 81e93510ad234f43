//! Tags that hide their volume: their ids are the permutation that core describes, no id comes twice whatever is done to key and bits,
//! and nobody but the owner sees the key.

#[path = "../common/mod.rs"]
mod common;
mod kept;

use std::collections::HashSet;

use anyhow::ensure;
use common::{builder, expect_cause};
use keywright_core::cause::Cause;
use keywright_core::hiding::{HideBits, HideKey, Hiding};
use keywright_testkit::{
    PgServer, Result, SharedServer, Stop, TestDatabase, copy_ids, expect_sql_error, query_i64,
    query_text,
};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

const KEY: &str = "hide_key => '\\x000102030405060708090a0b0c0d0e0f'";
const OTHER_KEY: &str = "hide_key => '\\xff0102030405060708090a0b0c0d0e0f'";
const TAKE: &str = "SELECT next_biz_id('t')";

fn client() -> Result<(TestDatabase, Client)> {
    let database = SERVER.database(builder)?;
    let client = database.client()?;
    Ok((database, client))
}

fn create(client: &mut Client, arguments: &str) -> std::result::Result<(), postgres::Error> {
    client.batch_execute(&format!("SELECT keywright.create_tag('t', {arguments})"))
}

/// The permutation of [`KEY`].
fn hiding(bits: i64) -> Result<Hiding> {
    let key = std::array::from_fn(|place| u8::try_from(place).unwrap_or(0));
    Ok(Hiding::new(&HideKey::new(key), HideBits::new(bits)?))
}

fn ids(client: &mut Client, query: &str) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    copy_ids(client, query, &mut ids)?;
    Ok(ids)
}

/// The number behind an id, as the owner is told.
fn number(client: &mut Client, id: i64) -> Result<i64> {
    Ok(query_i64(
        client,
        &format!("SELECT keywright.hidden_number('t', {id})"),
    )?)
}

#[test]
fn ids_are_those_of_the_permutation() -> Result<()> {
    for bits in [63, 53, 31] {
        let (_database, mut client) = client()?;
        create(
            &mut client,
            &format!("step => 10, hide_bits => {bits}, {KEY}"),
        )?;
        let hiding = hiding(bits)?;
        let mut seen = vec![query_i64(&mut client, TAKE)?];
        seen.extend(ids(&mut client, "SELECT next_biz_ids('t', 50)")?);
        // One id per row, whichever way rows come.
        client.batch_execute(
            "CREATE TABLE rows (n integer, id bigint PRIMARY KEY DEFAULT next_biz_id('t'))",
        )?;
        client.batch_execute("INSERT INTO rows VALUES (1), (2); INSERT INTO rows SELECT n FROM generate_series(3, 49) n")?;
        seen.extend(ids(&mut client, "SELECT id FROM rows ORDER BY n")?);
        let expected: Vec<_> = (1..=100)
            .filter_map(|number| hiding.hide(number))
            .map(u64::cast_signed)
            .collect();
        assert_eq!(seen, expected, "{bits} bits");
        for (id, expected) in seen.iter().zip(1..) {
            assert_eq!(number(&mut client, *id)?, expected, "{bits} bits");
        }
        let recorded = "SELECT hide_bits || ' ' || hide_fingerprint FROM keywright.tags";
        assert_eq!(
            query_text(&mut client, recorded)?,
            format!("{bits} {}", hiding.fingerprint())
        );
    }
    Ok(())
}

#[test]
fn keys_of_31_bits_fit_an_integer_to_the_last() -> Result<()> {
    let (_database, mut client) = client()?;
    create(
        &mut client,
        &format!("start => 2147483646, hide_bits => 31, {KEY}"),
    )?;
    client.batch_execute("CREATE TABLE rows (id integer PRIMARY KEY DEFAULT next_biz_id('t'))")?;
    client.batch_execute("INSERT INTO rows DEFAULT VALUES; INSERT INTO rows DEFAULT VALUES")?;
    assert_eq!(
        ids(&mut client, "SELECT id::bigint FROM rows ORDER BY id")?,
        [24_990_125, 464_313_994]
    );
    let error = expect_cause(
        client.batch_execute(TAKE),
        Cause::TagExhausted,
        "exhausted at 2147483647",
    );
    assert_eq!(
        error.hint,
        "Use another tag: this one ends where 31 bits do."
    );
    let beyond = client.batch_execute("SELECT keywright.alter_tag('t', max => 2147483648)");
    expect_cause(beyond, Cause::ArgumentOutOfRange, "cannot be defined");
    Ok(())
}

#[test]
fn the_server_draws_keys_that_only_the_owner_sees() -> Result<()> {
    let (_database, mut client) = client()?;
    client.batch_execute(
        "SELECT keywright.create_tag('t', hide_bits => 53); SELECT keywright.create_tag('u', hide_bits => 53); \
         SELECT keywright.create_tag('plain'); DROP ROLE IF EXISTS nosy; CREATE ROLE nosy",
    )?;
    let keys = "SELECT count(DISTINCT k) FROM (VALUES (keywright.hide_key('t')), (keywright.hide_key('u'))) v(k) WHERE octet_length(k) = 16";
    assert_eq!(query_i64(&mut client, keys)?, 2);
    let plain = "SELECT count(*) FROM (SELECT) s WHERE keywright.hide_key('plain') IS NULL AND keywright.hidden_number('plain', 7) = 7";
    assert_eq!(query_i64(&mut client, plain)?, 1);
    client.batch_execute("SET ROLE nosy")?;
    query_i64(&mut client, TAKE)?;
    for refused in [
        "SELECT keywright.hide_key('t')",
        "SELECT keywright.hidden_number('t', 1)",
        "SELECT keywright.set_hide_key('t', '\\x00')",
        "SELECT * FROM keywright.tag_secret",
        "SELECT * FROM keywright.tag",
    ] {
        expect_sql_error(client.batch_execute(refused), "42501", "permission denied");
    }
    client.batch_execute("RESET ROLE; DROP ROLE nosy")?;
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> Result<()> {
    let (_database, mut client) = client()?;
    for (arguments, cause, message_has) in [
        (
            "hide_bits => 40",
            Cause::ArgumentOutOfRange,
            "63, 53 or 31 bits, not 40",
        ),
        (
            "hide_bits => 53, hide_key => '\\x00'",
            Cause::ArgumentOutOfRange,
            "16 bytes, not 1",
        ),
        (KEY, Cause::ArgumentNull, "hide_key needs hide_bits"),
        (
            "hide_bits => 53, start => 0",
            Cause::ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "hide_bits => 53, max => 9007199254740992",
            Cause::ArgumentOutOfRange,
            "cannot be defined",
        ),
    ] {
        expect_cause(create(&mut client, arguments), cause, message_has);
    }
    create(&mut client, "hide_bits => 31")?;
    for id in ["0", "-1", "2147483648"] {
        let decoded = client.batch_execute(&format!("SELECT keywright.hidden_number('t', {id})"));
        expect_cause(decoded, Cause::IdForeign, "is no id of tag \"t\"");
    }
    let unknown = client.batch_execute("SELECT keywright.hide_key('nothing')");
    expect_cause(unknown, Cause::TagUnknown, "does not exist");
    Ok(())
}

#[test]
fn columns_go_over_only_where_nothing_can_meet() -> Result<()> {
    let (_database, mut client) = client()?;
    create(&mut client, "hide_bits => 53")?;
    client.batch_execute(
        "CREATE TABLE used (id bigint); INSERT INTO used VALUES (3); \
         CREATE TABLE emptied (id bigserial); INSERT INTO emptied DEFAULT VALUES; DELETE FROM emptied; \
         CREATE TABLE fresh (id bigserial); CREATE TABLE second (id bigint)",
    )?;
    for table in ["used", "emptied"] {
        let adopted =
            client.batch_execute(&format!("SELECT keywright.adopt('t', '{table}', 'id')"));
        expect_cause(
            adopted,
            Cause::AdoptRefused,
            "anywhere from 1 to 9007199254740991",
        );
    }
    client.batch_execute(
        "SELECT keywright.adopt('t', 'fresh', 'id'); INSERT INTO fresh DEFAULT VALUES",
    )?;
    let id = query_i64(&mut client, "SELECT id FROM fresh")?;
    assert_eq!(number(&mut client, id)?, 1);
    // Another source goes on above all that the tag can ever give.
    client.batch_execute(
        "SELECT keywright.adopt('plain', 'fresh', 'id'); INSERT INTO fresh DEFAULT VALUES",
    )?;
    assert_eq!(
        query_i64(&mut client, "SELECT max(id) FROM fresh")?,
        1 << 53
    );
    client.batch_execute("ALTER TABLE second ALTER id SET DEFAULT next_biz_id('t'); INSERT INTO second DEFAULT VALUES")?;
    assert_eq!(
        query_i64(&mut client, "SELECT keywright.release('second', 'id')")?,
        1 << 53
    );
    client.batch_execute("SELECT keywright.create_tag('wide', hide_bits => 63); ALTER TABLE second ALTER id SET DEFAULT next_biz_id('wide')")?;
    let released = client.batch_execute("SELECT keywright.release('second', 'id')");
    expect_cause(released, Cause::AdoptRefused, "9223372036854775807");
    Ok(())
}

/// Numbers are issued as those of any tag, so their ids are distinct whoever takes them and whatever the server goes through.
#[test]
fn ids_are_distinct_over_sessions_and_crashes() -> Result<()> {
    let mut server = PgServer::builder().start()?;
    server.client("postgres")?.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('t', step => 50, step_max => 50, hide_bits => 31)",
    )?;
    let mut seen = HashSet::new();
    for round in 0..4 {
        let threads: Vec<_> = (0..4)
            .map(|_| server.client("postgres"))
            .map(|client| {
                std::thread::spawn(move || {
                    ids(
                        &mut client?,
                        "SELECT next_biz_id('t') FROM generate_series(1, 2000)",
                    )
                })
            })
            .collect();
        for thread in threads {
            let ids = thread
                .join()
                .map_err(|_| anyhow::anyhow!("a session panicked"))??;
            for id in ids {
                ensure!(
                    (1..=i64::from(i32::MAX)).contains(&id) && seen.insert(id),
                    "{id} came twice"
                );
            }
        }
        match round {
            0 => server.kill9()?,
            _ => server.stop(Stop::Immediate)?,
        }
        server.start()?;
    }
    assert_eq!(seen.len(), 32_000);
    Ok(())
}
