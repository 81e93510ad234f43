//! What operators ask of the proxy: checks, looks while it runs, status, the way back.

use std::process::{Command, Stdio};

use keywright_tests::{
    Flavour, Login, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, Wire,
    assert_has, capability, free_port, make_store, wait_until,
};

keywright_tests::on_both_flavours!(
    the_way_back_is_told,
    servers_share_the_numbers_out_on_the_way_back,
    dependents_are_looked_at,
    servers_that_cannot_be_looked_at_are_an_error,
    an_address_that_is_taken_ends_it,
    tables_without_the_column_are_left_alone,
    a_reload_that_fails_keeps_the_rules,
    fences_are_looked_at_while_running,
    status_is_told_to_whom_may_see_it,
    observing_changes_nothing,
);

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
    let told = ProxyProcess::said(&config, &["back", "--rule", "back_0.*"])?;
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
    let unknown = ProxyProcess::command(&config, &["back", "--rule", "back_9.*"])?;
    assert!(!unknown.status.success(), "{unknown:?}");
    Ok(())
}

fn servers_share_the_numbers_out_on_the_way_back(flavour: Flavour) -> Result<()> {
    let servers = [Upstream::start(flavour)?, Upstream::start(flavour)?];
    for server in &servers {
        server.run(
            "mysql",
            "CREATE DATABASE shared; CREATE TABLE shared.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
        )?;
    }
    let [one, other] = &servers;
    let store = make_store(one, "store_shared", &[("t", 700)])?;
    let mut config = ProxyConfig::before(one, &store).rule("shared.t", "segment:t");
    config.upstream_ports.push(other.port());
    for rule in &mut config.rules {
        rule.push_str("fence = true\n");
    }
    let mut proxy = ProxyProcess::start(config.clone())?;
    let mut highest = 0;
    for port in proxy.ports().to_vec() {
        let mut wire = Wire::connect_tcp(port, &Login::root("shared"))?;
        highest = wire.run("INSERT INTO t (a) VALUES (1)")?.last_insert_id;
    }
    proxy.stop()?;
    let told = ProxyProcess::said(&config, &["back"])?;
    let mut ids = Vec::new();
    for server in &servers {
        let from = format!("-- On 127.0.0.1:{} ", server.port());
        let (_, its) = told.split_once(&from).unwrap_or_default();
        let (its, _) = its.split_once("\n-- On ").unwrap_or((its, ""));
        server.run("mysql", &format!("-- {its}"))?;
        for _ in 0..3 {
            let mut wire = server.wire("shared")?;
            ids.push(wire.run("INSERT INTO t (a) VALUES (2)")?.last_insert_id);
        }
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6, "{ids:?}");
    assert!(ids.iter().all(|id| *id > highest), "{ids:?}, {highest}");
    let away = ProxyConfig {
        upstream_ports: vec![one.port(), free_port()?],
        ..config
    };
    let output = ProxyProcess::command(&away, &["back"])?;
    assert!(!output.status.success(), "half of the way is none");
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
         CREATE VIEW hidden AS SELECT a FROM t;
         CREATE VIEW counted AS SELECT COUNT(*) FROM t;
         CREATE TABLE wide (nr BIGINT AUTO_INCREMENT PRIMARY KEY); CREATE VIEW narrow_not AS SELECT nr AS id FROM wide;
         CREATE EVENT once ON SCHEDULE AT NOW() + INTERVAL 1 DAY DO REPLACE looked.t (a) VALUES (1);
         CREATE USER app@'10.1.2.%', everywhere@'%', blind@'%';
         GRANT SELECT, ALTER ON looked.* TO blind@'%'; GRANT SELECT ON mysql.* TO blind@'%';
         DELIMITER //
         CREATE PROCEDURE fill() BEGIN INSERT INTO t (a) VALUES (1); END//
         CREATE PROCEDURE quote() BEGIN SELECT 'INSERT INTO t (a) VALUES (1)'; END//
         CREATE TRIGGER copied AFTER INSERT ON narrow FOR EACH ROW INSERT INTO looked.t (a) VALUES (NEW.a)//",
    )?;
    let store = make_store(&server, "store_looked", &[("t", 1)])?;
    let config = ProxyConfig::before(&server, &store)
        .rule("looked.t", "uuid_v7")
        .rule("looked.narrow*", "segment:t");
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
            "warning: an INSERT through looked.hidden, a view that does not show the key, gets no key and is refused\n",
            "warning: looked.narrow_not matches a rule and is a view, of no table with one: ",
            "app@10.1.2.%",
        ],
    );
    for innocent in ["quote", "counted", "looked.seen", "everywhere"] {
        assert!(!told.contains(innocent), "{innocent} is in\n{told}");
    }
    let port = server.port();
    let blind = ProxyConfig {
        more: format!(
            "[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:{port}\"\nadmin = \"mysql://blind@127.0.0.1:{port}\""
        ),
        ..config.clone()
    };
    let output = ProxyProcess::command(&blind, &["check"])?;
    assert_has(
        &String::from_utf8(output.stdout)?,
        &[
            "127.0.0.1:1: warning: looked.counted and 3 more views may not be seen, which takes SHOW VIEW",
        ],
    );
    // Starting meets the same problems, all of them at once.
    let refused = format!("{:#}", ProxyProcess::start(config).map(drop).unwrap_err());
    assert_has(
        &refused,
        &["2 problem(s)", "looked.narrow.id", "looked.child.t"],
    );
    Ok(())
}

fn servers_that_cannot_be_looked_at_are_an_error(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_unseen", &[("t", 1)])?;
    let config = ProxyConfig {
        // Nobody listens there.
        upstream_ports: vec![free_port()?],
        ..ProxyConfig::before(&server, &store).rule("unseen.*", "segment:t")
    };
    let refused = format!(
        "{:#}",
        ProxyProcess::start(config.clone()).map(drop).unwrap_err()
    );
    assert_has(&refused, &["1 problem(s)", "tables could not be looked at"]);
    let warned = ProxyConfig {
        listener: "check = \"warn\"".to_owned(),
        ..config
    };
    let proxy = ProxyProcess::start(warned)?;
    assert_has(
        &proxy.log(),
        &["tables could not be looked at", "with case"],
    );
    Ok(())
}

fn tables_without_the_column_are_left_alone(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE wide; CREATE TABLE wide.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE wide.log (line INT, note VARCHAR(9)); CREATE VIEW wide.seen AS SELECT note FROM wide.log",
    )?;
    let store = make_store(&server, "store_wide", &[("t", 300)])?;
    let config = ProxyConfig::before(&server, &store).rule("wide.*", "segment:t");
    let proxy = ProxyProcess::start(config.clone())?;
    let named = "no column \"id\", so that \"wide.*\" is not for them: wide.log, wide.seen";
    assert_has(&proxy.log(), &[named]);
    assert_has(&ProxyProcess::said(&config, &["check"])?, &[named]);
    let mut wire = proxy.wire("wide")?;
    wire.run("INSERT INTO log (line, note) VALUES (1, 'a')")?;
    wire.run("INSERT INTO log VALUES (2, 'b'), (3, 'c')")?;
    wire.run("INSERT INTO seen VALUES ('d')")?;
    wire.run("INSERT INTO log SELECT 4, 'e'")?;
    wire.run("PREPARE s FROM 'INSERT INTO log (line) VALUES (7)'; EXECUTE s")?;
    wire.set_local_file("8,g\n");
    wire.run("LOAD DATA LOCAL INFILE 'f' INTO TABLE log FIELDS TERMINATED BY ','")?;
    let rows = wire.rows("SELECT COUNT(*) FROM log")?;
    assert_eq!(rows, [["7"]]);
    assert_eq!(
        wire.run("INSERT INTO t (a) VALUES (1)")?.last_insert_id,
        300
    );
    let statement = wire.prepare("INSERT INTO log (line) VALUES (?)")??;
    wire.execute(&statement, &[Param::Signed(5)])?;
    // A column that is added now gets keys at once, though the look was before.
    server.run(
        "wide",
        "ALTER TABLE log ADD COLUMN id BIGINT AUTO_INCREMENT PRIMARY KEY",
    )?;
    let mut key = |sql: &str| Ok::<_, anyhow::Error>(wire.run(sql)?.last_insert_id);
    assert_eq!(key("INSERT INTO log (line) VALUES (4)")?, 301);
    assert_eq!(key("INSERT INTO log VALUES (5, 'f', NULL)")?, 302);
    let statement = wire.prepare("INSERT INTO log (line) VALUES (?)")??;
    let replies = wire.execute(&statement, &[Param::Signed(6)])?;
    assert!(matches!(replies.as_slice(), [Reply::Done(done)] if done.last_insert_id == 303));
    Ok(())
}

fn an_address_that_is_taken_ends_it(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_taken", &[])?;
    let config = ProxyConfig::before(&server, &store);
    let proxy = ProxyProcess::start(config.clone())?;
    let (bind, upstream) = (proxy.port(), server.port());
    let again = ProxyConfig {
        upstream_ports: Vec::new(),
        more: format!(
            "[[listener]]\nbind = \"127.0.0.1:{bind}\"\nupstream = \"127.0.0.1:{upstream}\"\n"
        ),
        ..config
    };
    let ended = ProxyProcess::command(&again, &["run"])?;
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8(ended.stderr)?;
    assert_has(
        &said,
        &[&format!("listening on 127.0.0.1:{bind}"), "in use"],
    );
    Ok(())
}

fn a_reload_that_fails_keeps_the_rules(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE kept; CREATE TABLE kept.t (id BIGINT PRIMARY KEY, a INT);
         CREATE TABLE kept.narrow (id INT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "store_kept", &[("t", 700)])?;
    let config = ProxyConfig::before(&server, &store).rule("kept.t", "segment:t");
    let mut proxy = ProxyProcess::start(config.clone())?;
    proxy.reload(config.rule("kept.narrow", "segment:t"))?;
    wait_until("the reload", WAIT_MAX, || {
        Ok(proxy.log().contains("the rules stay as they were"))
    })?;
    let done = proxy.wire("kept")?.run("INSERT INTO t (a) VALUES (1)")?;
    assert_eq!(done.last_insert_id, 700);
    Ok(())
}

fn fences_are_looked_at_while_running(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run("mysql", "CREATE DATABASE fenced")?;
    let store = make_store(&server, "store_fenced", &[("t", 1000)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("fenced.*", "segment:t");
    for rule in &mut config.rules {
        rule.push_str("fence = true\n");
    }
    config.more = "[limits]\nlook_s = 1".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let port = proxy.port();
    let missing = |count: u64| {
        let line = format!("keywright_fence_missing{{listener=\"127.0.0.1:{port}\"}} {count}\n");
        wait_until("the look", WAIT_MAX, || {
            Ok(proxy.http_get("/metrics")?.1.contains(&line))
        })
    };
    missing(0)?;
    let table = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
    let mut wire = proxy.wire("fenced")?;
    wire.run(format!("CREATE TABLE fresh {table}"))?;
    let mut direct = server.wire("fenced")?;
    wait_until("the fence", WAIT_MAX, || {
        let replies = direct.query("INSERT INTO fresh (a) VALUES (1)")?;
        Ok(matches!(replies.as_slice(), [Reply::Failed(fault)] if fault.errno == 1467))
    })?;
    wire.run("INSERT INTO fresh (a) VALUES (2)")?;
    // A table that can have no fence is told.
    wire.run(format!("CREATE TABLE old {table} ENGINE = MyISAM"))?;
    missing(1)?;
    assert_has(&proxy.log(), &["`fenced`.`old` is MyISAM"]);
    wire.run("DROP TABLE old")?;
    missing(0)?;
    // A trigger that is made now is known to connections that come then.
    wire.run(
        "CREATE TRIGGER seen BEFORE INSERT ON fresh FOR EACH ROW SET NEW.a = LAST_INSERT_ID()",
    )?;
    wait_until("the trigger", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("the servers' tables and views as they are now"))
    })?;
    let mut later = proxy.wire("fenced")?;
    later.run("SET @a = LAST_INSERT_ID(5)")?;
    let id = later
        .run("INSERT INTO fresh (a) VALUES (0)")?
        .last_insert_id;
    let rows = later.rows(format!(
        "SELECT a, LAST_INSERT_ID() FROM fresh WHERE id = {id}"
    ))?;
    assert_eq!(rows, [["5".to_owned(), id.to_string()]]);
    Ok(())
}

fn observing_changes_nothing(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE observed; USE observed; CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE VIEW shown AS SELECT a, id AS nr FROM t; CREATE VIEW hidden AS SELECT a FROM t",
    )?;
    let store = make_store(&server, "store_observed", &[("t", 1_000_000)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("observed.t", "segment:t");
    for rule in &mut config.rules {
        rule.push_str("mode = \"observe\"\non_explicit = \"refuse\"\n");
    }
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("observed")?;
    assert_eq!(wire.run("INSERT INTO t (a) VALUES (1)")?.last_insert_id, 1);
    wire.run("INSERT INTO t (id) VALUES (7)")?;
    wire.run("INSERT INTO t (a) SELECT a + GET_LOCK('once', 0) FROM t")?;
    let prepared = wire.prepare("INSERT INTO t (a) VALUES (?)")??;
    wire.execute(&prepared, &[Param::Signed(2)])?;
    // They count to the rule of the table behind the view.
    wire.run("INSERT INTO shown (a) VALUES (3)")?;
    wire.run("INSERT INTO hidden (a) VALUES (4)")?;
    let rows = wire.rows("SELECT MAX(id) < 100 FROM t")?;
    assert_eq!(rows, [["1"]], "the server gives the keys");
    wait_until("the counts", WAIT_MAX, || {
        let (_, metrics) = proxy.http_get("/metrics")?;
        Ok([
            "keywright_statements_observed_total{rule=\"observed.t.id\"} 3\n",
            "keywright_statements_rewritten_total{rule=\"observed.t.id\"} 0\n",
            "keywright_statements_passed_total{rule=\"observed.t.id\",construct=\"explicit\"} 1\n",
            "keywright_statements_passed_total{rule=\"observed.t.id\",construct=\"insert_select\"} 1\n",
            "keywright_statements_passed_total{rule=\"observed.t.id\",construct=\"view\"} 1\n",
        ]
        .iter()
        .all(|line| metrics.contains(line)))
    })
}

fn status_is_told_to_whom_may_see_it(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE told; CREATE TABLE told.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE USER other@'%'; GRANT ALL ON told.* TO other@'%'",
    )?;
    let store = make_store(&server, "store_told", &[("t", 1)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("told.*", "segment:t");
    config.more = "[status]\nusers = [\"root\"]".to_owned();
    let proxy = ProxyProcess::start(config)?;
    for left_out in [0, capability::DEPRECATE_EOF] {
        let mut login = Login::root("told");
        login.capabilities &= !left_out;
        let mut wire = Wire::connect_tcp(proxy.port(), &login)?;
        wire.run("INSERT INTO t (a) VALUES (1), (2)")?;
        let refused = wire.query("INSERT INTO t (a) SELECT a + GET_LOCK('once', 0) FROM t")?;
        assert!(
            matches!(refused.as_slice(), [Reply::Failed(_)]),
            "{refused:?}"
        );
        wire.run("BEGIN")?;
        wire.run("UPDATE t SET a = a + 1")?;
        let rows = wire.rows(" show keywright\n status ; ")?;
        let value = |name: &str| {
            let row = rows
                .iter()
                .find(|row| row.first().is_some_and(|of| of == name));
            row.and_then(|row| row.get(1)).cloned().unwrap_or_default()
        };
        assert_eq!(value("version"), env!("CARGO_PKG_VERSION"));
        assert!(value("connections").parse::<u64>()? > 0, "{rows:?}");
        let inserts = if left_out == 0 { "1" } else { "2" };
        assert_eq!(value("rule.told.*.id.rewritten"), inserts);
        assert_eq!(value("rule.told.*.id.refused"), inserts);
        assert!(
            value("source.segment:t.remaining").parse::<u64>()? > 0,
            "{rows:?}"
        );
        // The server never saw it: what it remembers is of the statement before.
        let affected = wire.rows("SELECT ROW_COUNT()")?;
        assert_ne!(affected, [["-1"]]);
        let [Reply::Rows(_)] = wire.query("SHOW KEYWRIGHT STATUS")?.as_slice() else {
            panic!("no result");
        };
        wire.run("COMMIT")?;
        let text = wire.query("SELECT 1; SHOW KEYWRIGHT STATUS")?;
        assert!(
            matches!(text.as_slice(), [_, Reply::Failed(fault)] if fault.errno == 1064),
            "{text:?}"
        );
    }
    // A client that reads more of columns' types, on MariaDB.
    let output = Command::new("mariadb")
        .args([
            "--no-defaults",
            "--user=root",
            "--host=127.0.0.1",
            "--batch",
        ])
        .arg(format!("--port={}", proxy.port()))
        .arg("--execute=SHOW KEYWRIGHT STATUS")
        .stdin(Stdio::null())
        .output()?;
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_has(
        &shown,
        &[
            "Variable_name\tValue\nversion\t",
            "rule.told.*.id.rewritten\t2\n",
        ],
    );
    let other = Login {
        user: "other".to_owned(),
        ..Login::root("told")
    };
    let mut wire = Wire::connect_tcp(proxy.port(), &other)?;
    let replies = wire.query("SHOW KEYWRIGHT STATUS")?;
    let direct = Wire::connect_tcp(server.port(), &other)?.query("SHOW KEYWRIGHT STATUS")?;
    assert_eq!(replies, direct, "the server's own answer");
    wire.change_user(&Login::root("told"))?;
    assert!(wire.rows("SHOW KEYWRIGHT STATUS")?.len() > 4);
    wire.change_user(&other)?;
    assert_eq!(wire.query("SHOW KEYWRIGHT STATUS")?, direct);
    Ok(())
}
