//! Snowflake ids of PostgreSQL whose worker ids and time programs hand over out of their store.

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use keywright_testkit::etcd::EtcdCluster;
use keywright_testkit::{
    Flavour, IdLog, Load, PgServer, ProxyConfig, ProxyProcess, Replication, Result, Upstream,
    WAIT_MAX, assert_has, make_store, query_i64, query_text, scratch_dir, wait_until,
};
use tempfile::TempDir;

const DRAW: &str = "SELECT snowflake_id() FROM generate_series(1, 20)";
/// So long that a loaded machine keeps up, so short that tests see it end.
const COVER_S: u64 = 6;

/// A server with databases whose snowflake ids are fed, and a role that feeds.
fn fed_server(databases: &[&str]) -> Result<PgServer> {
    let server = PgServer::builder().start()?;
    server.client("postgres")?.batch_execute(
        "CREATE EXTENSION keywright; CREATE ROLE feeder LOGIN; GRANT USAGE ON SCHEMA keywright TO feeder; \
         GRANT EXECUTE ON FUNCTION keywright.await_demand, keywright.feed_tag, keywright.handed_over, \
         keywright.time_demand, keywright.feed_time, keywright.handed_time TO feeder",
    )?;
    for name in databases {
        let create = format!("CREATE DATABASE {name}");
        server.client("postgres")?.batch_execute(&create)?;
        server.client(name)?.batch_execute(
            "CREATE EXTENSION keywright; SELECT keywright.set_snowflake_source('fed')",
        )?;
    }
    Ok(server)
}

fn config(store_url: &str, servers: &[&PgServer]) -> ProxyConfig {
    let mut more = "[snowflake]\nfed_worker_ids = \"900-963\"\nlead_ms_max = 100\n".to_owned();
    for server in servers {
        more.push_str(&format!(
            "\n[[feed]]\nurl = \"postgres://feeder@127.0.0.1:{}/postgres\"\nsnowflake = true\ncover_s = {COVER_S}\n",
            server.port()
        ));
    }
    let mut store = "backoff_ms_max = 200\n".to_owned();
    if store_url.starts_with("file:") {
        store.push_str("any_file_system = true\n");
    }
    ProxyConfig {
        store_url: store_url.to_owned(),
        store,
        more,
        ..ProxyConfig::default()
    }
}

fn file_store() -> Result<(TempDir, String)> {
    let dir = scratch_dir()?;
    let url = format!("file:{}", dir.path().join("store.db").display());
    Ok((dir, url))
}

/// Loads run until each has got so many ids.
fn draw(loads: &[Load]) -> Result<()> {
    for load in loads {
        load.wait_for(2_000)?;
    }
    Ok(())
}

fn load(server: &PgServer, name: &str, log: &Arc<IdLog>) -> Load {
    Load::start(&server.config(name, "postgres"), 2, DRAW, log)
}

/// Two programs, three databases; a program and the server are killed, its data directory is copied and started beside it.
fn no_id_comes_twice(store_url: &str) -> Result<()> {
    let mut server = fed_server(&["one", "two"])?;
    let other = fed_server(&["three"])?;
    let before = config(store_url, &[&server, &other]);
    let said = ProxyProcess::said(&before, &["init"])?;
    assert_has(&said, &["of fed databases 900-963"]);
    assert_has(&ProxyProcess::said(&before, &["check"])?, &["ready to run"]);
    let log = Arc::new(IdLog::new());
    let mut programs = [
        ProxyProcess::start(before.clone())?,
        ProxyProcess::start(before)?,
    ];
    let loads = [
        load(&server, "one", &log),
        load(&server, "two", &log),
        load(&other, "three", &log),
    ];
    draw(&loads)?;
    programs[0].kill9()?;
    draw(&loads)?;
    programs[0].restart()?;
    server.kill9()?;
    server.start()?;
    draw(&loads)?;
    for load in loads {
        load.stop()?;
    }
    server.kill9()?;
    let mut copy = server.copy()?;
    server.start()?;
    copy.start()?;
    for program in &mut programs {
        program.kill9()?;
    }
    let with_copy = config(store_url, &[&server, &copy, &other]);
    let _programs = [
        ProxyProcess::start(with_copy.clone())?,
        ProxyProcess::start(with_copy.clone())?,
    ];
    let loads = [
        load(&server, "one", &log),
        load(&copy, "one", &log),
        load(&copy, "two", &log),
        load(&other, "three", &log),
    ];
    draw(&loads)?;
    for load in loads {
        load.stop()?;
    }
    // A database that is made of another by the server.
    let mut keeper = server.client("postgres")?;
    wait_until("the end of the last session", WAIT_MAX, || {
        Ok(keeper
            .batch_execute("CREATE DATABASE four TEMPLATE one")
            .is_ok())
    })?;
    keeper.batch_execute("DROP DATABASE two")?;
    let loads = [load(&server, "one", &log), load(&server, "four", &log)];
    draw(&loads)?;
    for load in loads {
        load.stop()?;
    }
    log.check()?;
    let worker = "SELECT snowflake_worker(snowflake_id())";
    let workers = ["one", "four"].map(|name| query_text_i32(&server, name, worker));
    let [one, four] = workers;
    let (one, four) = (one?, four?);
    assert!(one != four && [one, four].iter().all(|id| (900..=963).contains(id)));
    let late = "SELECT abs(extract(epoch FROM snowflake_timestamp(snowflake_id()) - clock_timestamp())) * 1000";
    let late_ms: f64 = server
        .client("one")?
        .query_one(&format!("SELECT ({late})::float8"), &[])?
        .get(0);
    assert!(late_ms < 1_000.0, "{late_ms}");
    let listed = ProxyProcess::said(&with_copy, &["worker", "list"])?;
    assert_has(&listed, &["leased by database "]);
    Ok(())
}

fn query_text_i32(server: &PgServer, name: &str, sql: &str) -> Result<i64> {
    let mut client = server.client(name)?;
    Ok(query_i64(&mut client, &format!("SELECT ({sql})::bigint"))?)
}

#[test]
fn no_id_comes_twice_out_of_a_file() -> Result<()> {
    let (_dir, url) = file_store()?;
    no_id_comes_twice(&url)
}

#[test]
fn no_id_comes_twice_out_of_postgres() -> Result<()> {
    let store = PgServer::builder().preload(false).start()?;
    let mut client = store.client("postgres")?;
    client.batch_execute("CREATE ROLE keywright LOGIN")?;
    client.batch_execute("CREATE DATABASE keywright OWNER keywright")?;
    no_id_comes_twice(&format!(
        "postgres://keywright@127.0.0.1:{}/keywright",
        store.port()
    ))
}

#[test]
fn no_id_comes_twice_out_of_mariadb() -> Result<()> {
    let store = Upstream::start(Flavour::MariaDb)?;
    no_id_comes_twice(&make_store(&store, "store", &[])?)
}

#[test]
fn no_id_comes_twice_out_of_etcd() -> Result<()> {
    let cluster = EtcdCluster::start(1)?;
    no_id_comes_twice(&format!("etcd://{}/keywright", cluster.hosts()))
}

/// For as long as what was handed over lasts nobody notices that the program is away; then an error says what is missing, and when it is back
/// ids come again.
#[test]
fn a_program_may_be_away_for_as_long_as_time_lasts() -> Result<()> {
    let server = fed_server(&["shop"])?;
    let (_dir, url) = file_store()?;
    let config = config(&url, &[&server]);
    ProxyProcess::said(&config, &["init"])?;
    let mut program = ProxyProcess::start(config)?;
    let mut client = server.client("shop")?;
    let next = "SELECT snowflake_id()";
    query_i64(&mut client, next)?;
    let health =
        "SELECT detail FROM keywright.health WHERE name IN ('feeding', 'worker id') ORDER BY name";
    let told: Vec<String> = client
        .query(health, &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_has(
        &told.join("; "),
        &[
            "the time of snowflake ids is fed; a program asked",
            "was handed over, with its time",
        ],
    );
    let figures = "SELECT worker_id::bigint FROM keywright.stats WHERE kind = 'snowflake'";
    assert!((900..=963).contains(&query_i64(&mut client, figures)?));
    program.kill9()?;
    let away = Instant::now();
    client.batch_execute("SET keywright.refill_wait_ms_max = 100")?;
    query_i64(&mut client, next)?;
    let mut refused = None;
    wait_until("the end of the time", WAIT_MAX, || {
        refused = query_i64(&mut client, next).err();
        Ok(refused.is_some())
    })?;
    // It was asked for again when half was over.
    assert!(
        away.elapsed().as_secs() + 1 >= COVER_S / 2,
        "{:?}",
        away.elapsed()
    );
    let refused = refused.expect("waited for");
    let refused = refused.as_db_error().expect("the server's");
    assert_eq!(refused.routine(), Some("not_fed"));
    assert_has(
        refused.message(),
        &["no snowflake ids are left of the time that was handed over"],
    );
    client.batch_execute("RESET keywright.refill_wait_ms_max")?;
    program.restart()?;
    query_i64(&mut client, next)?;
    Ok(())
}

/// Each is told, and nothing is issued.
#[test]
fn what_is_in_the_way_of_feeding_time_is_told() -> Result<()> {
    let server = fed_server(&["shop"])?;
    let (_dir, url) = file_store()?;
    let right = config(&url, &[&server]);
    let without = ProxyConfig {
        more: right.more.replace("fed_worker_ids = \"900-963\"\n", ""),
        ..right.clone()
    };
    let said = |config: &ProxyConfig| -> Result<String> {
        let output = ProxyProcess::command(config, &["check"])?;
        Ok(String::from_utf8([output.stdout, output.stderr].concat())?)
    };
    assert_has(
        &said(&without)?,
        &["snowflake = true in [[feed]] needs fed_worker_ids in [snowflake]"],
    );
    ProxyProcess::said(&right, &["init"])?;
    server.client("postgres")?.batch_execute(
        "CREATE ROLE half LOGIN; GRANT USAGE ON SCHEMA keywright TO half; \
         GRANT EXECUTE ON FUNCTION keywright.await_demand, keywright.feed_tag, keywright.handed_over TO half",
    )?;
    let half = ProxyConfig {
        more: right.more.replace("feeder@", "half@"),
        ..right.clone()
    };
    assert_has(&said(&half)?, &["may not feed snowflake ids"]);
    // Another layout than the store's, and a number that a database has.
    let mut client = server.client("shop")?;
    client.batch_execute("SELECT keywright.set_layout('baidu,epoch=2024-01-01')")?;
    let program = ProxyProcess::start(right)?;
    client.batch_execute("SET keywright.refill_wait_ms_max = 100")?;
    let refused = query_text(&mut client, "SELECT snowflake_id()::text").unwrap_err();
    let refused = refused.as_db_error().expect("the server's");
    assert_eq!(refused.routine(), Some("not_fed"));
    wait_until("what the program says", WAIT_MAX, || {
        Ok(program.log().contains("and the database's is"))
    })?;
    assert_has(&program.log(), &["subject=database \"shop\" ("]);
    Ok(())
}

/// A file that is put back as it was: while a database lives that knows better nothing is handed over before the owner says so, and nothing comes
/// again.
#[test]
fn a_file_that_is_put_back_repeats_nothing() -> Result<()> {
    let mut server = fed_server(&["shop"])?;
    let (dir, url) = file_store()?;
    let config = config(&url, &[&server]);
    let (file, backup) = (dir.path().join("store.db"), dir.path().join("backup.db"));
    let closed = || {
        wait_until("the file is closed", WAIT_MAX, || {
            Ok(!dir.path().join("store.db-wal").exists())
        })
    };
    ProxyProcess::said(&config, &["init"])?;
    let log = Arc::new(IdLog::new());
    let mut program = ProxyProcess::start(config.clone())?;
    let loads = [load(&server, "shop", &log)];
    draw(&loads)?;
    program.stop()?;
    closed()?;
    fs::copy(&file, &backup)?;
    program.restart()?;
    // Another life of the memory, with another worker id.
    server.kill9()?;
    server.start()?;
    draw(&loads)?;
    program.stop()?;
    closed()?;
    fs::copy(&backup, &file)?;
    program.restart()?;
    wait_until("what the program says", WAIT_MAX, || {
        Ok(program.log().contains("the store has gone back"))
    })?;
    program.stop()?;
    ProxyProcess::said(&config, &["store", "restored", "--lost", "1h"])?;
    program.restart()?;
    draw(&loads)?;
    for load in loads {
        load.stop()?;
    }
    log.check()?;
    Ok(())
}

/// A standby of the store that lacks what was handed over last is promoted; later a server is the store's again that it was before.
#[test]
fn a_store_that_is_promoted_repeats_nothing() -> Result<()> {
    let mut server = fed_server(&["shop"])?;
    let mut store = PgServer::builder().preload(false).start()?;
    let mut client = store.client("postgres")?;
    client.batch_execute("CREATE ROLE keywright LOGIN")?;
    client.batch_execute("CREATE DATABASE keywright OWNER keywright")?;
    let url =
        |store: &PgServer| format!("postgres://keywright@127.0.0.1:{}/keywright", store.port());
    let before = config(&url(&store), &[&server]);
    ProxyProcess::said(&before, &["init"])?;
    let mut standby = store.standby("standby", Replication::Asynchronous)?;
    let log = Arc::new(IdLog::new());
    let mut program = ProxyProcess::start(before)?;
    let loads = [load(&server, "shop", &log)];
    draw(&loads)?;
    store.wait_replayed(&standby)?;
    standby.kill9()?;
    server.kill9()?;
    server.start()?;
    draw(&loads)?;
    store.kill9()?;
    program.kill9()?;
    standby.start()?;
    standby.promote()?;
    let after = config(&url(&standby), &[&server]);
    let mut program = ProxyProcess::start(after)?;
    draw(&loads)?;
    server.kill9()?;
    server.start()?;
    draw(&loads)?;
    // As if another server had been the store in between, and what this one wrote last had been lost.
    program.kill9()?;
    let mut client = standby.client("keywright")?;
    client.batch_execute(
        "UPDATE keywright_worker_ids SET unknown_server = 'another'; \
         UPDATE keywright_worker SET hi_ms = hi_ms - 3000 WHERE space = 'fed'",
    )?;
    server.kill9()?;
    server.start()?;
    program.restart()?;
    draw(&loads)?;
    for load in loads {
        load.stop()?;
    }
    // It has noticed, and believes of what was written before then nothing: worker ids are doubted, or were leased again since.
    let unnoticed = "SELECT count(*) FROM keywright_worker_ids WHERE unknown_server = 'another'";
    assert_eq!(query_i64(&mut client, unnoticed)?, 0);
    let believed = "SELECT count(*) FROM keywright_worker w, keywright_worker_ids i \
                    WHERE w.space = 'fed' AND w.server <> '' AND w.hi_ms <= i.unknown_ms - 10000";
    assert_eq!(query_i64(&mut client, believed)?, 0);
    log.check()?;
    Ok(())
}

/// An older state of the store is put back before its server is started again. Who knows what was handed over is one program, and who is asked for more
/// is another.
#[test]
fn a_store_that_is_put_back_hands_no_worker_id_to_a_second_database() -> Result<()> {
    /// The first database has time until the end of the test.
    const LONG_S: u64 = 300;
    let (first, second) = (fed_server(&["one"])?, fed_server(&["two"])?);
    let mut store = PgServer::builder().preload(false).start()?;
    let mut owner = store.client("postgres")?;
    owner.batch_execute("CREATE ROLE keywright LOGIN")?;
    owner.batch_execute("CREATE DATABASE keywright OWNER keywright")?;
    let url = format!("postgres://keywright@127.0.0.1:{}/keywright", store.port());
    let feeds = |server: &PgServer| {
        let short = config(&url, &[server]);
        let cover = |s: u64| format!("cover_s = {s}\n");
        ProxyConfig {
            more: short.more.replace(&cover(COVER_S), &cover(LONG_S)),
            ..short
        }
    };
    ProxyProcess::said(&feeds(&first), &["init"])?;
    let knows = ProxyProcess::start(feeds(&first))?;
    let (mut one, mut two) = (first.client("one")?, second.client("two")?);
    for client in [&mut one, &mut two] {
        client.batch_execute("SET keywright.refill_wait_ms_max = 100")?;
    }
    let next = "SELECT snowflake_id()";
    // A store that was made just now hands nothing over for as long as it may have forgotten something.
    let mut tables = store.client("keywright")?;
    let long_ago = format!(
        "UPDATE keywright_worker_ids SET unknown_ms = unknown_ms - {} WHERE unknown_server <> ''",
        (LONG_S + 1) * 1_000
    );
    wait_until("the first demand", WAIT_MAX, || {
        let drawn = query_i64(&mut one, next);
        assert!(drawn.is_err(), "{drawn:?}");
        Ok(tables.execute(&long_ago, &[])? == 1)
    })?;
    wait_until("time for the first database", WAIT_MAX, || {
        Ok(query_i64(&mut one, next).is_ok())
    })?;
    let asked = ProxyProcess::start(feeds(&second))?;
    tables.batch_execute(
        "UPDATE keywright_worker SET owner = NULL, hi_ms = hi_ms - 3600000 WHERE space = 'fed'",
    )?;
    store.kill9()?;
    store.start()?;
    wait_until("what the program says that is asked", WAIT_MAX, || {
        let drawn = query_i64(&mut two, next);
        assert!(drawn.is_err(), "the first database may issue it: {drawn:?}");
        Ok(asked.log().contains("are in use, or may be, by databases"))
    })?;
    assert_has(&knows.log(), &["the store has gone back"]);
    // It goes on with what it has.
    query_i64(&mut one, next)?;
    Ok(())
}
