//! Tags of PostgreSQL that programs feed out of their store: one tag over databases, listeners and key ports.

use std::sync::Arc;
use std::time::{Duration, Instant};

use keywright_testkit::redis::RespClient;
use keywright_testkit::{
    Flavour, IdLog, Load, PgServer, ProxyConfig, ProxyProcess, Result, Stop, Upstream, WAIT_MAX,
    assert_has, make_store, query_i64, scratch_dir, wait_until,
};

const DRAW: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 20)";

/// A server with a database `shop` whose tag `orders` is fed, and a role that feeds.
fn fed_server() -> Result<PgServer> {
    let server = PgServer::builder().start()?;
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute(
        "CREATE EXTENSION keywright; CREATE ROLE feeder LOGIN; GRANT USAGE ON SCHEMA keywright TO feeder; \
         GRANT EXECUTE ON FUNCTION keywright.await_demand, keywright.feed_tag, keywright.handed_over TO feeder",
    )?;
    keeper.batch_execute("CREATE DATABASE shop")?;
    server.client("shop")?.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_fed_tag('orders', step => 200, step_min => 200)",
    )?;
    Ok(server)
}

fn section(server: &PgServer) -> String {
    format!(
        "\n[[feed]]\nurl = \"postgres://feeder@127.0.0.1:{}/postgres\"\ntags = [\"orders\"]\n",
        server.port()
    )
}

/// Two programs feed two servers and give keys of the same tag to clients of MySQL; programs, servers and the store are killed.
#[test]
fn one_tag_over_databases_and_listeners_has_no_key_twice() -> Result<()> {
    let mut servers = [fed_server()?, fed_server()?];
    let durable = ["--innodb-flush-log-at-trx-commit=1"];
    let mut mysql = Upstream::start_with(Flavour::MariaDb, &durable)?;
    mysql.run(
        "mysql",
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let url = make_store(&mysql, "store", &[])?;
    let config = ProxyConfig {
        more: servers.iter().map(section).collect(),
        ..ProxyConfig::before(&mysql, &url).rule("shop.orders", "segment:orders")
    };
    assert_has(
        &ProxyProcess::said(&config, &["init"])?,
        &["created tag \"orders\""],
    );
    assert_has(&ProxyProcess::said(&config, &["check"])?, &["ready to run"]);
    let log = Arc::new(IdLog::new());
    let mut programs = [
        ProxyProcess::start(config.clone())?,
        ProxyProcess::start(config)?,
    ];
    for round in 0..3 {
        let loads = servers.each_ref().map(|server| {
            let config = server.config("shop", "postgres");
            Load::start(&config, 2, DRAW, &log)
        });
        for load in &loads {
            load.wait_for(1_000)?;
        }
        for program in &programs {
            let mut wire = program.wire("shop")?;
            let mut keys = Vec::new();
            for _ in 0..100 {
                let inserted = wire.run("INSERT INTO orders (a) VALUES (1)")?;
                keys.push(inserted.last_insert_id.cast_signed());
            }
            log.record_unordered(keys);
        }
        match round {
            0 => {
                programs[0].kill9()?;
            }
            1 => servers[0].kill9()?,
            _ => {}
        }
        if round != 1 {
            for load in &loads {
                load.wait_for(1_000)?;
            }
        }
        for load in loads {
            load.stop()?;
        }
        match round {
            0 => programs[0].restart()?,
            1 => {
                servers[0].start()?;
                mysql.kill9()?;
                mysql.restart()?;
            }
            _ => {}
        }
    }
    log.check()?;
    Ok(())
}

/// For as long as what was handed over lasts nobody notices that feeder and store are away; then an error says what is missing.
#[test]
fn programs_may_be_away_for_as_long_as_ranges_last() -> Result<()> {
    let server = fed_server()?;
    let file = scratch_dir()?;
    let config = ProxyConfig {
        more: section(&server),
        ..ProxyConfig::key_port(
            &file.path().join("store.db"),
            "keys = { orders = \"segment:orders\" }",
        )
    };
    ProxyProcess::said(&config, &["init"])?;
    let mut program = ProxyProcess::start(config)?;
    let mut client = server.client("shop")?;
    assert_eq!(
        query_i64(
            &mut client,
            "SELECT count(next_biz_id('orders')) FROM generate_series(1, 100)"
        )?,
        100
    );
    let stock = "SELECT remaining FROM keywright.stats WHERE tag = 'orders'";
    wait_until("a range in stock", WAIT_MAX, || {
        Ok(query_i64(&mut client, stock)? >= 300)
    })?;
    let (status, figures) = program.http_get("/metrics")?;
    assert_eq!(status, 200);
    assert_has(
        &figures,
        &[
            "keywright_feed_up{server=\"127.0.0.1:",
            "keywright_fed_ids_total{",
        ],
    );
    program.kill9()?;
    let left = query_i64(&mut client, stock)?;
    let draw = format!("SELECT count(next_biz_id('orders')) FROM generate_series(1, {left})");
    assert_eq!(query_i64(&mut client, &draw)?, left);
    client.batch_execute("SET keywright.refill_wait_ms_max = 100")?;
    let error = query_i64(&mut client, "SELECT next_biz_id('orders')").unwrap_err();
    let error = error.as_db_error().expect("the server's");
    assert_has(error.message(), &["tag \"orders\" has no ids left"]);
    client.batch_execute("RESET keywright.refill_wait_ms_max")?;
    program.restart()?;
    query_i64(&mut client, "SELECT next_biz_id('orders')")?;
    Ok(())
}

/// A server that is fed knows how far ids came: of a store that was put back by a backup nothing is given, and whoever says that it was restored
/// need not know it.
#[test]
fn servers_are_asked_how_far_ids_came_before_a_restored_store_gives_any() -> Result<()> {
    let mut server = fed_server()?;
    let dir = scratch_dir()?;
    let store = dir.path().join("store.db");
    let config = ProxyConfig {
        more: section(&server),
        ..ProxyConfig::key_port(&store, "keys = { orders = \"segment:orders\" }")
    };
    ProxyProcess::said(&config, &["init"])?;
    let mut client = server.client("shop")?;
    let draw = "SELECT max(next_biz_id('orders')) FROM generate_series(1, 1000)";
    let known = "SELECT reserved_to FROM keywright.tags";
    let mut program = ProxyProcess::start(config.clone())?;
    query_i64(&mut client, draw)?;
    program.stop()?;
    let backup = std::fs::read(&store)?;
    let backed_up = query_i64(&mut client, known)?;
    program.restart()?;
    let mut reserved_to = 0;
    wait_until("ranges that the backup knows nothing of", WAIT_MAX, || {
        query_i64(&mut client, draw)?;
        reserved_to = query_i64(&mut client, known)?;
        Ok(reserved_to > backed_up)
    })?;
    program.stop()?;
    reserved_to = query_i64(&mut client, known)?;
    std::fs::write(&store, backup)?;
    // The file looks like the one of before.
    program.restart()?;
    let mut port = RespClient::connect(program.key_port()?)?;
    let refused = port.say("INCR orders")?;
    assert_has(
        refused.error()?,
        &["BOUND_DAMAGED", "the store has gone back"],
    );
    program.stop()?;
    let restored = ["store", "restored", "--lost", "1s"];
    let said = ProxyProcess::said(&config, &restored)?;
    let told = format!("PostgreSQL servers were handed ids up to {reserved_to}");
    assert_has(&said, &[&told]);
    program.restart()?;
    let mut port = RespClient::connect(program.key_port()?)?;
    assert!(port.say("INCR orders")?.integer()? > reserved_to);
    program.stop()?;
    server.stop(Stop::Fast)?;
    let output = ProxyProcess::command(&config, &restored)?;
    assert_has(
        &String::from_utf8(output.stderr)?,
        &["cannot be fed", "if it is gone, add --fed-servers-gone"],
    );
    ProxyProcess::said(
        &config,
        &["store", "restored", "--lost", "1s", "--fed-servers-gone"],
    )?;
    Ok(())
}

/// A program that only feeds needs no listener: it goes on, a new one takes over from it, and it ends when it is told to.
#[test]
fn a_program_without_listeners_feeds() -> Result<()> {
    let server = fed_server()?;
    let dir = scratch_dir()?;
    let config = ProxyConfig {
        key_ports: Vec::new(),
        more: section(&server),
        ..ProxyConfig::key_port(&dir.path().join("store.db"), "")
    };
    ProxyProcess::said(&config, &["init"])?;
    assert_has(&ProxyProcess::said(&config, &["check"])?, &["ready to run"]);
    let mut client = server.client("shop")?;
    let mut program = ProxyProcess::start(config.clone())?;
    client.query(DRAW, &[])?;
    let tags = "tags = [\"orders\", \"others\"]";
    let more = config.more.replace("tags = [\"orders\"]", tags);
    let config = ProxyConfig { more, ..config };
    ProxyProcess::said(&config, &["init"])?;
    client.batch_execute("SELECT keywright.create_fed_tag('others')")?;
    program.reload(config)?;
    let unchanged = "feeds, metrics and status stay as they were";
    wait_until("the reload", WAIT_MAX, || {
        Ok(program.log().contains(unchanged))
    })?;
    let mut before = program.take_over()?;
    client.query("SELECT next_biz_id('others')", &[])?;
    before.wait()?;
    program.stop()?;
    Ok(())
}

/// What the store has left is handed over to the last id, then server and program say what is the matter.
#[test]
fn a_tag_that_ends_is_issued_to_its_end() -> Result<()> {
    const LEFT: i64 = 300;
    // A bound is the first id that is not given.
    const LAST: i64 = i64::MAX - 1;
    let server = fed_server()?;
    let file = scratch_dir()?;
    let config = ProxyConfig {
        more: section(&server),
        ..ProxyConfig::key_port(
            &file.path().join("store.db"),
            "keys = { others = \"segment:others\" }",
        )
    };
    ProxyProcess::said(&config, &["init"])?;
    let above = (LAST - LEFT).to_string();
    ProxyProcess::said(
        &config,
        &["advance", "orders", "--above", &above, "--use-up"],
    )?;
    let program = ProxyProcess::start(config)?;
    let mut client = server.client("shop")?;
    let draw = format!("SELECT max(next_biz_id('orders')) FROM generate_series(1, {LEFT})");
    assert_eq!(query_i64(&mut client, &draw)?, LAST);
    client.batch_execute("SET keywright.refill_wait_ms_max = 100")?;
    let refused = query_i64(&mut client, "SELECT next_biz_id('orders')").unwrap_err();
    let refused = refused.as_db_error().expect("the server's");
    assert_has(refused.message(), &["tag \"orders\" has no ids left"]);
    wait_until("what the program says", WAIT_MAX, || {
        Ok(program.log().contains("tag \"orders\" is exhausted"))
    })
}

/// Each is told, and nothing is lost.
#[test]
fn what_is_in_the_way_of_feeding_is_told() -> Result<()> {
    let mut server = fed_server()?;
    let file = scratch_dir()?;
    let key_port = ProxyConfig::key_port(
        &file.path().join("store.db"),
        "keys = { orders = \"segment:orders\" }",
    );
    let with = |more: String| ProxyConfig {
        more,
        ..key_port.clone()
    };
    ProxyProcess::said(&with(section(&server)), &["init"])?;
    let said = |config: &ProxyConfig| -> Result<String> {
        let output = ProxyProcess::command(config, &["check"])?;
        Ok(format!(
            "{}{}",
            String::from_utf8(output.stdout)?,
            String::from_utf8(output.stderr)?
        ))
    };
    let mut keeper = server.client("postgres")?;
    keeper.batch_execute("CREATE ROLE nobody LOGIN")?;
    keeper.batch_execute("CREATE DATABASE plain")?;
    let cases = [
        (
            section(&server).replace("feeder@", "nobody@"),
            "may not feed",
        ),
        (
            section(&server).replace("/postgres", "/plain"),
            "schema \"keywright\" does not exist",
        ),
        (
            section(&server).replace("feeder@", "missing@"),
            "role \"missing\" does not exist",
        ),
    ];
    for (section, words) in cases {
        assert_has(&said(&with(section))?, &[words]);
    }
    let other = section(&server).replace("[\"orders\"]", "[\"others\"]");
    let config = with(other);
    ProxyProcess::said(&config, &["init"])?;
    let program = ProxyProcess::start(config)?;
    let mut client = server.client("shop")?;
    client.batch_execute("SET keywright.refill_wait_ms_max = 100")?;
    let refused = query_i64(&mut client, "SELECT next_biz_id('orders')").unwrap_err();
    let refused = refused.as_db_error().expect("the server's");
    assert_has(
        refused.hint().unwrap_or_default(),
        &["\"orders\" not be among the tags of its [[feed]] section"],
    );
    drop(program);
    server.stop(Stop::Fast)?;
    let began = Instant::now();
    assert_has(&said(&with(section(&server)))?, &["cannot be fed"]);
    assert!(began.elapsed() < Duration::from_secs(30));
    Ok(())
}
