//! Keys of every kind keep to what is theirs, however an INSERT comes.

mod above_tables;

use keywright_testkit::{
    Flavour, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, Wire, assert_has,
    make_store,
};

keywright_testkit::on_both_flavours!(
    keys_that_are_not_one_apart_keep_to_their_own,
    a_small_key_space_is_used_to_its_end,
    a_number_of_the_servers_own_beside_a_uuid_is_the_last_id,
    a_uuid_that_comes_to_null_is_none,
    a_query_brings_uuids_of_its_own,
    a_uuid_is_computed_as_natively_where_null_is_an_error,
);

/// Three rows in each way that a client has; the ids that a driver takes them to have, from the first.
fn insert_in_all_ways(wire: &mut Wire, table: &str, increment: u64) -> Result<Vec<u64>> {
    let text = format!("INSERT INTO {table} (a) VALUES (1), (2), (3)");
    let mut firsts = vec![wire.run(&text)?.last_insert_id];
    let nulls = format!("INSERT INTO {table} VALUES (?, 1), (?, 2), (?, 3)");
    for (sql, params) in [
        (&text, &[][..]),
        (&nulls, &[Param::Null, Param::Null, Param::Null]),
    ] {
        let statement = wire.prepare(sql)??;
        for _ in 0..2 {
            match wire.execute(&statement, params)?.as_slice() {
                [Reply::Done(done)] => firsts.push(done.last_insert_id),
                other => panic!("{sql}: {other:?}"),
            }
        }
    }
    let ids = firsts
        .iter()
        .flat_map(|first| (0..3).map(move |row| first + row * increment));
    Ok(ids.collect())
}

fn keys_that_are_not_one_apart_keep_to_their_own(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE apart; CREATE TABLE apart.stride (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE apart.flake (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE apart.many (a INT); INSERT INTO apart.many VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)",
    )?;
    let store = make_store(&server, "store_apart", &[("t", 1)])?;
    let mut config = ProxyConfig::before(&server, &store)
        .rule("apart.stride", "stride:t")
        .rule("apart.flake", "snowflake");
    config.rules[0].push_str("offset = 2\nincrement = 3\n");
    config.more = "[snowflake]\nlayout = \"sonyflake\"\nworker_id = 7\n".to_owned();
    let output = ProxyProcess::said(&config, &["check"])?;
    assert_has(
        &output,
        &[
            "keys of apart.stride.id are 3 apart",
            "keys of apart.flake.id are 65536 apart, and auto_increment_increment is 1, by which drivers compute the keys of several rows from the first: no value",
        ],
    );
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("apart")?;
    insert_in_all_ways(&mut wire, "stride", 1)?;
    wire.run("SET auto_increment_increment = 3")?;
    let drivers = insert_in_all_ways(&mut wire, "stride", 3)?;
    insert_in_all_ways(&mut wire, "flake", 3)?;
    // A tick of the layout has 256 keys, which is fewer than the second try's 512, or the first try's 64 so far apart.
    for (increment, rows) in [(1, 100), (5, 50)] {
        wire.run(format!("SET auto_increment_increment = {increment}"))?;
        let select = format!(
            "INSERT INTO flake (a) SELECT one.a FROM many one, many other WHERE other.a <= {}",
            rows / 10
        );
        assert_eq!(wire.run(&select)?.affected_rows, rows);
    }
    let strays = server.run("apart", "SELECT id FROM stride WHERE id % 3 <> 2")?;
    assert!(strays.is_empty(), "ids of other strides: {strays:?}");
    // The worker id is behind the sequence in this layout.
    let strays = server.run("apart", "SELECT id FROM flake WHERE id & 65535 <> 7")?;
    assert!(strays.is_empty(), "ids of other workers: {strays:?}");
    for id in drivers {
        let there = server.run("apart", &format!("SELECT 1 FROM stride WHERE id = {id}"))?;
        assert_eq!(there.len(), 1, "a driver takes a row to have id {id}");
    }
    Ok(())
}

fn a_small_key_space_is_used_to_its_end(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE small; CREATE DATABASE store_small;
         CREATE TABLE small.t (id SMALLINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE small.other (id BIGINT AUTO_INCREMENT PRIMARY KEY);
         CREATE TABLE small.more LIKE small.other",
    )?;
    let store = format!("mysql://root@127.0.0.1:{}/store_small", server.port());
    let mut config = ProxyConfig::before(&server, &store)
        .rule("small.t", "segment:small")
        .rule("small.other", "segment:large")
        .rule("small.more", "segment:large");
    for (rule, bits) in config.rules.iter_mut().zip([15, 15, 53]) {
        rule.push_str(&format!("bits_max = {bits}\n"));
    }
    ProxyProcess::said(&config, &["init"])?;
    let tags = "SELECT tag, id_max, step, step_min FROM keywright_segment ORDER BY id_max";
    assert_eq!(
        server.run("store_small", tags)?,
        [
            ["small", "32767", "32", "32"],
            ["large", "9007199254740991", "1000", "1000"]
        ]
    );
    server.run(
        "store_small",
        "UPDATE keywright_segment SET hi = 32766 WHERE tag = 'small'",
    )?;
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("small")?;
    let done = wire.run("INSERT INTO t (a) VALUES (1), (2)")?;
    assert_eq!(done.last_insert_id, 32766);
    match wire.query("INSERT INTO t (a) VALUES (3)")?.as_slice() {
        [Reply::Failed(fault)] => {
            assert_eq!(fault.errno, 1467);
            let message = String::from_utf8_lossy(&fault.message);
            assert_has(&message, &["\"small\"", "exhausted", "32767"]);
        }
        other => panic!("{other:?}"),
    }
    Ok(())
}

fn a_number_of_the_servers_own_beside_a_uuid_is_the_last_id(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE beside; USE beside;
         CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE);
         CREATE TABLE u (id CHAR(36) PRIMARY KEY, n BIGINT AUTO_INCREMENT UNIQUE, a INT UNIQUE)",
    )?;
    let store = make_store(&server, "store_beside", &[("t", 100)])?;
    let config = ProxyConfig::before(&server, &store)
        .rule("beside.t", "segment:t")
        .rule("beside.u", "uuid_v7");
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("beside")?;
    let upsert = "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 1";
    assert_eq!(wire.run(upsert)?.last_insert_id, 100);
    assert_eq!(wire.run("INSERT INTO u (a) VALUES (1)")?.last_insert_id, 1);
    assert_eq!(wire.rows("SELECT LAST_INSERT_ID()")?, [["1"]]);
    wire.run("INSERT INTO t (a) VALUES (2)")?;
    assert_eq!(wire.run("INSERT INTO u (a) VALUES (2)")?.last_insert_id, 2);
    // Fails, and leaves it.
    assert!(wire.run("INSERT INTO t (a) VALUES (2)").is_err());
    assert_eq!(wire.rows("SELECT LAST_INSERT_ID()")?, [["2"]]);
    Ok(())
}

/// A row whose key is NULL would be stored without one, and without an error.
fn a_uuid_that_comes_to_null_is_none(flavour: Flavour) -> Result<()> {
    const OWN: &str = "6ccd780c-baba-1026-9564-5b8c656024db";
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE nulls; USE nulls;
         CREATE TABLE u (k INT AUTO_INCREMENT PRIMARY KEY, id CHAR(36) NULL UNIQUE, a INT)",
    )?;
    let store = make_store(&server, "store_nulls", &[])?;
    let proxy = ProxyProcess::start(
        ProxyConfig::before(&server, &store).rule("nulls.u", "uuid_v7:text36"),
    )?;
    let mut wire = proxy.wire("nulls")?;
    for value in [
        "NULL",
        "@nothing",
        "(SELECT NULL)",
        "NULLIF('a', 'a')",
        "COALESCE(@nothing, NULL)",
        "LOWER(CONCAT('a', @nothing))",
    ] {
        wire.run(format!("INSERT INTO u (id, a) VALUES ({value}, 1)"))?;
    }
    wire.run("INSERT IGNORE INTO u (id, a) VALUES (UUID(), 2), (@nothing, 1)")?;
    wire.run(format!("SET @own = '{OWN}'"))?;
    wire.run("INSERT INTO u (id, a) VALUES (UPPER(@own), 3)")?;
    let counted = "SELECT COUNT(*), COUNT(id), SUM(SUBSTRING(id, 15, 1) = '7') FROM u WHERE a = 1";
    assert_eq!(wire.rows(counted)?, [["7", "7", "7"]]);
    let own = wire.rows("SELECT id FROM u WHERE a = 3")?;
    assert_eq!(own, [[OWN.to_uppercase()]]);
    let prepared = wire.prepare("INSERT INTO u (id, a) VALUES (NULLIF(?, ''), ?)")?;
    let fault = prepared.err().map(|fault| fault.errno);
    assert_eq!(fault, Some(1235));
    assert_eq!(wire.rows("SELECT COUNT(*) FROM u")?, [["9"]]);
    Ok(())
}

/// What is made without columns is no NULL in any row. Of the same key in two rows the server says so.
fn a_query_brings_uuids_of_its_own(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE own_rows; USE own_rows;
         CREATE TABLE u (id CHAR(36) PRIMARY KEY, a INT, g INT);
         CREATE TABLE n (a INT); INSERT INTO n VALUES (3), (1), (2)",
    )?;
    let store = make_store(&server, "store_own_rows", &[])?;
    let config = ProxyConfig::before(&server, &store).rule("own_rows.u", "uuid_v7:text36");
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("own_rows")?;
    let once = "INSERT INTO u (id, a) SELECT 'abc', 9 FROM DUAL WHERE NOT EXISTS (SELECT * FROM u WHERE a = 9)";
    for rows in [1, 0] {
        assert_eq!(wire.run(once)?.affected_rows, rows);
    }
    wire.run("INSERT INTO u (id, a) SELECT UUID(), a FROM n ORDER BY a")?;
    wire.run(
        "INSERT INTO u (id, a) SELECT LOWER(UUID()), COUNT(*) - 1 FROM n WHERE a = 1 GROUP BY a",
    )?;
    let statement = wire.prepare("INSERT INTO u (id, a) SELECT UUID(), ?")??;
    match wire.execute(&statement, &[Param::Signed(4)])?.as_slice() {
        [Reply::Done(done)] => assert_eq!(done.affected_rows, 1),
        other => panic!("{other:?}"),
    }
    for (query, errno) in [
        ("(id, a) SELECT 'abc', 5", 1062),
        ("(id, a) SELECT 'def', 5 FROM n", 1062),
        // On MariaDB the key is NULL where no row is found.
        (
            "(id, a, g) SELECT UUID(), COALESCE(MAX(a), 0) + 1, 5 FROM u WHERE g = 5",
            1235,
        ),
        (
            "(id, a) SELECT UUID(), 5 FROM n WHERE a = 7 HAVING COUNT(*) = 0",
            1235,
        ),
        (
            "(id, a) SELECT UUID(), 5 FROM n WHERE a = 7 ORDER BY MAX(a)",
            1235,
        ),
        (
            "(id, a) SELECT 'def' AS k, COUNT(*) FROM n GROUP BY k WITH ROLLUP",
            1235,
        ),
        ("(id, a) SELECT CONCAT('d', a), 5 FROM n", 1235),
    ] {
        let replies = wire.query(format!("INSERT INTO u {query}"))?;
        match replies.as_slice() {
            [Reply::Failed(fault)] => assert_eq!(fault.errno, errno, "{query}"),
            other => panic!("{query}: {other:?}"),
        }
    }
    let stored = wire.rows("SELECT a, CHAR_LENGTH(id) FROM u ORDER BY a")?;
    let expected = ["0", "1", "2", "3", "4"].map(|a| [a, "36"]);
    assert_eq!(stored.get(..5).unwrap_or_default(), expected);
    assert_eq!(stored.get(5..).unwrap_or_default(), [["9", "3"]]);
    Ok(())
}

/// Applications that bring keys of their own compute them so. The server itself refuses NULL in a column that is NOT NULL.
fn a_uuid_is_computed_as_natively_where_null_is_an_error(flavour: Flavour) -> Result<()> {
    const OWN: &str = "6ccd780c-baba-1026-9564-5b8c656024db";
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE own_keys; USE own_keys;
         CREATE TABLE u (id BINARY(16) PRIMARY KEY, a INT);
         CREATE TABLE n (id BINARY(16) NULL UNIQUE, a INT)",
    )?;
    let store = make_store(&server, "store_own_keys", &[])?;
    let config = ProxyConfig::before(&server, &store)
        .rule("own_keys.u", "uuid_v7:bytes16")
        .rule("own_keys.n", "uuid_v7:bytes16");
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("own_keys")?;
    let values: &[&str] = match flavour {
        Flavour::MariaDb => &["UNHEX(REPLACE(?, '-', ''))"],
        Flavour::MySql => &["UNHEX(REPLACE(?, '-', ''))", "UUID_TO_BIN(?)"],
    };
    for value in values {
        let insert = |table: &str| format!("INSERT INTO {table} (id, a) VALUES ({value}, ?)");
        let statement = wire.prepare(insert("u"))??;
        let own = Param::Text(OWN.as_bytes().to_vec());
        match wire
            .execute(&statement, &[own, Param::Signed(1)])?
            .as_slice()
        {
            [Reply::Done(done)] => assert_eq!(done.affected_rows, 1, "{value}"),
            other => panic!("{value}: {other:?}"),
        }
        match wire
            .execute(&statement, &[Param::Null, Param::Signed(2)])?
            .as_slice()
        {
            [Reply::Failed(fault)] => assert_eq!(fault.errno, 1048, "{value}"),
            other => panic!("{value}: {other:?}"),
        }
        let stored = wire.rows("SELECT HEX(id), a FROM u")?;
        assert_eq!(
            stored,
            [[OWN.replace('-', "").to_uppercase().as_str(), "1"]]
        );
        wire.run("DELETE FROM u")?;
        // There NULL would be stored.
        let refused = wire.prepare(insert("n"))?.err();
        assert_eq!(refused.map(|fault| fault.errno), Some(1235), "{value}");
    }
    // The server cannot be asked for this before.
    wire.run("INSERT INTO u (id, a) VALUES (UNHEX(LEFT(SHA2('x', 256), 32)), 3)")?;
    let null = wire.query("INSERT INTO u (id, a) VALUES (UNHEX(LEFT(SHA2(NULL, 256), 32)), 4)")?;
    match null.as_slice() {
        [Reply::Failed(fault)] => assert_eq!(fault.errno, 1048),
        other => panic!("{other:?}"),
    }
    wire.run("SET sql_mode = ''")?;
    let refused =
        wire.query("INSERT INTO u (id, a) VALUES (UNHEX(LEFT(SHA2('y', 256), 32)), 5)")?;
    match refused.as_slice() {
        [Reply::Failed(fault)] => assert_eq!(fault.errno, 1235),
        other => panic!("{other:?}"),
    }
    assert_eq!(wire.rows("SELECT a FROM u")?, [["3"]]);
    Ok(())
}
