//! Whatever is passed in: a clear error that says what to do, and the server goes on.

mod common;

use common::{assert_no_backtrace, builder, expect_cause, text_rows};
use keywright_core::cause::Cause;
use keywright_core::cause::Cause::{
    ArgumentNull, ArgumentOutOfRange, IdForeign, LayoutInvalid, TagExhausted, TagInvalid,
    TagUnknown,
};
use keywright_testkit::{Result, SharedServer, SqlError, expect_sql_error, query_i64};
use postgres::Client;

static SERVER: SharedServer = SharedServer::new();

/// Each call is refused for its cause, the session goes on, and so does the tag.
fn all_refused(calls: &[(impl AsRef<str>, Cause, &str)]) -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.create_tag('t'); SELECT next_biz_ids('t', 5)")?;
    let pid = query_i64(&mut client, "SELECT pg_backend_pid()::bigint")?;
    for (call, cause, message_has) in calls {
        let long = "x".repeat(10_000);
        let call = call.as_ref().replace("{10 kB}", &long);
        let outcome = client.batch_execute(&format!("SELECT {call}"));
        let error = expect_cause(outcome, *cause, message_has);
        assert!(
            error.message.len() < 600,
            "an answer as long as the question"
        );
    }
    assert_eq!(
        query_i64(&mut client, "SELECT pg_backend_pid()::bigint")?,
        pid
    );
    assert_eq!(query_i64(&mut client, "SELECT next_biz_id('t')")?, 6);
    query_i64(&mut client, "SELECT snowflake_id()")?;
    assert!(!database.server().log_contains("PANIC:")?);
    Ok(())
}

#[test]
fn tags_that_are_none() -> Result<()> {
    let mut calls = Vec::new();
    let functions = [
        "next_biz_id($)",
        "next_biz_ids($, 1)",
        "keywright.create_tag($)",
        "keywright.alter_tag($)",
        "keywright.drop_tag($)",
        "keywright.advance_tag($, 1)",
        "keywright.grant_tag($, 'public')",
        "keywright.revoke_tag($, 'public')",
        "keywright.adopt($, 'pg_class', 'oid')",
    ];
    let texts = [
        ("''", "must not be empty"),
        ("'{10 kB}'", "must not exceed 128 bytes, this one has 10000"),
        (
            "rpad('x', 129, 'y')",
            "must not exceed 128 bytes, this one has 129",
        ),
        ("'größe'", "must not contain 'ö' (at byte 2)"),
        ("'订单'", "must not contain '订'"),
        ("' t'", "must not contain ' ' (at byte 0)"),
        ("E't\\n'", "must not contain '\\n'"),
        ("'t''; DROP TABLE x; --'", "must not contain '\\''"),
        ("'t\"'", "must not contain '\"'"),
    ];
    for function in functions {
        for (text, message_has) in texts {
            calls.push((function.replace('$', text), TagInvalid, message_has));
        }
        let null = function.replace('$', "NULL");
        calls.push((null, ArgumentNull, "null"));
    }
    let unknown = functions
        .iter()
        .filter(|function| !function.contains("create") && !function.contains("adopt"));
    calls.extend(unknown.map(|function| {
        (
            function.replace('$', "'T'"),
            TagUnknown,
            "tag \"T\" does not exist",
        )
    }));
    all_refused(&calls)
}

#[test]
fn numbers_out_of_range() -> Result<()> {
    all_refused(&[
        (
            "snowflake_ids(0)",
            ArgumentOutOfRange,
            "1 to 10000 ids in one call, not 0",
        ),
        ("snowflake_ids(-1)", ArgumentOutOfRange, "not -1"),
        ("snowflake_ids(10001)", ArgumentOutOfRange, "not 10001"),
        (
            "snowflake_ids(2147483647)",
            ArgumentOutOfRange,
            "not 2147483647",
        ),
        ("snowflake_ids(NULL)", ArgumentNull, "number of ids"),
        ("next_biz_ids('t', 0)", ArgumentOutOfRange, "not 0"),
        (
            "keywright.set_worker_id(5, above => '4713-01-01 BC', force => true)",
            ArgumentOutOfRange,
            "before 1970",
        ),
        (
            "next_biz_ids('t', -2147483648)",
            ArgumentOutOfRange,
            "not -2147483648",
        ),
        ("next_biz_ids('t', 10001)", ArgumentOutOfRange, "not 10001"),
        ("next_biz_ids('t', NULL)", ArgumentNull, "number of ids"),
        (
            "keywright.create_tag('n', start => -1)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.create_tag('n', start => 11, max => 10)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.create_tag('n', step => 0)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.create_tag('n', step => NULL)",
            ArgumentNull,
            "step must not be null",
        ),
        (
            "keywright.create_tag('n', step => 1000000001)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.create_tag('n', step_min => 2000)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.create_tag('n', step_max => 10)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.create_tag('n', step => -9223372036854775808)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.create_tag('n', max => -1)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.create_tag('n', max => 9223372036854775807)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.alter_tag('t', step => 0)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.alter_tag('t', step_min => 5000)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.alter_tag('t', max => 5)",
            ArgumentOutOfRange,
            "cannot end at 5",
        ),
        (
            "keywright.alter_tag('t', refill_threshold_percent => 100)",
            ArgumentOutOfRange,
            "not within 1 to 99",
        ),
        (
            "keywright.alter_tag('t', refill_threshold_percent => -1)",
            ArgumentOutOfRange,
            "not within 1 to 99",
        ),
        (
            "keywright.alter_tag('t', max => 9223372036854775807)",
            ArgumentOutOfRange,
            "cannot be defined",
        ),
        (
            "keywright.advance_tag('t', -1)",
            ArgumentOutOfRange,
            "not -1",
        ),
        (
            "keywright.advance_tag('t', 9223372036854775807)",
            ArgumentOutOfRange,
            "beyond the end of tag \"t\"",
        ),
        (
            "keywright.advance_tag('t', NULL)",
            ArgumentNull,
            "advance beyond",
        ),
        (
            "keywright.grant_tag('t', NULL)",
            ArgumentNull,
            "role must not be null",
        ),
        (
            "keywright.set_worker_id(-1)",
            ArgumentOutOfRange,
            "not between 0 and 1023",
        ),
        (
            "keywright.set_worker_id(1024)",
            ArgumentOutOfRange,
            "not between 0 and 1023",
        ),
        (
            "keywright.set_worker_id(NULL)",
            ArgumentNull,
            "must not be null",
        ),
        (
            "next_biz_ids('t', 10000) FROM keywright.create_tag('small', max => 9999), next_biz_ids('small', 10000)",
            TagExhausted,
            "exhausted at 9999",
        ),
    ])
}

#[test]
fn ids_and_moments_that_are_of_no_layout() -> Result<()> {
    let mut calls = Vec::new();
    for function in ["decode", "timestamp", "worker", "sequence"] {
        for (id, layout, message_has) in [
            ("-1", "", "id -1 is negative"),
            ("-9223372036854775808", "", "is negative"),
            ("-1", ", 'leaf'", "id -1 is negative"),
            (
                "9007199254740992",
                ", 'js53'",
                "bits set that the layout does not use",
            ),
        ] {
            calls.push((
                format!("snowflake_{function}({id}{layout})"),
                IdForeign,
                message_has,
            ));
        }
    }
    for (moment, message_has) in [
        ("'infinity'", "infinite"),
        ("'-infinity'", "infinite"),
        ("'2010-11-04 01:42:54.656Z'", "before the layout's epoch"),
        ("'4713-01-01 BC'", "before the layout's epoch"),
        ("'2080-07-10 17:30:30.209Z'", "ran out"),
        ("'294276-12-31 00:00Z'", "out of range"),
    ] {
        for layout in ["", ", 'twitter'"] {
            calls.push((
                format!("snowflake_floor({moment}{layout})"),
                ArgumentOutOfRange,
                message_has,
            ));
        }
    }
    for (id, message_has) in [
        ("''", "27 characters, not 0"),
        ("'{10 kB}'", "27 characters"),
        ("'260102030405006abc_0000000'", "27 characters, not 26"),
        ("'ä60102030405006abc_0000000'", "27 characters, not 26"),
        (
            "'ä60102030405006abc_00000000'",
            "27 ASCII characters, and U+00E4",
        ),
        ("'261302030405006abc_00000000'", "not a moment"),
        ("'260230030405006abc_00000000'", "not a moment"),
        ("'26013003040500-abc_00000000'", "not a moment"),
        ("'260102030405006a_b_00000000'", "not a business code"),
        ("'260102030405006____00000000'", "not a business code"),
        (
            "'260102030405006abc_67108864'",
            "not a number from 0 to 67108863",
        ),
        ("'260102030405006abc_+0000001'", "not a number"),
    ] {
        calls.push((format!("readable_decode({id})"), IdForeign, message_has));
    }
    for (biz, message_has) in [
        ("''", "1 to 4 characters, not 0"),
        ("'12345'", "1 to 4 characters, not 5"),
        ("'{10 kB}'", "1 to 4 characters"),
        ("'a b'", "must not contain ' '"),
        ("'a_'", "must not contain '_'"),
        ("'ü'", "must not contain 'ü'"),
    ] {
        calls.push((
            format!("readable_id({biz})"),
            ArgumentOutOfRange,
            message_has,
        ));
    }
    calls.push((
        "readable_id(NULL)".to_owned(),
        ArgumentNull,
        "must not be null",
    ));
    all_refused(&calls)
}

#[test]
fn layouts_that_are_none() -> Result<()> {
    let texts = [
        ("'Twitter'", "neither a preset"),
        ("''", "neither a preset"),
        ("'nonsense'", "\"nonsense\" is neither a preset"),
        ("'{10 kB}'", "10000 bytes, at most 256"),
        ("'ünsinn'", "neither a preset"),
        ("'time=41,worker=10'", "sequence needs at least 1 bit"),
        (
            "'time=64,worker=1,sequence=1,epoch=0'",
            "time=64 is not a number of bits",
        ),
        ("'time=41,worker=23,sequence=1,epoch=0'", "more than 22"),
        (
            "'time=50,worker=10,sequence=12,epoch=0'",
            "72 bits together, more than 63",
        ),
        ("'time=41,worker=10,sequence=12'", "epoch is missing"),
        ("'twitter,epoch=2024-02-30'", "epoch=2024-02-30 is neither"),
        ("'twitter,tick=0ms'", "tick=0ms is not"),
        ("'twitter,epoch=0,epoch=1'", "epoch is given twice"),
        ("'twitter,spare=1'", "64 bits together"),
    ];
    let mut calls = vec![(
        "keywright.set_layout(NULL)".to_owned(),
        ArgumentNull,
        "must not be null",
    )];
    for function in [
        "keywright.set_layout($)",
        "snowflake_decode(1, $)",
        "snowflake_timestamp(1, $)",
        "snowflake_worker(1, $)",
        "snowflake_sequence(1, $)",
        "snowflake_floor(now(), $)",
    ] {
        calls.extend(texts.map(|(text, has)| (function.replace('$', text), LayoutInvalid, has)));
    }
    all_refused(&calls)
}

#[test]
fn decoding_null_is_null() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    let nulls = "SELECT snowflake_timestamp(NULL), snowflake_worker(NULL, 'leaf'), snowflake_sequence(1, NULL),
                        snowflake_floor(NULL), (SELECT count(*) FROM snowflake_decode(NULL)),
                        (SELECT count(*) FROM readable_decode(NULL))";
    let expected = ["NULL", "NULL", "NULL", "NULL", "0", "0"];
    assert_eq!(text_rows(&mut client, nulls)?, [expected]);
    Ok(())
}

/// What the server itself says from below the extension comes through as it is, without Rust's insides.
#[test]
fn errors_of_the_server_come_through() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute("SELECT keywright.create_tag('t')")?;
    let error = |client: &mut Client, statement: &str, sqlstate: &str, has: &str| -> SqlError {
        let error = expect_sql_error(client.batch_execute(statement), sqlstate, has);
        assert_no_backtrace(&error);
        error
    };
    let nobody = "SELECT keywright.grant_tag('t', 'nobody_there')";
    error(
        &mut client,
        nobody,
        "42704",
        "role \"nobody_there\" does not exist",
    );
    let injection = "SELECT keywright.grant_tag('t', 'public; DROP TABLE keywright.tag')";
    error(&mut client, injection, "42704", "does not exist");
    let mut holder = database.client()?;
    holder.batch_execute("BEGIN; LOCK TABLE keywright.tag")?;
    let impatient = "SET statement_timeout = 100; SELECT next_biz_id('t')";
    error(&mut client, impatient, "57014", "statement timeout");
    Ok(())
}
