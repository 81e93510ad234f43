//! The harness itself: private MariaDB and MySQL servers, and the client that shows everything on the wire.

use keywright_testkit::{
    Flavour, Login, MariaError, MariaServer, Param, Reply, Result, SqlFault, Upstream, Value, Wire,
    capability, status,
};

keywright_testkit::on_both_flavours!(
    server_survives_its_kill,
    answers_are_shown_whole,
    prepared_statements_keep_types,
    results_of_every_size_arrive,
    local_files_are_sent,
    cursors_are_read_in_parts,
    passwords_are_proven,
);

fn server_survives_its_kill(flavour: Flavour) -> Result<()> {
    let mut server = Upstream::start_with(flavour, &["--innodb-flush-log-at-trx-commit=1"])?;
    let mut wire = server.wire("mysql")?;
    wire.run("CREATE DATABASE d")?;
    wire.run("CREATE TABLE d.t (id INT PRIMARY KEY)")?;
    wire.run("INSERT INTO d.t VALUES (1)")?;
    server.kill9()?;
    assert!(wire.query("SELECT 1").is_err(), "nobody answers");
    server.restart()?;
    assert_eq!(server.wire("d")?.rows("SELECT id FROM t")?, [["1"]]);
    server.stop()?;
    assert!(server.wire("d").is_err(), "nobody listens");
    Ok(())
}

/// A schema of one's own on the shared server.
fn schema(flavour: Flavour, name: &str) -> Result<(std::sync::Arc<Upstream>, Wire)> {
    let server = Upstream::shared(flavour)?;
    server
        .wire("mysql")?
        .run(format!("CREATE DATABASE {name}"))?;
    let wire = server.wire(name)?;
    Ok((server, wire))
}

fn answers_are_shown_whole(flavour: Flavour) -> Result<()> {
    let (server, mut wire) = schema(flavour, "answers")?;
    let expected = match flavour {
        Flavour::MariaDb => "10.11",
        Flavour::MySql => "9.7",
    };
    assert!(
        wire.server_version().contains(expected),
        "{}",
        wire.server_version()
    );
    wire.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(5))")?;
    let done = wire.run("INSERT INTO t (a) VALUES ('x'), ('y')")?;
    assert_eq!((done.affected_rows, done.last_insert_id), (2, 1));
    assert_eq!(done.info, b"Records: 2  Duplicates: 0  Warnings: 0");
    wire.run("BEGIN")?;
    let replies =
        wire.query("SELECT a, NULL FROM t WHERE id = 1; DELETE FROM t; SELECT nothing")?;
    let [Reply::Rows(rows), Reply::Done(done), Reply::Failed(fault)] = replies.as_slice() else {
        panic!("{replies:#?}");
    };
    assert_eq!(rows.rows, [[Value::Bytes(b"x".to_vec()), Value::Null]]);
    assert_eq!(
        rows.columns.first().map(|column| column.org_name.clone()),
        Some(b"a".to_vec())
    );
    assert_eq!(done.affected_rows, 2);
    assert!(done.status & status::IN_TRANSACTION != 0);
    assert_eq!((fault.errno, fault.sqlstate.as_str()), (1054, "42S22"));
    let use_mysql = wire.run("USE mysql")?;
    assert!(
        use_mysql.status & status::STATE_CHANGED != 0,
        "{use_mysql:?}"
    );
    assert!(!use_mysql.changes.is_empty());
    wire.run("ROLLBACK")?;
    // The same without what modern drivers ask for.
    let mut login = Login::root("answers");
    login.capabilities = 0;
    let mut old = Wire::connect_tcp(server.port(), &login)?;
    assert_eq!(old.rows("SELECT a FROM t ORDER BY id")?, [["x"], ["y"]]);
    assert_eq!(old.run("INSERT INTO t (a) VALUES ('z')")?.last_insert_id, 3);
    Ok(())
}

fn prepared_statements_keep_types(flavour: Flavour) -> Result<()> {
    let (_server, mut wire) = schema(flavour, "prepared")?;
    wire.run("CREATE TABLE t (a INT, b BIGINT UNSIGNED, c DOUBLE, d VARCHAR(9), e BLOB)")?;
    let insert = wire.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)")??;
    assert_eq!(insert.params.len(), 5);
    let params = [
        Param::Signed(-5),
        Param::Unsigned(u64::MAX),
        Param::Real(1.5),
        Param::Null,
        Param::Long,
    ];
    wire.send_long_data(&insert, 4, b"par")?;
    wire.send_long_data(&insert, 4, b"ts")?;
    wire.execute(&insert, &params)?;
    let select = wire.prepare("SELECT a, b, c, d, e FROM t")??;
    let replies = wire.execute(&select, &[])?;
    let [Reply::Rows(rows)] = replies.as_slice() else {
        panic!("{replies:#?}");
    };
    let expected = [
        Value::Signed(-5),
        Value::Unsigned(u64::MAX),
        Value::Real(1.5),
        Value::Null,
        Value::Bytes(b"parts".to_vec()),
    ];
    assert_eq!(rows.rows, [expected]);
    wire.close(&insert)?;
    let refused = wire.prepare("SELECT FROM")?.err();
    assert_eq!(refused.map(|fault| fault.errno), Some(1064));
    Ok(())
}

fn results_of_every_size_arrive(flavour: Flavour) -> Result<()> {
    let server = Upstream::start_with(flavour, &["--max-allowed-packet=64M"])?;
    let mut wire = server.wire("mysql")?;
    // Around the packet's length in the protocol, 16 MB − 1, and far beyond.
    for length in [0, 250, 251, 65_536, 0xff_fffb - 4, 0xff_ffff, 40_000_000] {
        let rows = wire.rows(format!("SELECT REPEAT('x', {length})"))?;
        assert_eq!(rows.concat().concat().len(), length);
        let long = "y".repeat(length);
        let rows = wire.rows(format!("SELECT LENGTH('{long}')"))?;
        assert_eq!(rows, [[length.to_string()]]);
    }
    Ok(())
}

fn local_files_are_sent(flavour: Flavour) -> Result<()> {
    let (_server, mut wire) = schema(flavour, "local_files")?;
    wire.run("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(5))")?;
    wire.set_local_file("x\ny\nz\n");
    let done = wire.run("LOAD DATA LOCAL INFILE 'any' INTO TABLE t (a)")?;
    assert_eq!(done.affected_rows, 3);
    assert_eq!(
        done.info,
        b"Records: 3  Deleted: 0  Skipped: 0  Warnings: 0"
    );
    Ok(())
}

fn cursors_are_read_in_parts(flavour: Flavour) -> Result<()> {
    let (server, mut modern) = schema(flavour, "cursors")?;
    modern.run("CREATE TABLE t (a INT)")?;
    modern.run("INSERT INTO t VALUES (1), (2), (3)")?;
    let mut login = Login::root("cursors");
    login.capabilities &= !capability::DEPRECATE_EOF;
    let mut old = Wire::connect_tcp(server.port(), &login)?;
    for wire in [&mut modern, &mut old] {
        let select = wire.prepare("SELECT a FROM t ORDER BY a")??;
        let opened = wire.open_cursor(&select, &[])?;
        let [Reply::Rows(rows)] = opened.as_slice() else {
            panic!("{opened:#?}");
        };
        assert!(rows.rows.is_empty() && rows.end.status & status::CURSOR_EXISTS != 0);
        let first = wire.fetch(&select, 2)?;
        assert_eq!(first.as_text(), [["1"], ["2"]]);
        let last = wire.fetch(&select, 2)?;
        assert_eq!(last.as_text(), [["3"]]);
        assert!(last.end.status & status::LAST_ROW_SENT != 0);
    }
    Ok(())
}

fn passwords_are_proven(flavour: Flavour) -> Result<()> {
    let (server, mut wire) = schema(flavour, "passwords")?;
    wire.run("CREATE USER u@'127.0.0.1' IDENTIFIED BY 'secret'")?;
    if flavour == Flavour::MySql {
        // This fills the server's cache of hashes, as a login over a secure channel does; this client has no RSA.
        server_side_login(&server)?;
    }
    let login = |password: &str| Login {
        user: "u".to_owned(),
        password: password.to_owned(),
        ..Login::root("")
    };
    let mut user = Wire::connect_tcp(server.port(), &login("secret"))?;
    assert_eq!(user.rows("SELECT CURRENT_USER()")?, [["u@127.0.0.1"]]);
    user.change_user(&Login::root(""))?;
    assert_eq!(user.rows("SELECT CURRENT_USER()")?, [["root@127.0.0.1"]]);
    user.change_user(&login("secret"))?;
    assert_eq!(user.rows("SELECT CURRENT_USER()")?, [["u@127.0.0.1"]]);
    if flavour == Flavour::MariaDb {
        let refused = Wire::connect_tcp(server.port(), &login("wrong"))
            .err()
            .and_then(|error| error.downcast::<SqlFault>().ok());
        assert_eq!(refused.map(|fault| fault.errno), Some(1045));
    }
    Ok(())
}

/// With the `mariadb` client, which knows the whole of caching_sha2_password.
fn server_side_login(server: &Upstream) -> Result<()> {
    let status = std::process::Command::new("mariadb")
        .args(["--no-defaults", "--user=u", "--password=secret"])
        .args(["--host=127.0.0.1", "--execute=SELECT 1"])
        .arg(format!("--port={}", server.port()))
        .stdout(std::process::Stdio::null())
        .status()?;
    anyhow::ensure!(status.success(), "the client `mariadb` could not log in");
    Ok(())
}

#[test]
fn maria_runs_scripts_and_reports_errors() -> Result<()> {
    let server = MariaServer::start()?;
    let script = "DELIMITER //\nCREATE FUNCTION seven() RETURNS INT DETERMINISTIC RETURN 7 //\n\
                  DELIMITER ;\nSELECT seven(), NULL;";
    server.run("mysql", "CREATE DATABASE shop")?;
    let rows = server.run("shop", script)?;
    assert_eq!(rows, [["7".to_owned(), "NULL".to_owned()]]);
    let error = server.run("shop", "SELECT eight()").unwrap_err();
    let error = error.downcast_ref::<MariaError>();
    assert!(
        error.is_some_and(|error| error.errno == 1305 && error.sqlstate == "42000"),
        "{error:?}"
    );
    Ok(())
}
