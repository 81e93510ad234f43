//! What a client sees through the proxy is what it sees without: on a listener without rules, and on one whose rules match
//! other tables.

use std::process::{Command, Stdio};
use std::sync::Arc;

use keywright_testkit::{
    Flavour, Login, Param, ProxyConfig, ProxyProcess, Reply, Result, SqlFault, Upstream, WAIT_MAX,
    Wire, capability, command, make_store, status, wait_until,
};

keywright_testkit::on_both_flavours!(
    answers_of_every_kind_are_the_same,
    results_of_every_size_pass,
    local_files_pass,
    cursors_and_long_data_pass,
    results_pass_beside_a_routines_open_cursor,
    clients_may_send_before_they_read,
    connections_change_user_and_start_over,
    old_clients_are_served,
    thread_ids_are_real,
    logins_are_the_servers,
    a_dead_server_looks_dead,
);

/// A server, and the ports that lead to it: its own, a proxy's without rules, and one's whose rule matches other tables.
struct Ways {
    server: Arc<Upstream>,
    proxies: [ProxyProcess; 2],
}

impl Ways {
    /// With a schema of that name on the server.
    fn open(flavour: Flavour, schema: &str) -> Result<Ways> {
        Ways::to(Upstream::shared(flavour)?, schema)
    }

    fn to(server: Arc<Upstream>, schema: &str) -> Result<Ways> {
        server
            .wire("mysql")?
            .run(format!("CREATE DATABASE {schema}"))?;
        // A proxy does not start with a rule that no table matches.
        server.run(
            "mysql",
            "CREATE DATABASE IF NOT EXISTS elsewhere;
             CREATE TABLE IF NOT EXISTS elsewhere.t (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
        )?;
        let store = make_store(&server, &format!("store_{schema}"), &[("ways", 1)])?;
        let config = ProxyConfig::before(&server, &store);
        let watching = config.clone().rule("elsewhere.*", "segment:ways");
        let proxies = [ProxyProcess::start(config)?, ProxyProcess::start(watching)?];
        Ok(Ways { server, proxies })
    }

    fn ports(&self) -> [u16; 3] {
        let [blind, watching] = &self.proxies;
        [self.server.port(), blind.port(), watching.port()]
    }

    /// Does the same on every way and asserts that it comes to the same, also for clients whose results end with EOF packets.
    fn same<T: PartialEq + std::fmt::Debug>(
        &self,
        login: &Login,
        mut seen: impl FnMut(&mut Wire) -> Result<T>,
    ) -> Result<T> {
        let with_eof = Login {
            capabilities: login.capabilities & !capability::DEPRECATE_EOF,
            ..login.clone()
        };
        self.same_for(&with_eof, &mut seen)?;
        self.same_for(login, &mut seen)
    }

    fn same_for<T: PartialEq + std::fmt::Debug>(
        &self,
        login: &Login,
        seen: &mut impl FnMut(&mut Wire) -> Result<T>,
    ) -> Result<T> {
        let [direct, blind, watching] = self.ports();
        let expected = seen(&mut Wire::connect_tcp(direct, login)?)?;
        for port in [blind, watching] {
            let proxied = seen(&mut Wire::connect_tcp(port, login)?)?;
            assert_eq!(proxied, expected);
        }
        Ok(expected)
    }
}

fn answers_of_every_kind_are_the_same(flavour: Flavour) -> Result<()> {
    let ways = Ways::open(flavour, "answers")?;
    ways.server.run(
        "answers",
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(9) UNIQUE, b BLOB);
         DELIMITER //
         CREATE PROCEDURE p() BEGIN SELECT 1; SELECT a FROM t; INSERT INTO t (a) VALUES ('x'); END//",
    )?;
    let texts = [
        "SELECT * FROM t",
        "SELECT a, NULL, 1.5, NOW() - NOW() FROM t WHERE a > 'x'",
        "INSERT INTO t (a) VALUES ('z')",
        "DELETE FROM t WHERE a = 'z'",
        "INSERT INTO t (a) VALUES ('x')",
        "INSERT IGNORE INTO t (a) VALUES ('x')",
        "SHOW WARNINGS",
        "SELECT 1; UPDATE t SET b = 'b' WHERE a = 'x'; SELECT nothing; SELECT 2",
        "CALL p()",
        "SET NAMES latin1",
        "SET @a = 1, autocommit = 0",
        "BEGIN",
        "ROLLBACK",
        "USE mysql",
        "SELEC",
        "",
        "SELECT REPEAT('x', 300), REPEAT('y', 70000)",
        "PREPARE s FROM 'SELECT ?'",
        "EXECUTE s USING @a",
    ];
    let fill = "TRUNCATE t; INSERT INTO t (a) VALUES ('x'), ('y')";
    ways.same(&Login::root("answers"), |wire| {
        wire.run(fill)?;
        texts
            .iter()
            .map(|text| wire.query(text))
            .collect::<Result<Vec<_>>>()
    })?;
    ways.same(&Login::root("answers"), |wire| {
        wire.run(fill)?;
        let mut seen = Vec::new();
        for text in texts {
            match wire.prepare(text)? {
                Err(fault) => seen.push(Reply::Failed(fault)),
                Ok(statement) => {
                    seen.extend(wire.execute(&statement, &[])?);
                    seen.extend(wire.execute(&statement, &[])?);
                    wire.close(&statement)?;
                }
            }
        }
        Ok(seen)
    })?;
    Ok(())
}

fn results_of_every_size_pass(flavour: Flavour) -> Result<()> {
    let server = Arc::new(Upstream::start_with(
        flavour,
        &["--max-allowed-packet=64M"],
    )?);
    let ways = Ways::to(server, "sizes")?;
    ways.same(&Login::root("sizes"), |wire| {
        // Around the packet's length in the protocol, 16 MB − 1, and far beyond.
        for length in [
            0,
            250,
            251,
            65_535,
            65_536,
            0xff_fffb - 4,
            0xff_fffa,
            0xff_ffff,
            40_000_000,
        ] {
            let rows = wire.rows(format!("SELECT REPEAT('x', {length})"))?;
            assert_eq!(rows.concat().concat().len(), length);
            let long = "y".repeat(length);
            let rows = wire.rows(format!("SELECT LENGTH('{long}')"))?;
            assert_eq!(rows, [[length.to_string()]]);
        }
        Ok(())
    })
}

fn local_files_pass(flavour: Flavour) -> Result<()> {
    const LINES: usize = 300_000;
    let ways = Ways::open(flavour, "files")?;
    let file: String = (0..LINES)
        .map(|i| format!("{i},some text of line {i}\n"))
        .collect();
    ways.same(&Login::root("files"), |wire| {
        wire.run("DROP TABLE IF EXISTS t; CREATE TABLE t (a INT, b VARCHAR(60))")?;
        wire.set_local_file(file.clone());
        let loaded =
            wire.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ','")?;
        wire.set_local_file("");
        let nothing = wire.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t")?;
        let refused = wire.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE no_such_table")?;
        let rows = wire.rows("SELECT COUNT(*), SUM(a), MAX(LENGTH(b)) FROM t")?;
        Ok((loaded, nothing, refused, rows))
    })?;
    Ok(())
}

fn cursors_and_long_data_pass(flavour: Flavour) -> Result<()> {
    let ways = Ways::open(flavour, "cursors")?;
    ways.server
        .run("cursors", "CREATE TABLE t (a INT, b LONGBLOB)")?;
    ways.same(&Login::root("cursors"), |wire| {
        wire.run("DELETE FROM t")?;
        let insert = wire.prepare("INSERT INTO t VALUES (?, ?)")??;
        for a in 0..5 {
            for _ in 0..a {
                wire.send_long_data(&insert, 1, &[b'x'; 50_000])?;
            }
            let b = if a == 0 { Param::Null } else { Param::Long };
            wire.execute(&insert, &[Param::Signed(a), b])?;
            wire.command(command::STMT_RESET, &insert.id.to_le_bytes())?;
        }
        let select = wire.prepare("SELECT a, LENGTH(b) FROM t ORDER BY a")??;
        let opened = wire.open_cursor(&select, &[])?;
        let parts = [
            wire.fetch(&select, 2)?,
            wire.fetch(&select, 2)?,
            wire.fetch(&select, 2)?,
        ];
        wire.close(&select)?;
        // MariaDB says so behind the definitions.
        let fails = wire.prepare("SELECT (SELECT a FROM t)")??;
        let failed = wire.open_cursor(&fails, &[])?;
        let gone = wire.query("SELECT COUNT(*) FROM t")?;
        Ok((opened, parts, failed, gone))
    })?;
    Ok(())
}

fn results_pass_beside_a_routines_open_cursor(flavour: Flavour) -> Result<()> {
    let ways = Ways::open(flavour, "open")?;
    ways.server.run("open", "CREATE TABLE t (a INT)")?;
    ways.server.run("open", "INSERT INTO t VALUES (1), (2)")?;
    ways.server.run(
        "open",
        "DELIMITER //
         CREATE PROCEDURE p() BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT a FROM t;
         OPEN c; FETCH c INTO x; SELECT x; SELECT a FROM t; CLOSE c; SELECT 'closed'; END//",
    )?;
    ways.same(&Login::root("open"), |wire| {
        let text = wire.query("CALL p()")?;
        let call = wire.prepare("CALL p()")??;
        let executed = wire.execute(&call, &[])?;
        let with_cursor = wire.open_cursor(&call, &[])?;
        let after = wire.rows("SELECT 'over'")?;
        Ok((text, executed, with_cursor, after))
    })?;
    Ok(())
}

fn clients_may_send_before_they_read(flavour: Flavour) -> Result<()> {
    const COUNT: usize = 200;
    let ways = Ways::open(flavour, "pipeline")?;
    ways.same(&Login::root("pipeline"), |wire| {
        for i in 0..COUNT {
            wire.send_query(format!("SELECT {i}, REPEAT('x', {i})"))?;
        }
        (0..COUNT)
            .map(|_| wire.read_query())
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(())
}

fn connections_change_user_and_start_over(flavour: Flavour) -> Result<()> {
    let ways = Ways::open(flavour, "users")?;
    let who = "SELECT DATABASE(), CURRENT_USER(), @a, @@autocommit, LAST_INSERT_ID()";
    ways.same(&Login::root("users"), |wire| {
        wire.run("SET @a = 1, autocommit = 0")?;
        let before = wire.rows(who)?;
        wire.change_user(&Login::root("mysql"))?;
        let changed = wire.rows(who)?;
        let refused = wire.change_user(&Login {
            user: "nobody".to_owned(),
            ..Login::root("")
        });
        let refused = refused
            .err()
            .and_then(|error| error.downcast::<SqlFault>().ok());
        // Whether the connection goes on, and as whom.
        let afterwards = wire.rows(who).ok();
        Ok((before, changed, refused, afterwards))
    })?;
    ways.same(&Login::root("users"), |wire| {
        wire.run("SET @a = 1")?;
        let reset = wire.command(command::RESET_CONNECTION, b"")?;
        let after = wire.rows("SELECT @a")?;
        let schema = wire.command(command::INIT_DB, b"mysql")?;
        let ping = wire.command(command::PING, b"")?;
        let unknown = wire.command(0x70, b"")?;
        Ok((
            reset,
            after,
            schema,
            ping,
            unknown,
            wire.rows("SELECT DATABASE()")?,
        ))
    })?;
    Ok(())
}

fn old_clients_are_served(flavour: Flavour) -> Result<()> {
    let ways = Ways::open(flavour, "old")?;
    for left_out in [
        capability::DEPRECATE_EOF,
        capability::SESSION_TRACK,
        capability::MULTI_STATEMENTS,
        !0,
    ] {
        let mut login = Login::root("old");
        login.capabilities &= !left_out;
        ways.same(&login, |wire| {
            let mut seen = Vec::new();
            for text in [
                "SELECT 1, 'x'",
                "SET @a = 1",
                "USE mysql",
                "SELECT 1; SELECT 2",
                "SELEC",
            ] {
                seen.extend(wire.query(text)?);
            }
            Ok(seen)
        })?;
    }
    for extra in [
        capability::FOUND_ROWS,
        capability::CONNECT_ATTRS,
        capability::QUERY_ATTRIBUTES,
    ] {
        let mut login = Login::root("old");
        login.capabilities |= extra;
        ways.same(&login, |wire| {
            let statement = wire.prepare("SELECT ?")??;
            let found = wire.execute(&statement, &[Param::Signed(7)])?;
            Ok((wire.query("SELECT 1")?, found))
        })?;
    }
    Ok(())
}

fn thread_ids_are_real(flavour: Flavour) -> Result<()> {
    let ways = Ways::open(flavour, "threads")?;
    for port in ways.ports() {
        let mut wire = Wire::connect_tcp(port, &Login::root(""))?;
        let id = wire.thread_id();
        assert_eq!(wire.rows("SELECT CONNECTION_ID()")?, [[id.to_string()]]);
        let mut other = Wire::connect_tcp(port, &Login::root(""))?;
        wire.send_query("SELECT SLEEP(60)")?;
        await_statement(&mut other, id)?;
        other.run(format!("KILL QUERY {id}"))?;
        // The statement ends early; the connection goes on.
        wire.read_query()?;
        assert_eq!(wire.rows("SELECT 1")?, [["1"]]);
        other.run(format!("KILL {id}"))?;
        let after = wire.query("SELECT 1");
        assert!(
            after.is_err() || matches!(after?.as_slice(), [Reply::Failed(_)]),
            "a killed connection answers"
        );
    }
    Ok(())
}

/// Waits until the server works on what that connection sent.
fn await_statement(other: &mut Wire, thread_id: u32) -> Result<()> {
    let question = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {thread_id} AND info LIKE 'SELECT SLEEP%'"
    );
    wait_until("the statement", WAIT_MAX, || {
        Ok(other.rows(&question)? == [["1"]])
    })
}

fn logins_are_the_servers(flavour: Flavour) -> Result<()> {
    let ways = Ways::open(flavour, "logins")?;
    ways.server.run(
        "mysql",
        "CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'secret'",
    )?;
    let account = |password: &str| Login {
        user: "plain".to_owned(),
        password: password.to_owned(),
        ..Login::root("")
    };
    for port in ways.ports() {
        // A driver's client, with everything that the server's plugin asks for over this leg.
        let output = Command::new("mariadb")
            .args([
                "--no-defaults",
                "--user=plain",
                "--password=secret",
                "--host=127.0.0.1",
            ])
            .args([
                "--batch",
                "--skip-column-names",
                "--execute=SELECT CURRENT_USER()",
            ])
            .arg(format!("--port={port}"))
            .stdin(Stdio::null())
            .output()?;
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "plain@127.0.0.1\n",
            "{output:?}"
        );
    }
    ways.same(&account("secret"), |wire| {
        wire.rows("SELECT CURRENT_USER()")
    })?;
    let refusals = ways.ports().map(|port| {
        let nobody = Login {
            user: "nobody".to_owned(),
            ..Login::root("")
        };
        let refused = Wire::connect_tcp(port, &nobody).err();
        refused.and_then(|error| error.downcast::<SqlFault>().ok())
    });
    let [direct, blind, watching] = refusals;
    assert_eq!(direct.as_ref().map(|fault| fault.errno), Some(1045));
    assert_eq!(blind, direct);
    assert_eq!(watching, direct);
    Ok(())
}

fn a_dead_server_looks_dead(flavour: Flavour) -> Result<()> {
    let server = Upstream::start(flavour)?;
    let store = Upstream::shared(flavour)?;
    let store_url = make_store(&store, "store_dead", &[])?;
    let proxy = ProxyProcess::start(ProxyConfig::before(&server, &store_url))?;
    let mut server = server;
    let mut wire = proxy.wire("mysql")?;
    assert_eq!(wire.rows("SELECT 1")?, [["1"]]);
    wire.send_query("SELECT SLEEP(60)")?;
    await_statement(&mut server.wire("mysql")?, wire.thread_id())?;
    server.kill9()?;
    assert!(wire.read_query().is_err(), "nobody can answer");
    assert!(proxy.wire("mysql").is_err(), "nobody can greet");
    server.restart()?;
    let mut wire = proxy.wire("mysql")?;
    let done = wire.run("DO 1")?;
    assert!(done.status & status::AUTOCOMMIT != 0);
    Ok(())
}
