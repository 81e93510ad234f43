//! Tables that change under connections that are open: what others define takes effect at once, for prepared statements too.

use keywright_testkit::{
    Flavour, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, Wire, make_store,
};

keywright_testkit::on_both_flavours!(
    values_follow_columns_that_move,
    a_key_column_may_go_and_come_back,
    what_was_prepared_goes_into_a_temporary_table_made_out_of_sight,
);

const KEY_FIRST: i64 = 5_000_000;

/// A proxy with a rule for `t`, and two connections.
fn begin(server: &Upstream, schema: &str) -> Result<(ProxyProcess, Wire, Wire)> {
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
    config.more = "[limits]\nschema_refresh_s = 86400".to_owned();
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
