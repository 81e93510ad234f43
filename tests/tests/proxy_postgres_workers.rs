//! Worker ids of PostgreSQL databases by the program, as an operator gives them: `keywright worker`.

use std::sync::Arc;

use keywright_testkit::{
    Flavour, IdLog, PgServer, ProxyConfig, ProxyProcess, Result, Stop, Upstream, assert_has,
    copy_ids, expect_sql_error, query_text, scratch_dir,
};
use tempfile::TempDir;

/// A configuration without listeners, whose store is at `url`.
fn config(url: &str) -> ProxyConfig {
    ProxyConfig {
        store_url: url.to_owned(),
        more: "[snowflake]\nleased_worker_ids = \"256-511\"\nassigned_worker_ids = \"512-1023\"\n"
            .to_owned(),
        ..ProxyConfig::default()
    }
}

fn config_of_file(scratch: &TempDir) -> ProxyConfig {
    let file = scratch.path().join("store.db");
    ProxyConfig {
        store: "any_file_system = true\n".to_owned(),
        ..config(&format!("file:{}", file.display()))
    }
}

fn database(server: &PgServer, name: &str) -> Result<String> {
    let create = format!("CREATE DATABASE {name}");
    server.client("postgres")?.batch_execute(&create)?;
    server
        .client(name)?
        .batch_execute("CREATE EXTENSION keywright")?;
    Ok(server.url(name))
}

/// What the command says when it fails.
fn refused(config: &ProxyConfig, arguments: &[&str]) -> Result<String> {
    let output = ProxyProcess::command(config, arguments)?;
    assert!(!output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stderr)?)
}

fn assign(config: &ProxyConfig, url: &str) -> Result<String> {
    ProxyProcess::said(config, &["worker", "assign", "--database", url])
}

fn draw(server: &PgServer, name: &str, log: &IdLog) -> Result<()> {
    let mut ids = Vec::new();
    let query = "SELECT snowflake_id() FROM generate_series(1, 2000)";
    copy_ids(&mut server.client(name)?, query, &mut ids)?;
    log.record(ids);
    Ok(())
}

fn worker_id(server: &PgServer, name: &str) -> Result<String> {
    let query = "SELECT snowflake_worker(snowflake_id())::text";
    Ok(query_text(&mut server.client(name)?, query)?)
}

/// Assigned, asked again, copied in each way, suspended, given another, listed, released.
fn a_fleet(config: &ProxyConfig) -> Result<()> {
    assert_has(
        &ProxyProcess::said(config, &["init"])?,
        &["worker ids: leased 256-511, assigned 512-1023"],
    );
    let log = Arc::new(IdLog::new());
    let mut server = PgServer::builder().start()?;
    let shop = database(&server, "shop")?;
    let first = assign(config, &shop)?;
    assert_has(&first, &["/shop has worker id 512 from now on"]);
    assert_eq!(worker_id(&server, "shop")?, "512");
    let again = assign(config, &shop)?;
    assert!(again.ends_with("/shop has worker id 512\n"), "{again}");
    draw(&server, "shop", &log)?;
    // A copy from a template has neither number nor mark.
    let copy = "CREATE DATABASE branch TEMPLATE shop";
    server.client("postgres")?.batch_execute(copy)?;
    let branch = server.url("branch");
    assert_has(
        &assign(config, &branch)?,
        &["has worker id 513 from now on"],
    );
    // One by hand keeps it, unless it is to have another.
    let by_hand = database(&server, "by_hand")?;
    let set = "SELECT keywright.set_worker_id(7), keywright.set_readable_bucket(9)";
    server.client("by_hand")?.batch_execute(set)?;
    draw(&server, "by_hand", &log)?;
    let told = refused(config, &["worker", "assign", "--database", &by_hand])?;
    assert_has(&told, &["has worker id 7, which was set by hand", "--new"]);
    assert_eq!(worker_id(&server, "by_hand")?, "7");
    let new = ["worker", "assign", "--new", "--database", &by_hand];
    let said = ProxyProcess::said(config, &new)?;
    assert_has(&said, &["has worker id 514 from now on, in place of 7"]);
    // On a server where a store assigns numbers, its numbers are not set by hand.
    let set = "SELECT keywright.set_worker_id(1000)";
    let set = server.client("by_hand")?.batch_execute(set);
    expect_sql_error(
        set,
        "55006",
        "is one of those that a store assigns, 512-1023",
    );
    for name in ["shop", "branch", "by_hand"] {
        draw(&server, name, &log)?;
    }
    assert_eq!(worker_id(&server, "by_hand")?, "514");
    // A cloned disk is a copy that nothing tells.
    server.stop(Stop::Fast)?;
    let mut clone = server.copy()?;
    server.start()?;
    clone.start()?;
    let of_clone = clone.url("shop");
    assert_has(&assign(config, &shop)?, &["has worker id 512\n"]);
    let told = refused(config, &["worker", "assign", "--database", &of_clone])?;
    assert_has(&told, &["is suspended", "has asked since", "--new"]);
    let ids = clone.client("shop")?.batch_execute("SELECT snowflake_id()");
    expect_sql_error(ids, "55000", "worker id 512 is not only this database's");
    let mut asking = clone.client("shop")?;
    let health = "SELECT severity || ': ' || detail || ': ' || hint FROM keywright.health WHERE name = 'worker id'";
    let said = query_text(&mut asking, health)?;
    assert_has(&said, &["error: ", "mark", "worker assign --new"]);
    drop(asking);
    assert_has(
        &ProxyProcess::said(config, &["worker", "list"])?,
        &[
            "512 assigned to 127.0.0.1:",
            "/shop had an older mark, and was suspended",
            "514 assigned to",
        ],
    );
    let told = refused(config, &["worker", "assign", "--database", &of_clone])?;
    assert_has(&told, &["is suspended", "--new"]);
    let new = ["worker", "assign", "--new", "--database", &of_clone];
    assert_has(
        &ProxyProcess::said(config, &new)?,
        &["has worker id 515 from now on, in place of 512"],
    );
    for (server, name) in [(&clone, "shop"), (&server, "shop"), (&server, "branch")] {
        draw(server, name, &log)?;
    }
    a_dump_and_a_release(config, &server, &log)?;
    let checked = log.check()?;
    println!("{} snowflake ids, all distinct", checked.count);
    Ok(())
}

/// A dump with its label, restored on another server; a number that is given back.
fn a_dump_and_a_release(config: &ProxyConfig, server: &PgServer, log: &IdLog) -> Result<()> {
    let target = PgServer::builder().start()?;
    target.restore("postgres", &server.dump("shop", &["-C"])?)?;
    let url = target.url("shop");
    let told = refused(config, &["worker", "assign", "--database", &url])?;
    assert_has(&told, &["is a copy", "--new"]);
    let new = ["worker", "assign", "--new", "--database", &url];
    let said = ProxyProcess::said(config, &new)?;
    assert_has(&said, &["has worker id 516 from now on"]);
    draw(&target, "shop", log)?;
    let release = ["worker", "release", "516", "--database"];
    let told = refused(config, &[&release[..], &[&server.url("shop")]].concat())?;
    assert_has(&told, &["worker id 516 is not that of database"]);
    let said = ProxyProcess::said(config, &[&release[..], &[&url]].concat())?;
    assert_has(&said, &["has no worker id any more", "above its ids"]);
    let ids = target
        .client("shop")?
        .batch_execute("SELECT snowflake_id()");
    expect_sql_error(ids, "55000", "this database has no worker id");
    assert_has(&assign(config, &url)?, &["has worker id 517 from now on"]);
    draw(&target, "shop", log)?;
    let said = ProxyProcess::said(config, &["worker", "release", "517", "--gone"])?;
    assert_has(&said, &["worker id 517 is never given again"]);
    let list = ProxyProcess::said(config, &["worker", "list", "--format", "json"])?;
    assert_has(
        &list,
        &[
            "\"state\":\"released\"",
            "\"state\":\"retired\"",
            "\"worker_id\":517",
        ],
    );
    Ok(())
}

#[test]
fn a_fleet_by_a_store_in_a_file() -> Result<()> {
    let scratch = scratch_dir()?;
    a_fleet(&config_of_file(&scratch))
}

#[test]
fn a_fleet_by_a_store_in_mariadb() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run("", "CREATE DATABASE keywright")?;
    a_fleet(&config(&format!(
        "mysql://root@127.0.0.1:{}/keywright",
        server.port()
    )))
}

/// The store and the databases are on one server, which is killed again and again while databases ask.
#[test]
fn no_number_is_given_twice_however_the_server_ends() -> Result<()> {
    const ROUNDS: u32 = 12;
    let mut server = PgServer::builder().start()?;
    server
        .client("postgres")?
        .batch_execute("CREATE DATABASE store")?;
    let config = config(&server.url("store"));
    ProxyProcess::said(&config, &["init"])?;
    let log = Arc::new(IdLog::new());
    let mut names = Vec::new();
    for round in 0..ROUNDS {
        let name = format!("shop_{round}");
        let url = database(&server, &name)?;
        names.push(name);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                ProxyProcess::command(&config, &["worker", "assign", "--database", &url])
            });
            // Another step each time, about.
            std::thread::sleep(std::time::Duration::from_millis(u64::from(10 + 8 * round)));
            server.kill9()?;
            let _whatever = asking.join().expect("the asking thread panicked");
            server.start()
        })?;
        let said = assign(&config, &url)?;
        assert_has(&said, &["has worker id "]);
    }
    let mut numbers = std::collections::BTreeSet::new();
    for name in &names {
        assert!(
            numbers.insert(worker_id(&server, name)?),
            "one number twice"
        );
        draw(&server, name, &log)?;
        assert_has(&assign(&config, &server.url(name))?, &["has worker id "]);
        draw(&server, name, &log)?;
    }
    log.check()?;
    Ok(())
}

#[test]
fn what_is_wrong_is_said_at_once() -> Result<()> {
    let scratch = scratch_dir()?;
    let good = config_of_file(&scratch);
    let with = |snowflake: &str| ProxyConfig {
        more: format!("[snowflake]\n{snowflake}\n"),
        ..good.clone()
    };
    let told = refused(
        &with("worker_id = 9\nleased_worker_ids = \"10-600\"\nassigned_worker_ids = \"512-2000\""),
        &["check"],
    )?;
    assert_has(
        &told,
        &[
            "snowflake.assigned_worker_ids: ends above 1023",
            "512-2000 and leased_worker_ids, 10-600, have numbers in common",
            "snowflake.worker_id: 9 is not among leased_worker_ids",
        ],
    );
    let told = refused(&with("assigned_worker_ids = \"9-1\""), &["check"])?;
    assert_has(&told, &["\"9-1\" is no range of worker ids"]);
    let list = [
        "worker",
        "assign",
        "--database",
        "postgres://127.0.0.1/shop",
    ];
    let told = refused(&good, &list)?;
    assert_has(&told, &["--database: names no user"]);
    let server = PgServer::builder().preload(false).start()?;
    let url = server.url("postgres");
    let ask = ["worker", "assign", "--database", url.as_str()];
    ProxyProcess::said(&good, &["init"])?;
    let told = refused(&good, &ask)?;
    assert_has(&told, &["extension keywright is not in the database"]);
    let told = refused(&with("assigned_worker_ids = \"512-600\""), &["init"])?;
    assert_has(&told, &["in the store", "--change-worker-ids"]);
    let told = refused(&good, &["run"])?;
    assert_has(&told, &["there is no [[listener]]"]);
    let none = refused(&good, &["worker", "release", "700", "--gone"])?;
    assert_has(&none, &["worker id 700 is not assigned to a database"]);
    Ok(())
}
