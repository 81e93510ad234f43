//! LOAD DATA into tables with rules, through the proxy as a process.

use std::path::Path;

use keywright_testkit::{
    Flavour, Login, ProxyConfig, ProxyProcess, Reply, Result, Upstream, Wire, make_store,
};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, WhiteListFsHandler};

keywright_testkit::on_both_flavours!(
    a_hundred_thousand_lines_of_a_drivers_file_get_keys,
    snowflakes_of_many_ticks_are_given_out,
    keys_in_a_file_may_be_forbidden,
    files_that_are_too_long_are_refused_and_the_session_goes_on,
    tables_with_triggers_take_clients_files_only,
);

const LINES: usize = 100_000;

fn proxy(
    server: &Upstream,
    schema: &str,
    rules: &[(&str, &str)],
    more: &str,
) -> Result<ProxyProcess> {
    server.run("mysql", &format!("CREATE DATABASE {schema}"))?;
    let store = make_store(server, &format!("{schema}_store"), &[("rows", 1_000_000)])?;
    let mut config = ProxyConfig::before(server, &store);
    for (table, key) in rules {
        config = config.rule(&format!("{schema}.{table}"), key);
    }
    config.more = more.to_owned();
    for (table, _) in rules {
        server.run(
            schema,
            &format!(
                "CREATE TABLE {table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(60))"
            ),
        )?;
    }
    ProxyProcess::start(config)
}

fn lines() -> String {
    (0..LINES).map(|i| format!("{i}\tline {i}\n")).collect()
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

/// What a driver sees that sends the file.
async fn load(port: u16, schema: &str, file: &Path) -> Result<(u64, String, Option<u64>)> {
    let opts = OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(port)
        .user(Some("root"))
        .db_name(Some(schema))
        .prefer_socket(false)
        .local_infile_handler(Some(WhiteListFsHandler::new([file])));
    let mut conn = Conn::new(opts).await?;
    let name = file.display();
    conn.query_drop(format!(
        "LOAD DATA LOCAL INFILE '{name}' INTO TABLE t (a, b)"
    ))
    .await?;
    let (rows, info) = (conn.affected_rows(), conn.info().into_owned());
    let first = conn.query_first("SELECT LAST_INSERT_ID()").await?;
    conn.disconnect().await?;
    Ok((rows, info, first))
}

fn a_hundred_thousand_lines_of_a_drivers_file_get_keys(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let proxy = proxy(&server, "load_many", &[("t", "segment:rows")], "")?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("rows.txt");
    std::fs::write(&file, lines())?;
    let (rows, info, first) = runtime()?.block_on(load(proxy.port(), "load_many", &file))?;
    assert_eq!(rows, LINES as u64);
    assert_eq!(info, "Records: 100000  Deleted: 0  Skipped: 0  Warnings: 0");
    let seen = server.run(
        "load_many",
        "SELECT COUNT(*), COUNT(DISTINCT id), MIN(id), SUM(id - a = (SELECT MIN(id) FROM t)) FROM t",
    )?;
    let first = first.unwrap_or(0).to_string();
    assert_eq!(seen, [["100000", "100000", &first, "100000"]]);
    Ok(())
}

fn snowflakes_of_many_ticks_are_given_out(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let proxy = proxy(&server, "load_ticks", &[("t", "snowflake")], "")?;
    let mut wire = Wire::connect_tcp(proxy.port(), &Login::root("load_ticks"))?;
    wire.set_local_file(lines());
    wire.run("LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a, b)")?;
    let seen = wire.rows(
        "SELECT COUNT(*), COUNT(DISTINCT id), MIN(id) = LAST_INSERT_ID(), COUNT(DISTINCT id >> 22) > 1 FROM t",
    )?;
    assert_eq!(seen, [["100000", "100000", "1", "1"]]);
    let seen = wire.rows("SELECT COUNT(*) FROM (SELECT a, LAG(a) OVER (ORDER BY id) earlier FROM t) d WHERE a = earlier + 1")?;
    assert_eq!(seen, [["99999"]], "in the order of the lines");
    Ok(())
}

fn keys_in_a_file_may_be_forbidden(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let rule = "segment:rows\"\non_explicit = \"refuse";
    let mut proxy = proxy(&server, "load_given", &[("t", rule)], "")?;
    server.run(
        "load_given",
        "CREATE VIEW v AS SELECT id AS nr, a, b FROM t",
    )?;
    // It looks at views when it starts.
    proxy.stop()?;
    proxy.restart()?;
    let mut wire = Wire::connect_tcp(proxy.port(), &Login::root("load_given"))?;
    let servers_file = server.data_dir().join("load_given.txt");
    let loads = [
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
        "LOAD DATA INFILE './load_given.txt' INTO TABLE v",
    ];
    for load in loads {
        let mut give = |lines: String| {
            std::fs::write(&servers_file, &lines)?;
            wire.set_local_file(lines);
            wire.query(load)
        };
        let replies = give("\\N\t1\tx\n0\t2\ty\n".to_owned())?;
        assert!(
            matches!(replies.as_slice(), [Reply::Done(_)]),
            "{replies:?}"
        );
        for given in ["7", "-1", "1000000"] {
            let replies = give(format!("\\N\t3\tx\n{given}\t4\ty\n"))?;
            let [Reply::Failed(fault)] = replies.as_slice() else {
                anyhow::bail!("{replies:?}");
            };
            assert_eq!(fault.errno, 3105, "{fault:?}");
        }
        let seen = wire.rows("SELECT COUNT(*), MIN(id) = LAST_INSERT_ID() FROM t")?;
        assert_eq!(seen, [["2", "1"]], "and nothing of a statement that fails");
        wire.run("DELETE FROM t")?;
    }
    Ok(())
}

fn files_that_are_too_long_are_refused_and_the_session_goes_on(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    let more = "[limits]\nrewrite_bytes_max = 1000000\n";
    let proxy = proxy(&server, "load_long", &[("t", "segment:rows")], more)?;
    let mut wire = Wire::connect_tcp(proxy.port(), &Login::root("load_long"))?;
    wire.set_local_file(lines());
    let replies = wire.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a, b)")?;
    let [Reply::Failed(fault)] = replies.as_slice() else {
        anyhow::bail!("{replies:?}");
    };
    assert_eq!(fault.errno, 1235, "{fault:?}");
    assert!(fault.to_string().contains("rewrite_bytes_max"), "{fault:?}");
    wire.set_local_file("1\tone\n");
    wire.run("LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a, b)")?;
    assert_eq!(wire.rows("SELECT a, b FROM t")?, [["1", "one"]]);
    Ok(())
}

/// An AFTER trigger that inserts: it leaves the counting alone, and a failed try of a server's file could not be undone in
/// tables without transactions.
fn tables_with_triggers_take_clients_files_only(flavour: Flavour) -> Result<()> {
    let server = Upstream::shared(flavour)?;
    server.run("mysql", "CREATE DATABASE load_trigger")?;
    server.run(
        "load_trigger",
        "CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, filled BIGINT) ENGINE = MyISAM",
    )?;
    let store = make_store(&server, "load_trigger_store", &[("rows", 1_000_000)])?;
    server.run(
        "load_trigger",
        "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE TRIGGER log_it AFTER INSERT ON t FOR EACH ROW INSERT INTO log (filled) VALUES (NEW.id);",
    )?;
    let config = ProxyConfig::before(&server, &store).rule("load_trigger.t", "segment:rows");
    let proxy = ProxyProcess::start(config)?;
    let mut wire = Wire::connect_tcp(proxy.port(), &Login::root("load_trigger"))?;
    wire.set_local_file("1\n2\n3\n");
    wire.run("LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a)")?;
    let seen = wire.rows("SELECT GROUP_CONCAT(filled - LAST_INSERT_ID() ORDER BY id) FROM log")?;
    assert_eq!(seen, [["0,1,2"]]);
    let replies = wire.query("LOAD DATA INFILE 'x' INTO TABLE t (a)")?;
    let [Reply::Failed(fault)] = replies.as_slice() else {
        anyhow::bail!("{replies:?}");
    };
    assert_eq!(fault.errno, 1235, "{fault:?}");
    assert!(fault.to_string().contains("a trigger"), "{fault:?}");
    Ok(())
}
