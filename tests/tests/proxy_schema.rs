//! Tables that change under connections that are open: what others define takes effect at once, for prepared statements too.

use std::time::Duration;

use keywright_testkit::{
    Flavour, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, Wire, make_store,
    wait_until,
};

keywright_testkit::on_both_flavours!(
    values_follow_columns_that_move,
    what_is_no_key_of_its_own_any_more_goes_nowhere,
    a_look_finds_columns_that_others_moved,
    what_was_prepared_stays_in_its_database,
    a_key_column_may_go_and_come_back,
    what_was_prepared_goes_into_a_temporary_table_made_out_of_sight,
);

const KEY_FIRST: i64 = 5_000_000;

/// A proxy with a rule for `t`, and two connections.
fn begin(server: &Upstream, schema: &str) -> Result<(ProxyProcess, Wire, Wire)> {
    begin_with(server, schema, ("fence = true\n", 86400))
}

fn begin_with(
    server: &Upstream,
    schema: &str,
    (fence, schema_refresh_s): (&str, u32),
) -> Result<(ProxyProcess, Wire, Wire)> {
    server.run(
        "mysql",
        &format!(
            "CREATE DATABASE {schema};
             CREATE TABLE {schema}.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b INT)"
        ),
    )?;
    let store = make_store(
        server,
        &format!("{schema}_store"),
        &[("orders", KEY_FIRST.unsigned_abs())],
    )?;
    let mut config =
        ProxyConfig::before(server, &store).rule(&format!("{schema}.t"), "segment:orders");
    for rule in &mut config.rules {
        rule.push_str(fence);
    }
    config.more = format!("[limits]\nschema_refresh_s = {schema_refresh_s}");
    let proxy = ProxyProcess::start(config)?;
    let (one, other) = (proxy.wire(schema)?, proxy.wire(schema)?);
    Ok((proxy, one, other))
}

#[track_caller]
fn succeeds(replies: &[Reply]) {
    assert!(matches!(replies, [Reply::Done(_)]), "{replies:?}");
}

/// Whether the row with that `a` has a key of ours, and its `b`.
fn row(server: &Upstream, schema: &str, key: &str, a: i64) -> Result<Vec<Vec<String>>> {
    server.run(
        schema,
        &format!("SELECT {key} >= {KEY_FIRST}, b FROM t WHERE a = {a}"),
    )
}

fn values_follow_columns_that_move(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    let schema = "moving";
    let (_proxy, mut one, mut other) = begin(&server, schema)?;
    let asks = one
        .prepare("INSERT INTO t VALUES (?, ?, ?)")?
        .expect("it can be prepared");
    let given = one
        .prepare("INSERT INTO t VALUES (7, ?, ?)")?
        .expect("it can be prepared");
    let query = one
        .prepare("INSERT INTO t SELECT NULL, ?, ?")?
        .expect("it can be prepared");
    let number = Param::Signed;
    succeeds(&one.execute(&asks, &[Param::Null, number(1), number(10)])?);
    assert_eq!(row(&server, schema, "id", 1)?, [["1", "10"]]);
    other.run("ALTER TABLE t MODIFY id BIGINT AUTO_INCREMENT AFTER b")?;
    // As natively: the values go by the order of the columns now.
    succeeds(&one.execute(&asks, &[number(2), number(20), Param::Null])?);
    assert_eq!(row(&server, schema, "id", 2)?, [["1", "20"]]);
    succeeds(&one.execute(&asks, &[number(3), number(30), number(77)])?);
    assert_eq!(row(&server, schema, "id", 3)?, [["0", "30"]]);
    // What was its own key is another value, and what it asks for is known with its parameters.
    succeeds(&one.execute(&given, &[number(70), Param::Null])?);
    assert_eq!(row(&server, schema, "id", 7)?, [["1", "70"]]);
    let refused = one.execute(&query, &[number(4), Param::Null])?;
    assert!(
        matches!(refused.as_slice(), [Reply::Failed(fault)] if fault.errno == 1235),
        "{refused:?}"
    );
    // And back.
    one.run("ALTER TABLE t MODIFY id BIGINT AUTO_INCREMENT FIRST")?;
    succeeds(&one.execute(&asks, &[Param::Null, number(5), number(50)])?);
    assert_eq!(row(&server, schema, "id", 5)?, [["1", "50"]]);
    succeeds(&one.execute(&query, &[number(6), number(60)])?);
    assert_eq!(row(&server, schema, "id", 6)?, [["1", "60"]]);
    Ok(())
}

const FENCES: [&str; 2] = ["fence = true\n", "fence = false\n"];
const WAIT_MAX: Duration = Duration::from_secs(60);
const MOVES: &str = "ALTER TABLE t MODIFY id BIGINT AUTO_INCREMENT AFTER b";

/// Its key is its own while `id` comes first, and NULL when that comes last.
const GIVEN: &str = "INSERT INTO t SELECT 7, 70, NULL";
/// Its key is its own in each order.
const ALWAYS_GIVEN: &str = "INSERT INTO t SELECT 7, 8, 9";

fn is_refused(replies: &[Reply]) -> bool {
    matches!(replies, [Reply::Failed(fault)] if fault.errno == 1235)
}

fn what_is_no_key_of_its_own_any_more_goes_nowhere(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    for (schema, fence) in ["fenced", "open"].into_iter().zip(FENCES) {
        let (_proxy, mut one, mut other) = begin_with(&server, schema, (fence, 86400))?;
        let given = one.prepare(GIVEN)?.expect("it can be prepared");
        let always = one.prepare(ALWAYS_GIVEN)?.expect("it can be prepared");
        succeeds(&one.execute(&given, &[])?);
        assert_eq!(ids(&server, schema)?, [["7"]]);
        other.run(MOVES)?;
        for _ in 0..2 {
            let replies = one.execute(&given, &[])?;
            assert!(is_refused(&replies), "{fence}{replies:?}");
        }
        succeeds(&one.execute(&always, &[])?);
        assert_eq!(ids(&server, schema)?, [["7"], ["9"]], "{fence}");
        // Prepared anew it gets a key.
        let anew = one.prepare(GIVEN)?.expect("it can be prepared");
        succeeds(&one.execute(&anew, &[])?);
        assert_eq!(row(&server, schema, "id", 7)?, [["0", "8"], ["1", "70"]]);
        // And back.
        one.run("ALTER TABLE t MODIFY id BIGINT AUTO_INCREMENT FIRST")?;
        server.run(schema, "DELETE FROM t")?;
        for (statement, id) in [(&given, "7"), (&always, "7")] {
            succeeds(&one.execute(statement, &[])?);
            assert_eq!(ids(&server, schema)?, [[id]], "{fence}");
            server.run(schema, "DELETE FROM t")?;
        }
    }
    Ok(())
}

fn a_look_finds_columns_that_others_moved(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    for (schema, fence) in ["fenced", "open"].into_iter().zip(FENCES) {
        let (_proxy, mut one, _) = begin_with(&server, schema, (fence, 1))?;
        let given = one.prepare(GIVEN)?.expect("it can be prepared");
        succeeds(&one.execute(&given, &[])?);
        server.run(schema, MOVES)?;
        wait_until("the look", WAIT_MAX, || {
            Ok(is_refused(&one.execute(&given, &[])?))
        })?;
        let before = ids(&server, schema)?;
        for _ in 0..2 {
            let replies = one.execute(&given, &[])?;
            assert!(is_refused(&replies), "{fence}{replies:?}");
        }
        assert_eq!(ids(&server, schema)?, before, "{fence}");
    }
    Ok(())
}

fn what_was_prepared_stays_in_its_database(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    let (_proxy, mut one, mut other) = begin(&server, "here")?;
    server.run(
        "mysql",
        "CREATE DATABASE there; CREATE TABLE there.t LIKE here.t",
    )?;
    let mut prepare =
        |text: &str| -> Result<_> { Ok(one.prepare(text)?.expect("it can be prepared")) };
    let plain = prepare("INSERT INTO t (a, b) VALUES (?, 0)")?;
    let query = prepare("INSERT INTO t (a, b) SELECT ?, 0")?;
    let bound = prepare("INSERT INTO t (id, a, b) VALUES (?, ?, 0)")?;
    let named = prepare("INSERT INTO here.t (id, a, b) VALUES (?, ?, 0)")?;
    let number = Param::Signed;
    one.run("USE there")?;
    succeeds(&one.execute(&plain, &[number(1)])?);
    other.run("ALTER TABLE t COMMENT = 'so that statements are looked at again'")?;
    succeeds(&one.execute(&plain, &[number(2)])?);
    succeeds(&one.execute(&query, &[number(3)])?);
    // For a key it needs another text, which would be for the other table.
    let replies = one.execute(&bound, &[Param::Null, number(4)])?;
    assert!(is_refused(&replies), "{replies:?}");
    succeeds(&one.execute(&named, &[Param::Null, number(5)])?);
    one.run("USE here")?;
    succeeds(&one.execute(&bound, &[Param::Null, number(6)])?);
    one.run("USE there")?;
    succeeds(&one.execute(&bound, &[Param::Null, number(7)])?);
    for a in [1, 2, 3, 5, 6, 7] {
        assert_eq!(row(&server, "here", "id", a)?, [["1", "0"]], "{a}");
    }
    assert!(row(&server, "here", "id", 4)?.is_empty());
    assert!(ids(&server, "there")?.is_empty());
    Ok(())
}

fn ids(server: &Upstream, schema: &str) -> Result<Vec<Vec<String>>> {
    server.run(schema, "SELECT id FROM t ORDER BY id")
}

fn a_key_column_may_go_and_come_back(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    let schema = "renamed";
    let (proxy, mut one, mut other) = begin(&server, schema)?;
    let insert = one
        .prepare("INSERT INTO t (a, b) VALUES (?, 0)")?
        .expect("it can be prepared");
    let query = one
        .prepare("INSERT INTO t (a, b) SELECT ?, 0")?
        .expect("it can be prepared");
    let both = |one: &mut Wire, key: &str, a: i64, has_key: &str| -> Result<()> {
        succeeds(&one.execute(&insert, &[Param::Signed(a)])?);
        succeeds(&one.execute(&query, &[Param::Signed(a + 1)])?);
        one.run(format!("INSERT INTO t (a, b) VALUES ({}, 0)", a + 2))?;
        for a in a..a + 3 {
            assert_eq!(row(&server, schema, key, a)?, [[has_key, "0"]], "{a}");
        }
        Ok(())
    };
    both(&mut one, "id", 1, "1")?;
    server.run(schema, "DELETE FROM t")?;
    // The rule's column is not there: the statement is for no rule.
    other.run("ALTER TABLE t CHANGE id nr BIGINT AUTO_INCREMENT")?;
    other.run("ALTER TABLE t AUTO_INCREMENT = 1")?;
    both(&mut one, "nr", 11, "0")?;
    other.run("DROP TABLE t")?;
    other.run("CREATE TABLE t (a INT, b INT, id BIGINT AUTO_INCREMENT PRIMARY KEY)")?;
    both(&mut one, "id", 21, "1")?;
    // Whoever defines it past the program is found out by the error.
    server.run(schema, "ALTER TABLE t CHANGE id nr BIGINT AUTO_INCREMENT")?;
    let failed = one.query("INSERT INTO t (a, b) VALUES (31, 0)")?;
    assert!(
        matches!(failed.as_slice(), [Reply::Failed(fault)] if fault.errno == 1054),
        "{failed:?}"
    );
    server.run(schema, "DELETE FROM t")?;
    server.run(schema, "ALTER TABLE t AUTO_INCREMENT = 1")?;
    both(&mut one, "nr", 31, "0")?;
    // A new connection asks as well.
    other.run("ALTER TABLE t CHANGE nr id BIGINT AUTO_INCREMENT")?;
    proxy
        .wire(schema)?
        .run("INSERT INTO t (a, b) VALUES (41, 0)")?;
    assert_eq!(row(&server, schema, "id", 41)?, [["1", "0"]]);
    Ok(())
}

fn what_was_prepared_goes_into_a_temporary_table_made_out_of_sight(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    let schema = "hiding";
    let (_proxy, mut one, _) = begin(&server, schema)?;
    server.run(
        schema,
        "CREATE PROCEDURE p() CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b INT)",
    )?;
    let mut prepare =
        |text: &str| -> Result<_> { Ok(one.prepare(text)?.expect("it can be prepared")) };
    let insert = prepare("INSERT INTO t (a, b) VALUES (?, ?)")?;
    let query = prepare("INSERT INTO t (a, b) SELECT ?, ?")?;
    let call = prepare("CALL p()")?;
    let number = Param::Signed;
    succeeds(&one.execute(&insert, &[number(1), number(10)])?);
    succeeds(&one.execute(&query, &[number(2), number(20)])?);
    succeeds(&one.execute(&call, &[])?);
    for (statement, id) in [(&insert, 1), (&query, 2), (&insert, 3)] {
        let replies = one.execute(statement, &[number(3), number(30)])?;
        let ids: Vec<u64> = replies
            .iter()
            .filter_map(|reply| match reply {
                Reply::Done(done) => Some(done.last_insert_id),
                _ => None,
            })
            .collect();
        assert_eq!(
            ids,
            [id],
            "the temporary table numbers its rows by itself: {replies:?}"
        );
    }
    one.run("DROP TEMPORARY TABLE t")?;
    succeeds(&one.execute(&insert, &[number(4), number(40)])?);
    succeeds(&one.execute(&query, &[number(5), number(50)])?);
    for (a, b) in [(1, "10"), (2, "20"), (4, "40"), (5, "50")] {
        assert_eq!(row(&server, schema, "id", a)?, [["1", b]]);
    }
    assert!(row(&server, schema, "id", 3)?.is_empty());
    Ok(())
}
