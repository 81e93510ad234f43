//! What operators ask of the proxy: the way back, reloads, status, observing.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use keywright_testkit::{
    AT_FENCE, Flavour, Login, Param, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX,
    Wire, assert_has, capability, free_port, make_store, wait_until,
};

keywright_testkit::on_both_flavours!(
    the_way_back_is_told,
    servers_share_the_numbers_out_on_the_way_back,
    an_address_that_is_taken_ends_it,
    a_reload_that_fails_keeps_the_rules,
    status_is_told_to_whom_may_see_it,
    observing_changes_nothing,
    health_is_told_beside_those_who_say_nothing,
    a_wide_rule_has_no_fence_for_the_stores_tables,
);

fn a_wide_rule_has_no_fence_for_the_stores_tables(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE wide; CREATE TABLE wide.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "store_wide", &[("t", 1)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("*wide.*", "segment:t");
    config.rules[0].push_str("fence = true\n");
    let mut proxy = ProxyProcess::start(config)?;
    assert_eq!(
        proxy
            .wire("wide")?
            .run("INSERT INTO t (a) VALUES (1)")?
            .last_insert_id,
        1
    );
    let direct = server.run("wide", "INSERT INTO t (a) VALUES (2)");
    assert!(direct.is_err(), "the fence stands");
    proxy.stop()?;
    let rests = server.run("store_wide", "SELECT start_id FROM keywright_returned")?;
    assert_eq!(rests, [["2"]], "{}", proxy.log());
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
    // It would not start with a rule that is for no table.
    let mut started = config.clone();
    started.rules.truncate(1);
    let mut proxy = ProxyProcess::start(started)?;
    let tables = ["t", "small", "`it's`"];
    for table in tables {
        proxy
            .wire("back_0")?
            .run(format!("INSERT INTO {table} (a) VALUES (1), (2)"))?;
    }
    // An application has asked for keys, and not yet used them.
    let held = proxy.wire("back_0")?.rows("SELECT NEXT 5 VALUES FOR t")?;
    let held = held
        .concat()
        .last()
        .map_or(Ok(0), |key| key.parse::<u64>())?;
    proxy
        .wire("back_0")?
        .run("INSERT INTO small (id) VALUES (2147483647)")?;
    proxy.stop()?;
    let insert = "INSERT INTO back_0.t (a) VALUES (3)";
    assert!(server.wire("")?.run(insert).is_err(), "the fence stands");
    let reported = ProxyProcess::said(&config, &["release", "--rule", "back_0.*"])?;
    assert_has(
        &reported,
        &[
            "-- Rule 1: back_0.*, column id. 4 table(s) on 1 server(s); of all: highest id 2147483647.",
            "`plain`: `id` is bigint",
            "no AUTO_INCREMENT column",
            "-- `back_0`.`small`: `id` is int",
            "there is no room above it",
        ],
    );
    assert!(!reported.contains("back_1"), "{reported}");
    assert!(
        server.wire("")?.run(insert).is_err(),
        "nothing was carried out"
    );
    // What is printed is a file that can be run.
    server.run("mysql", &reported)?;
    for (table, next) in [("t", None), ("`it's`", None), ("small", Some(AT_FENCE))] {
        let mut wire = server.wire("back_0")?;
        let inserted = wire.query(format!("INSERT INTO {table} (a) VALUES (3)"))?;
        match (inserted.as_slice(), next) {
            ([Reply::Done(done)], None) => {
                assert!(done.last_insert_id > held, "{table}: {done:?}, {held}");
            }
            ([Reply::Failed(fault)], Some(errnos)) => assert!(errnos.contains(&fault.errno)),
            (other, _) => panic!("{table}: {other:?}"),
        }
    }
    let unknown = ProxyProcess::command(&config, &["release", "--rule", "back_9.*"])?;
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
    let reported = ProxyProcess::said(&config, &["release"])?;
    let mut ids = Vec::new();
    for server in &servers {
        let from = format!("-- On 127.0.0.1:{} ", server.port());
        let (_, its) = reported.split_once(&from).unwrap_or_default();
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
    let output = ProxyProcess::command(&away, &["release"])?;
    assert!(!output.status.success(), "half of the way is none");
    Ok(())
}

fn an_address_that_is_taken_ends_it(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE taken; CREATE TABLE taken.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "store_taken", &[("t", 700)])?;
    let config = ProxyConfig::before(&server, &store);
    let proxy = ProxyProcess::start(config.clone())?;
    let (bind, upstream) = (proxy.port(), server.port());
    let again = ProxyConfig {
        upstream_ports: Vec::new(),
        more: format!(
            "[[listener]]\nbind = \"127.0.0.1:{bind}\"\nupstream = \"127.0.0.1:{upstream}\"\n\
             admin = \"mysql://root@127.0.0.1:{upstream}\"\n"
        ),
        ..config
    };
    let again = again.rule("taken.t", "segment:t");
    let ended = ProxyProcess::command(&again, &["run"])?;
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8(ended.stderr)?;
    assert_has(
        &said,
        &[
            &format!("listening on 127.0.0.1:{bind}"),
            "in use",
            "ss -ltnp",
        ],
    );
    // Nobody could be served, so no table went over to keys.
    let insert = "INSERT INTO t (a) VALUES (1)";
    assert_eq!(server.wire("taken")?.run(insert)?.last_insert_id, 1);
    Ok(())
}

fn a_reload_that_fails_keeps_the_rules(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE kept; CREATE TABLE kept.t (id BIGINT PRIMARY KEY, a INT);
         CREATE TABLE kept.other (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "store_kept", &[("t", 700), ("u", 1)])?;
    let config = ProxyConfig::before(&server, &store).rule("kept.t", "segment:t");
    let mut proxy = ProxyProcess::start(config.clone())?;
    let mut with_fence = config.clone().rule("kept.other", "segment:u");
    for rule in with_fence.rules.iter_mut().skip(1) {
        rule.push_str("fence = true\n");
    }
    let failed = with_fence.clone().rule("kept.absent", "segment:t");
    proxy.reload(failed.clone())?;
    wait_until("the reload", WAIT_MAX, || {
        Ok(proxy
            .log()
            .contains("reload failed, keeping the previous configuration"))
    })?;
    let done = proxy.wire("kept")?.run("INSERT INTO t (a) VALUES (1)")?;
    assert_eq!(done.last_insert_id, 700);
    // A table whose rule did not come into force has no fence either, and the server still gives its keys.
    let insert = "INSERT INTO other (a) VALUES (1)";
    assert_eq!(proxy.wire("kept")?.run(insert)?.last_insert_id, 1);
    assert!(!ProxyProcess::command(&failed, &["run"])?.status.success());
    assert_eq!(server.wire("kept")?.run(insert)?.last_insert_id, 2);
    proxy.reload(with_fence)?;
    wait_until("the fence", WAIT_MAX, || {
        Ok(server.wire("kept")?.run(insert).is_err())
    })?;
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

fn health_is_told_beside_those_who_say_nothing(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let store = make_store(&server, "store_health", &[])?;
    let proxy = ProxyProcess::start(ProxyConfig::before(&server, &store))?;
    let connect = || TcpStream::connect(("127.0.0.1", proxy.metrics_port()));
    // One after the other they would be waited for two seconds each.
    let silent: Vec<TcpStream> = (0..20).map(|_| connect()).collect::<std::io::Result<_>>()?;
    let started = Instant::now();
    assert_eq!(proxy.http_get("/healthz")?, (200, "ok\n".to_owned()));
    assert!(started.elapsed() < Duration::from_secs(10));
    drop(silent);
    Ok(())
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
