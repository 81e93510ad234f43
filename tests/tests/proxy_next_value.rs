//! `SELECT NEXT VALUE FOR` a table with a rule: keys before the INSERT, as text and prepared, of every kind.

use std::collections::BTreeSet;

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Reply, Result, Upstream, Value, Wire, assert_has,
    make_store,
};

keywright_testkit::on_both_flavours!(
    keys_come_before_their_rows,
    keys_of_every_kind_can_be_asked_for,
    what_is_no_table_with_a_rule_is_the_servers,
    keys_are_logged_where_the_rule_says_so,
);

/// The rows of an execution.
fn executed(wire: &mut Wire, sql: &str) -> Result<Vec<Vec<String>>> {
    let statement = wire.prepare(sql)??;
    assert!(statement.params.is_empty(), "{sql} has no parameters");
    match wire.execute(&statement, &[])?.as_slice() {
        [Reply::Rows(rows)] => Ok(rows.as_text()),
        other => panic!("{sql}: {other:?}"),
    }
}

fn keys_come_before_their_rows(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE before_it; CREATE TABLE before_it.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE DATABASE before_other",
    )?;
    let store = make_store(&server, "store_before", &[("t", 1)])?;
    let config = ProxyConfig::before(&server, &store).rule("before_it.orders", "segment:t");
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("before_it")?;
    let mut keys = BTreeSet::new();
    let mut count = 0;
    let first = wire
        .run("INSERT INTO orders (a) VALUES (1)")?
        .last_insert_id;
    for round in 0..20 {
        for sql in [
            "SELECT NEXT VALUE FOR orders",
            "select next value for `before_it`.`orders` as id",
            "SELECT NEXT 7 VALUES FOR orders",
        ] {
            let rows = match round % 2 {
                0 => wire.rows(sql)?,
                _ => executed(&mut wire, sql)?,
            };
            count += rows.len();
            for row in rows {
                keys.insert(row[0].parse::<u64>()?);
            }
        }
    }
    assert_eq!((count, keys.len()), (180, 180), "each came once");
    // No row went in, so nothing else has changed.
    assert_eq!(wire.rows("SELECT LAST_INSERT_ID()")?, [[first.to_string()]]);
    for key in &keys {
        wire.run(format!("INSERT INTO orders (id, a) VALUES ({key}, 2)"))?;
    }
    for row in 0..300 {
        let id = wire.run(format!("INSERT INTO orders (a) VALUES ({row})"))?;
        assert!(keys.insert(id.last_insert_id), "{id:?} came twice");
    }
    // It names its table once and for all.
    let statement = wire.prepare("SELECT NEXT VALUE FOR orders")??;
    wire.run("USE before_other")?;
    match wire.execute(&statement, &[])?.as_slice() {
        [Reply::Rows(rows)] => assert!(keys.insert(rows.as_text()[0][0].parse()?)),
        other => panic!("{other:?}"),
    }
    // A cursor over several of them.
    let statement = wire.prepare("SELECT NEXT 5 VALUES FOR before_it.orders")??;
    wire.open_cursor(&statement, &[])?;
    let mut fetched = Vec::new();
    while fetched.len() < 5 {
        let rows = wire.fetch(&statement, 2)?.as_text();
        assert!(!rows.is_empty());
        fetched.extend(rows);
    }
    for row in fetched {
        assert!(keys.insert(row[0].parse()?), "{row:?} came twice");
    }
    let many = wire.rows("SELECT NEXT 1000 VALUES FOR before_it.orders")?;
    assert_eq!(many.len(), 1000);
    match wire
        .query("SELECT NEXT 1001 VALUES FOR before_it.orders")?
        .as_slice()
    {
        [Reply::Failed(fault)] => assert_eq!(fault.errno, 1235),
        other => panic!("{other:?}"),
    }
    Ok(())
}

fn keys_of_every_kind_can_be_asked_for(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE next_kinds; USE next_kinds;
         CREATE TABLE flake (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE u36 (id CHAR(36) PRIMARY KEY, a INT);
         CREATE TABLE u16 (id BINARY(16) PRIMARY KEY, a INT);",
    )?;
    let store = make_store(&server, "store_next_kinds", &[("t", 1)])?;
    let config = ProxyConfig::before(&server, &store)
        .rule("next_kinds.flake", "snowflake")
        .rule("next_kinds.u36", "uuid_v7:text36")
        .rule("next_kinds.u16", "uuid_v7:bytes16");
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("next_kinds")?;
    for (table, form) in [("flake", "%s"), ("u36", "'%s'"), ("u16", "UUID")] {
        let sql = format!("SELECT NEXT 2 VALUES FOR {table}");
        for prepared in [false, true] {
            let statement = wire.prepare(&sql)??;
            let replies = match prepared {
                true => wire.execute(&statement, &[])?,
                false => wire.query(&sql)?,
            };
            let [Reply::Rows(rows)] = replies.as_slice() else {
                panic!("{sql}: {replies:?}");
            };
            assert_eq!(rows.rows.len(), 2, "{sql}");
            for row in &rows.rows {
                let key = match &row[0] {
                    Value::Bytes(bytes) => bytes.clone(),
                    number => number.to_string().into_bytes(),
                };
                let value = match form {
                    "UUID" => {
                        assert_eq!(key.len(), 16, "{sql}");
                        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                        format!("x'{digits}'")
                    }
                    form => {
                        let key = String::from_utf8(key)?;
                        assert!(table != "u36" || key.len() == 36, "{key}");
                        form.replace("%s", &key)
                    }
                };
                wire.run(format!("INSERT INTO {table} (id, a) VALUES ({value}, 1)"))?;
            }
        }
        let rows = wire.rows(format!("SELECT COUNT(*) FROM {table}"))?;
        assert_eq!(rows, [["4"]], "{table}");
    }
    Ok(())
}

fn what_is_no_table_with_a_rule_is_the_servers(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE next_own; USE next_own;
         CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE bare (a INT)",
    )?;
    if flavour == Flavour::MariaDb {
        server.run(
            "next_own",
            "CREATE SEQUENCE s; CREATE SEQUENCE t_seq START WITH 5",
        )?;
    }
    let store = make_store(&server, "store_next_own", &[("t", 1)])?;
    let config = ProxyConfig::before(&server, &store).rule("next_own.*", "segment:t");
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("next_own")?;
    let mut direct = Wire::connect_tcp(server.port(), &keywright_testkit::Login::root("next_own"))?;
    for sql in [
        "SELECT NEXT VALUE FOR bare",
        "SELECT NEXT VALUE FOR missing",
        "SELECT NEXT VALUE FOR t + 1",
        "SELECT NEXT VALUE FOR t, 1",
        "SELECT NEXT 0 VALUES FOR t",
    ] {
        let failed = |replies: Vec<Reply>| match replies.as_slice() {
            [Reply::Failed(fault)] => fault.errno,
            other => panic!("{sql}: {other:?}"),
        };
        assert_eq!(
            failed(wire.query(sql)?),
            failed(direct.query(sql)?),
            "{sql}"
        );
    }
    if flavour == Flavour::MariaDb {
        assert_eq!(wire.rows("SELECT NEXT VALUE FOR s")?, [["1"]]);
        assert_eq!(direct.rows("SELECT NEXT VALUE FOR s")?, [["2"]]);
        assert_eq!(executed(&mut wire, "SELECT NEXT VALUE FOR s")?, [["3"]]);
        assert_eq!(executed(&mut wire, "SELECT NEXT VALUE FOR t_seq")?, [["5"]]);
        assert_eq!(wire.rows("SELECT NEXTVAL(s)")?, [["4"]]);
    }
    // A temporary table hides the rule's.
    wire.run("CREATE TEMPORARY TABLE t (id BIGINT PRIMARY KEY)")?;
    assert!(wire.rows("SELECT NEXT VALUE FOR t").is_err());
    wire.run("DROP TEMPORARY TABLE t")?;
    assert_eq!(wire.rows("SELECT NEXT VALUE FOR t")?.len(), 1);
    Ok(())
}

fn keys_are_logged_where_the_rule_says_so(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE next_log; USE next_log;
         CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE quiet LIKE t; CREATE TABLE u (id CHAR(36) PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "store_next_log", &[("t", 4000), ("q", 7000)])?;
    let mut config = ProxyConfig::before(&server, &store)
        .rule("next_log.t", "segment:t")
        .rule("next_log.u", "uuid_v7")
        .rule("next_log.quiet", "segment:q");
    config.rules[0].push_str("log_keys = true\n");
    config.rules[1].push_str("log_keys = true\n");
    let mut proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("next_log")?;
    wire.run("INSERT INTO t (a) VALUES (1), (2)")?;
    wire.run("INSERT INTO quiet (a) VALUES (1)")?;
    let key = &wire.rows("SELECT NEXT VALUE FOR t")?[0][0];
    assert_eq!(key, "4002");
    let uuid = &wire.rows("SELECT NEXT VALUE FOR u")?[0][0];
    proxy.stop()?;
    let log = proxy.log();
    assert_has(
        &log,
        &[
            "keys given rule=\"next_log.t.id\" first=4000 spacing=1 count=2",
            "keys given rule=\"next_log.t.id\" first=4002",
            "keys given rule=\"next_log.u.id\"",
            uuid,
        ],
    );
    assert!(
        !log.contains("7000") && !log.contains("quiet.id\" first"),
        "{log}"
    );
    let of_connection = log
        .lines()
        .filter(|line| line.contains("keys given"))
        .all(|line| line.contains("connection{connection="));
    assert!(of_connection, "{log}");
    Ok(())
}
