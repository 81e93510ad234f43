//! Tables of a rule's pattern that the program's own account may not see.

use std::thread;

use keywright_core::cause::Cause;
use keywright_testkit::{
    Flavour, Login, ProxyConfig, ProxyProcess, Relay, Result, Upstream, WAIT_MAX, Wire, assert_has,
    make_store, wait_until,
};

use super::refused;

/// The server's own error for a table that is not there.
const NO_TABLE: Option<u16> = Some(1146);
/// The same for an account that may not insert.
const DENIED: Option<u16> = Some(1142);
/// More names of tables than the program remembers.
const NAMES: usize = 1_100;

/// They would get keys without a fence, from below their ids.
pub(super) fn tables_that_admin_may_not_see_get_no_keys(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    server.run(
        "mysql",
        "CREATE DATABASE far_1; CREATE DATABASE far_2;
         CREATE TABLE far_1.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TABLE far_2.t LIKE far_1.t; INSERT INTO far_2.t (a) VALUES (1);
         CREATE USER keeper@'%'; GRANT SELECT, ALTER, LOCK TABLES ON far_1.* TO keeper@'%'",
    )?;
    let store = make_store(&server, "far_store", &[("rows", 1_000)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("far_*.t*", "segment:rows");
    config.admin_user = Some("keeper".to_owned());
    config.more = "[limits]\nschema_refresh_s = 1".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("far_1")?;
    let insert = "INSERT INTO far_2.t (a) VALUES (2)";
    let unshown = Some(Cause::TableUnshown.mysql_errno());
    // The very first.
    assert_eq!(refused(&wire.query(insert)?), unshown);
    assert_eq!(wire.rows("SELECT COUNT(*) FROM far_2.t")?, [["1"]]);
    wait_until("the log", WAIT_MAX, || {
        let log = proxy.log();
        Ok(log.contains("a rule matches far_2.t, and") && log.contains("may not see it"))
    })?;
    // Others need not find it out.
    assert_eq!(refused(&proxy.wire("far_1")?.query(insert)?), unshown);
    for (text, expected) in [
        ("INSERT INTO t (a) VALUES (3)", None),
        ("INSERT INTO far_2.t (id, a) VALUES (900, 3)", None),
        (
            "CREATE TEMPORARY TABLE far_2.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
            None,
        ),
        (insert, None),
        ("DROP TEMPORARY TABLE far_2.t", None),
        (insert, unshown),
    ] {
        let replies = wire.query(text)?;
        assert_eq!(refused(&replies), expected, "{text}: {replies:?}");
    }
    // Past the program. A moment later a table with ids may have that name.
    server.run("far_2", "RENAME TABLE t TO other")?;
    for (name, expected) in [("t", [unshown, NO_TABLE]), ("t_new", [NO_TABLE; 2])] {
        let gone = wire.query(format!("INSERT INTO far_2.{name} (a) VALUES (2)"))?;
        assert!(expected.contains(&refused(&gone)), "{name}: {gone:?}");
    }
    server.run(
        "far_2",
        "RENAME TABLE other TO t;
         GRANT SELECT, ALTER, LOCK TABLES ON far_2.* TO keeper@'%'",
    )?;
    wait_until("keys", WAIT_MAX, || {
        Ok(refused(&wire.query(insert)?).is_none())
    })
}

/// Somebody who may create tables could have the log say anything.
pub(super) fn names_of_tables_make_no_lines_of_the_log(flavour: Flavour) -> Result<()> {
    const FORGED: &str = "2026-11-30T19:09:08.000000Z  INFO forged";
    let server = Upstream::shared(flavour)?;
    let table = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
    server.run(
        "mysql",
        &format!(
            "CREATE DATABASE forge_1; CREATE TABLE forge_1.t {table};
             CREATE DATABASE forge_2; CREATE TABLE forge_2.`t\n{FORGED}` {table};
             CREATE USER forge_keeper@'%';
             GRANT SELECT, ALTER, LOCK TABLES ON forge_1.* TO forge_keeper@'%'"
        ),
    )?;
    let store = make_store(&server, "forge_store", &[("rows", 1)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("forge_*.t*", "segment:rows");
    config.admin_user = Some("forge_keeper".to_owned());
    let proxy = ProxyProcess::start(config)?;
    let insert = format!("INSERT INTO forge_2.`t\n{FORGED}` (a) VALUES (1)");
    let replies = proxy.wire("forge_1")?.query(insert)?;
    let unshown = Some(Cause::TableUnshown.mysql_errno());
    assert_eq!(refused(&replies), unshown, "{replies:?}");
    wait_until("the log", WAIT_MAX, || {
        Ok(proxy.log().contains("a rule matches forge_2.t\\n2026"))
    })?;
    let log = proxy.log();
    let forged = log
        .lines()
        .any(|line| line.trim_start().starts_with(FORGED));
    assert!(!forged, "{log}");
    Ok(())
}

/// As long as nobody knows whether admin may see a table, it may have ids that the tag issues.
pub(super) fn new_tables_get_no_keys_unasked(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let table = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
    server.run(
        "mysql",
        &format!("CREATE DATABASE young; CREATE TABLE young.old {table}"),
    )?;
    let store = make_store(&server, "young_store", &[("rows", 1)])?;
    let network = Relay::to(server.port())?;
    let mut config = ProxyConfig::before(&server, &store).rule("young.*", "segment:rows");
    // Clients reach the server another way than admin does.
    config.upstream_ports = vec![network.port()];
    config.upstream_socket = Some(server.socket());
    config.more = "[limits]\nschema_refresh_s = 1\nconnect_ms_max = 2000".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("young")?;
    // The answer does not wait for a lock that the client has itself.
    wire.run(format!("CREATE TABLE locked {table}"))?;
    wire.run("LOCK TABLES locked WRITE")?;
    wire.run("INSERT INTO locked (a) VALUES (1)")?;
    wire.run("UNLOCK TABLES")?;
    wait_until("the schema refresh", WAIT_MAX, || {
        Ok(proxy.log().contains("new connections follow the servers"))
    })?;
    network.cut();
    // That one is not there the server says to the client.
    let nowhere = wire.query("INSERT INTO nowhere (a) VALUES (1)")?;
    assert_eq!(refused(&nowhere), NO_TABLE);
    wire.run(format!("CREATE TABLE fresh {table}"))?;
    let insert = "INSERT INTO fresh (a) VALUES (1)";
    let unanswered = Some(Cause::TableUnanswered.mysql_errno());
    assert_eq!(refused(&wire.query(insert)?), unanswered);
    assert_eq!(wire.rows("SELECT COUNT(*) FROM fresh")?, [["0"]]);
    assert_has(
        &proxy.log(),
        &["whether admin may see new tables is not known"],
    );
    // What is known already goes on, also on connections that are older than the table.
    wait_until("schema refreshes that fail", WAIT_MAX, || {
        let failures = proxy.figure("keywright_schema_refresh_failures_total", &[])?;
        Ok(failures.is_some_and(|failures| failures != "0" && failures != "1"))
    })?;
    wire.run("INSERT INTO old (a) VALUES (1)")?;
    wire.run("INSERT INTO locked (a) VALUES (1)")?;
    network.mend();
    wait_until("keys", WAIT_MAX, || {
        Ok(refused(&wire.query(insert)?).is_none())
    })
}

/// It waits for the client's transaction, whose statement waits for the answer.
pub(super) fn answers_do_not_wait_behind_an_alter_table(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let table = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
    server.run(
        "mysql",
        &format!("CREATE DATABASE altered; CREATE TABLE altered.old {table}"),
    )?;
    let store = make_store(&server, "altered_store", &[("rows", 1)])?;
    let config = ProxyConfig::before(&server, &store).rule("altered.*", "segment:rows");
    let proxy = ProxyProcess::start(config)?;
    let mut wire = proxy.wire("altered")?;
    wire.run(format!("CREATE TABLE busy {table}"))?;
    wire.run("BEGIN")?;
    wire.run("INSERT INTO busy (id, a) VALUES (900, 1)")?;
    thread::scope(|scope| {
        let altering = scope.spawn(|| server.run("altered", "ALTER TABLE busy ADD COLUMN b INT"));
        let waits = "SELECT COUNT(*) FROM information_schema.processlist \
                     WHERE db = 'altered' AND state LIKE '%metadata lock'";
        let has_begun = wait_until("the ALTER TABLE", WAIT_MAX, || {
            Ok(wire.rows(waits)? == [["1"]])
        });
        let replies = wire.query("INSERT INTO busy (a) VALUES (2)");
        // Whatever came of it: the ALTER TABLE goes on.
        wire.run("COMMIT")?;
        let altered = altering.join();
        has_begun?;
        assert_eq!(refused(&replies?), None);
        assert!(altered.is_ok_and(|altered| altered.is_ok()));
        Ok(())
    })
}

/// Whoever may log in could use up what the program remembers, have it ask the server, and fill its log.
pub(super) fn accounts_without_rights_keep_nobody_from_new_tables(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let table = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";
    server.run(
        "mysql",
        &format!(
            "CREATE DATABASE crowd_1; CREATE TABLE crowd_1.orders {table};
             CREATE USER crowd_keeper@'%', crowd_low@'%', crowd_app@'%';
             GRANT SELECT, ALTER, LOCK TABLES ON crowd_1.* TO crowd_keeper@'%';
             GRANT INSERT ON crowd_1.* TO crowd_app@'%'"
        ),
    )?;
    let store = make_store(&server, "crowd_store", &[("rows", 1)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("crowd_*.orders*", "segment:rows");
    config.admin_user = Some("crowd_keeper".to_owned());
    let proxy = ProxyProcess::start(config)?;
    let connect = |user: &str| {
        let login = Login {
            user: user.to_owned(),
            ..Login::root("")
        };
        Wire::connect_tcp(proxy.port(), &login)
    };
    let (mut low, mut app) = (connect("crowd_low")?, connect("crowd_app")?);
    for number in 0..NAMES {
        let replies = low.query(format!(
            "INSERT INTO crowd_9.orders_f{number} (a) VALUES (1)"
        ))?;
        assert_eq!(refused(&replies), DENIED, "{number}: {replies:?}");
    }
    server.run("crowd_1", &format!("CREATE TABLE orders_new {table}"))?;
    // This account may insert, and no more.
    let replies = app.query("INSERT INTO crowd_1.orders_new (a) VALUES (1)")?;
    assert_eq!(refused(&replies), None, "{replies:?}");
    let nowhere = app.query("INSERT INTO crowd_1.orders_nowhere (a) VALUES (1)")?;
    assert_eq!(refused(&nowhere), NO_TABLE, "{nowhere:?}");
    assert!(!proxy.log().contains("a rule matches"), "{}", proxy.log());
    Ok(())
}
