//! What operators ask of the proxy: explanations, checks, figures, the way back.

use keywright_tests::{
    Flavour, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, command, make_store,
};

keywright_tests::on_both_flavours!(
    statements_are_explained,
    general_logs_are_explained,
    the_way_back_is_told,
    dependents_are_looked_at,
);

/// What the program printed; an error unless it succeeded.
fn said(config: &ProxyConfig, arguments: &[&str]) -> Result<String> {
    let output = ProxyProcess::command(config, arguments)?;
    anyhow::ensure!(output.status.success(), "{arguments:?}: {output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

fn statements_are_explained(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE explained; CREATE TABLE explained.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "store_explained", &[("t", 1)])?;
    let config = ProxyConfig::before(&server, &store).rule("explained.*", "segment:t");
    let of = |text: &str| said(&config, &["explain", "--database", "explained", text]);
    assert_has(
        &of("INSERT INTO t (a) VALUES (1), (2) /* why */")?,
        &[
            "rule       1: explained.*, column id, key segment:t\n",
            "examples",
            "INSERT INTO t (`id`,a) VALUES (LAST_INSERT_ID(1001),1), (1002,2) /* why */\n",
        ],
    );
    // The live columns are asked for.
    assert_has(
        &of("INSERT INTO t VALUES (0, 1)")?,
        &["INSERT INTO t (`id`,`a`) VALUES (LAST_INSERT_ID(1001), 1)\n"],
    );
    assert_has(
        &of("REPLACE INTO t SELECT * FROM t")?,
        &["refused (insert_select)", "INSERT … SELECT"],
    );
    assert_has(
        &of("INSERT INTO t VALUES (7, 1)")?,
        &["every row brings a key"],
    );
    assert_has(
        &of("INSERT INTO elsewhere.t VALUES (7, 1)")?,
        &["rule       none", "no rule matches its table"],
    );
    assert_has(&of("SELECT 1")?, &["it is no INSERT or REPLACE"]);
    let without_admin = ProxyConfig {
        upstream_ports: Vec::new(),
        listener: String::new(),
        more: "[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:2\"".to_owned(),
        ..config.clone()
    };
    assert_has(
        &said(
            &without_admin,
            &["explain", "INSERT INTO explained.t VALUES (1, 2)"],
        )?,
        &["note: without a listener's admin url", "no column list"],
    );
    let rows = server.run("explained", "SELECT COUNT(*) FROM t")?;
    assert_eq!(rows, [["0"]], "explaining carries nothing out");
    Ok(())
}

fn general_logs_are_explained(flavour: Flavour) -> Result<()> {
    let server = Upstream::start_with(
        flavour,
        &["--general-log=1", "--general-log-file=general.log"],
    )?;
    server.run(
        "mysql",
        "CREATE DATABASE logged; CREATE TABLE logged.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(9))",
    )?;
    let store = make_store(&server, "store_logged", &[("t", 1)])?;
    let config = ProxyConfig::before(&server, &store).rule("logged.*", "segment:t");
    let insert = "INSERT INTO t (a)\n VALUES ('a\n\tb')";
    let mut one = server.wire("logged")?;
    let mut other = server.wire("mysql")?;
    one.run(insert)?;
    assert!(other.run(insert).is_err(), "no such table");
    other.run("USE logged")?;
    other.run(insert)?;
    other.command(command::INIT_DB, b"mysql")?;
    assert!(other.run(insert).is_err(), "no such table");
    let prepared = one.prepare("INSERT INTO t (a) VALUES (?)")??;
    for value in [b"x".as_slice(), b"it's"] {
        one.execute(&prepared, &[Param::Text(value.to_vec())])?;
    }
    one.run("INSERT INTO t (a) SELECT a FROM t")?;
    one.run("INSERT INTO t VALUES (1000, 'z')")?;
    one.run("PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'")?;
    one.run("EXECUTE s")?;
    drop((one, other));
    let log = server.data_dir().join("general.log");
    let log = log.to_str().unwrap_or_default();
    let summary = said(&config, &["explain", "--file", log])?;
    assert_has(
        &summary,
        &[
            "rule 1: logged.*, column id, key segment:t\n",
            "          5  rewritten; the first on line ",
            "          1  refused (insert_select); the first on line ",
            "          2  passed as they are; the first on line ",
        ],
    );
    // The line is where the statement begins.
    let text = std::fs::read(log)?;
    let text = String::from_utf8_lossy(&text);
    let line = 1 + text
        .lines()
        .position(|line| line.ends_with("INSERT INTO t (a) SELECT a FROM t"))
        .unwrap_or_default();
    assert_has(
        &summary,
        &[&format!("(insert_select); the first on line {line}: ")],
    );
    Ok(())
}

fn the_way_back_is_told(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE back_0; CREATE DATABASE back_1;
         CREATE TABLE back_0.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE back_0.small (id INT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE back_0.`it's` (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE back_0.plain (id BIGINT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "store_back", &[("t", 500)])?;
    let mut config = ProxyConfig::before(&server, &store)
        .rule("back_0.*", "segment:t")
        .rule("back_1.*", "segment:t");
    for rule in &mut config.rules {
        rule.push_str("fence = true\nbits_max = 31\n");
    }
    let mut proxy = ProxyProcess::start(config.clone())?;
    let tables = ["t", "small", "`it's`"];
    for table in tables {
        proxy
            .wire("back_0")?
            .run(format!("INSERT INTO {table} (a) VALUES (1), (2)"))?;
    }
    proxy
        .wire("back_0")?
        .run("INSERT INTO small (id) VALUES (2147483647)")?;
    proxy.stop()?;
    let insert = "INSERT INTO back_0.t (a) VALUES (3)";
    assert!(server.wire("")?.run(insert).is_err(), "the fence stands");
    let told = said(&config, &["back", "--rule", "back_0.*"])?;
    assert_has(
        &told,
        &[
            "-- Rule 1: back_0.*, column id. 4 table(s) on 1 server(s); the highest id of all is 2147483647.",
            "`plain`: `id` is bigint",
            "no AUTO_INCREMENT column",
            "-- `back_0`.`small`: `id` is int",
            "there is no room above it",
        ],
    );
    assert!(!told.contains("back_1"), "{told}");
    assert!(
        server.wire("")?.run(insert).is_err(),
        "nothing was carried out"
    );
    // What is printed is a file that can be run.
    server.run("mysql", &told)?;
    for (table, next) in [("t", None), ("`it's`", None), ("small", Some(1467))] {
        let mut wire = server.wire("back_0")?;
        let highest = wire
            .rows(format!("SELECT MAX(id) FROM {table}"))?
            .concat()
            .concat();
        let inserted = wire.query(format!("INSERT INTO {table} (a) VALUES (3)"))?;
        match (inserted.as_slice(), next) {
            ([Reply::Done(done)], None) => {
                assert_eq!(done.last_insert_id, highest.parse::<u64>()? + 1, "{table}");
            }
            ([Reply::Failed(fault)], Some(errno)) => assert_eq!(fault.errno, errno),
            (other, _) => panic!("{table}: {other:?}"),
        }
    }
    // Two servers share the numbers out.
    let two = ProxyConfig {
        upstream_ports: vec![server.port(), 1],
        ..config.clone()
    };
    let output = ProxyProcess::command(&two, &["back"])?;
    assert!(
        !output.status.success(),
        "a server that is away is an error"
    );
    let unknown = ProxyProcess::command(&config, &["back", "--rule", "back_9.*"])?;
    assert!(!unknown.status.success(), "{unknown:?}");
    Ok(())
}

fn dependents_are_looked_at(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE looked; USE looked;
         CREATE TABLE narrow (id INT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE t (id CHAR(36) PRIMARY KEY, a INT);
         CREATE TABLE child (t CHAR(20), FOREIGN KEY (t) REFERENCES t (id));
         CREATE VIEW seen AS SELECT * FROM t;
         CREATE VIEW counted AS SELECT COUNT(*) FROM t;
         CREATE EVENT once ON SCHEDULE AT NOW() + INTERVAL 1 DAY DO REPLACE looked.t (a) VALUES (1);
         CREATE USER app@'10.1.2.%', everywhere@'%';
         DELIMITER //
         CREATE PROCEDURE fill() BEGIN INSERT INTO t (a) VALUES (1); END//
         CREATE PROCEDURE quote() BEGIN SELECT 'INSERT INTO t (a) VALUES (1)'; END//
         CREATE TRIGGER copied AFTER INSERT ON narrow FOR EACH ROW INSERT INTO looked.t (a) VALUES (NEW.a)//",
    )?;
    let store = make_store(&server, "store_looked", &[("t", 1)])?;
    let config = ProxyConfig::before(&server, &store)
        .rule("looked.t", "uuid_v7")
        .rule("looked.narrow", "segment:t");
    let output = ProxyProcess::command(&config, &["check"])?;
    let told = String::from_utf8(output.stdout)?;
    assert!(!output.status.success(), "{told}");
    assert_has(
        &told,
        &[
            "error: looked.narrow.id is int",
            "error: looked.child.t, which refers to looked.t.id, is char(20), and keys have 36 characters\n",
            "warning: procedure looked.fill inserts into looked.t: ",
            "warning: trigger looked.copied inserts into looked.t: ",
            "warning: event looked.once inserts into looked.t: ",
            "warning: view looked.seen shows looked.t: ",
            "app@10.1.2.%",
        ],
    );
    for innocent in ["quote", "counted", "everywhere"] {
        assert!(!told.contains(innocent), "{innocent} is in\n{told}");
    }
    // Starting meets the same problems, all of them at once.
    let refused = format!("{:#}", ProxyProcess::start(config).map(drop).unwrap_err());
    assert_has(
        &refused,
        &["2 problem(s)", "looked.narrow.id", "looked.child.t"],
    );
    Ok(())
}
