//! `explain`: what would become of statements, and of those in real query logs.

use keywright_testkit::{
    Flavour, Param, ProxyConfig, ProxyProcess, Result, Upstream, assert_has, command, make_store,
};

keywright_testkit::on_both_flavours!(
    statements_are_explained,
    the_server_that_has_the_table_is_asked,
    general_logs_are_explained
);

fn statements_are_explained(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE explained; USE explained; CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE VIEW shown AS SELECT a, id AS nr FROM t; CREATE VIEW hidden AS SELECT a FROM t;
         CREATE DATABASE explained_uuids; CREATE TABLE explained_uuids.u (id CHAR(36) PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "store_explained", &[("t", 1)])?;
    let config = ProxyConfig::before(&server, &store).rule("explained.*", "segment:t");
    let none = ProxyProcess::command(&config, &["explain"])?;
    let told = String::from_utf8(none.stderr)?;
    assert_has(&told, &["<STATEMENT|--file <LOG>>"]);
    let of =
        |text: &str| ProxyProcess::said(&config, &["explain", "--database", "explained", text]);
    assert_has(
        &of("INSERT INTO t (a) VALUES (1), (2) /* why */")?,
        &[
            "rule       1: explained.*, column id, key segment:t\n",
            "examples",
            "INSERT INTO t (`id`,a) VALUES (1001,1), (LAST_INSERT_ID(1001)+1,2) /* why */\n",
        ],
    );
    // The live columns are asked for.
    assert_has(
        &of("INSERT INTO t VALUES (0, 1)")?,
        &["INSERT INTO t (`id`,`a`) VALUES (LAST_INSERT_ID(1001), 1)\n"],
    );
    assert_has(
        &of("INSERT INTO shown VALUES (1, 0)")?,
        &[
            "rule       1: explained.*, column nr, key segment:t, through the view explained.shown\n",
            "INSERT INTO shown (`a`,`nr`) VALUES (1, LAST_INSERT_ID(1001))\n",
        ],
    );
    assert_has(
        &of("INSERT INTO hidden VALUES (1)")?,
        &["refused (view)", "a view that does not show the key"],
    );
    assert_has(
        &of("REPLACE INTO t SELECT * FROM t")?,
        &["refused (insert_select)", "INSERT … SELECT"],
    );
    assert_has(
        &of("INSERT INTO t VALUES (7, 1)")?,
        &["every row brings its own key"],
    );
    assert_has(
        &of("INSERT INTO elsewhere.t VALUES (7, 1)")?,
        &["rule       none", "no rule matches its table"],
    );
    assert_has(&of("SELECT 1")?, &["it is no INSERT, REPLACE or LOAD DATA"]);
    assert_has(
        &of("INSERT INTO t (id) VALUES (?)")?,
        &["its key is a parameter"],
    );
    let depends = "the server is asked for the key's value first";
    assert_has(
        &of("INSERT INTO t (id, a) VALUES (@id + 1, 1)")?,
        &[depends, "NULL and 0 ask for a key, another integer is one"],
    );
    let uuids = ProxyConfig::before(&server, &store).rule("explained_uuids.u", "uuid_v7:text36");
    let text = "INSERT INTO explained_uuids.u (id, a) VALUES (@id, 1)";
    assert_has(
        &ProxyProcess::said(&uuids, &["explain", text])?,
        &[depends, "only NULL asks for a key, anything else is one"],
    );
    let without_admin = ProxyConfig {
        upstream_ports: Vec::new(),
        listener: String::new(),
        more: "[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:2\"".to_owned(),
        ..config.clone()
    };
    assert_has(
        &ProxyProcess::said(
            &without_admin,
            &["explain", "INSERT INTO explained.t VALUES (1, 2)"],
        )?,
        &["note: without a listener's admin url", "no column list"],
    );
    let json = |text: &str| {
        let arguments = [
            "explain",
            "--format",
            "json",
            "--database",
            "explained",
            text,
        ];
        ProxyProcess::said(&config, &arguments)
    };
    assert_has(
        &json("INSERT INTO shown VALUES (1, 0)")?,
        &[
            r#"{"rule":{"number":1,"table":"explained.*","column":"nr","key":"segment:t","mode":"rewrite","view":"explained.shown"},"outcome":"rewritten","construct":null,"statement":"INSERT INTO shown (`a`,`nr`) VALUES (1, LAST_INSERT_ID(1001))","error":null,"because":null,"notes":[]}"#,
        ],
    );
    assert_has(
        &json("INSERT INTO hidden VALUES (1)")?,
        &[r#""outcome":"refused","construct":"view","statement":null,"error":""#],
    );
    assert_has(
        &json("INSERT INTO t (id, a) VALUES (@id + 1, 1)")?,
        &[r#""outcome":"by_value","construct":null"#],
    );
    assert_has(
        &json("SELECT 1")?,
        &[
            r#"{"rule":null,"outcome":"untouched""#,
            r#""because":"it is no INSERT"#,
        ],
    );
    let rows = server.run("explained", "SELECT COUNT(*) FROM t")?;
    assert_eq!(rows, [["0"]], "explaining carries nothing out");
    Ok(())
}

fn the_server_that_has_the_table_is_asked(flavour: Flavour) -> Result<()> {
    let (one, other) = (Upstream::shared(flavour)?, Upstream::start(flavour)?);
    for (server, schema) in [(&*one, "asked_1"), (&other, "asked_2")] {
        server.run("mysql", &format!("CREATE DATABASE {schema}"))?;
        let table = "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
        server.run(schema, table)?;
    }
    let store = make_store(&one, "store_asked", &[("t", 1)])?;
    let config = ProxyConfig::before(&one, &store).rule("asked_*.t", "segment:t");
    let (first, second) = ("127.0.0.1:1", "127.0.0.1:2");
    let listener = |bind: &str, port: u16| {
        format!(
            "[[listener]]\nbind = \"{bind}\"\nupstream = \"127.0.0.1:{port}\"\nadmin = \"mysql://root@127.0.0.1:{port}\"\n"
        )
    };
    let config = ProxyConfig {
        upstream_ports: Vec::new(),
        listener: String::new(),
        more: listener(first, one.port()) + &listener(second, other.port()),
        ..config
    };
    let of = |options: &[&str], text: &str| {
        ProxyProcess::said(&config, &[&["explain"], options, &[text]].concat())
    };
    let becomes = "(`id`,`a`) VALUES (LAST_INSERT_ID(1001), 1)\n";
    let said = of(&[], "INSERT INTO asked_1.t VALUES (0, 1)")?;
    assert!(said.contains(becomes) && !said.contains("note:"), "{said}");
    let there = "INSERT INTO asked_2.t VALUES (0, 1)";
    let of_second = "note: as on 127.0.0.1:2, whose server has the table\n";
    assert_has(&of(&[], there)?, &[of_second, becomes]);
    let no_table = "the server that was asked has no such table";
    assert_has(&of(&["--listener", first], there)?, &[no_table]);
    assert_has(&of(&["--listener", second], there)?, &[becomes]);
    assert_has(
        &of(&[], "INSERT INTO asked_3.t VALUES (0, 1)")?,
        &[no_table],
    );
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
    one.run("INSERT INTO t (a) SELECT GET_LOCK('once', 0) FROM t")?;
    one.run("INSERT INTO t VALUES (1000, 'z')")?;
    one.run("PREPARE s FROM 'INSERT INTO t (a) VALUES (1)'")?;
    one.run("EXECUTE s")?;
    drop((one, other));
    let log = server.data_dir().join("general.log");
    let log = log.to_str().unwrap_or_default();
    let summary = ProxyProcess::said(&config, &["explain", "--file", log])?;
    assert_has(
        &summary,
        &[
            "rule 1: logged.*, column id, key segment:t\n",
            "          5  rewritten; the first on line ",
            "          1  refused (insert_select); the first on line ",
            "          2  passed as they are; the first on line ",
        ],
    );
    let json = ProxyProcess::said(&config, &["explain", "--format", "json", "--file", log])?;
    assert_has(
        &json,
        &[
            r#""rules":[{"rule":{"number":1,"table":"logged.*","column":"id","key":"segment:t","mode":"rewrite","view":null},"outcomes":[{"outcome":"rewritten","construct":null,"error":null,"count":5,"first_line":"#,
            r#"{"outcome":"refused","construct":"insert_select","error":""#,
        ],
    );
    // The line is where the statement begins.
    let text = std::fs::read(log)?;
    let text = String::from_utf8_lossy(&text);
    let line = 1 + text
        .lines()
        .position(|line| line.ends_with("INSERT INTO t (a) SELECT GET_LOCK('once', 0) FROM t"))
        .unwrap_or_default();
    assert_has(
        &summary,
        &[&format!("(insert_select); the first on line {line}: ")],
    );
    Ok(())
}
