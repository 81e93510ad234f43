//! What the proxy logs without being asked for more holds neither statements nor passwords, whatever goes wrong; and nobody waits for who reads it.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use keywright_testkit::redis::RespClient;
use keywright_testkit::{
    Flavour, Login, Param, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, Wire, assert_has,
    free_port, make_store, wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Stands in every statement and is every password.
const SECRET: &str = "hunter2secret";

/// What must not be in a log: the secret, and words of statements.
#[track_caller]
fn is_silent(log: &str) {
    for word in [SECRET, "INSERT", "VALUES", "SELECT"] {
        assert!(!log.contains(word), "{word} is in the log:\n{log}");
    }
}

#[test]
fn statements_and_passwords_are_not_logged() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        &format!(
            "CREATE DATABASE shop; CREATE TABLE shop.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT);
             CREATE USER clerk@'%' IDENTIFIED VIA mysql_native_password USING PASSWORD('{SECRET}');
             GRANT ALL ON *.* TO clerk@'%'"
        ),
    )?;
    let mut store = Upstream::start(Flavour::MariaDb)?;
    let url = make_store(&store, "keywright", &[("t", 1)])?;
    store.run(
        "mysql",
        &format!("CREATE USER clerk@'%' IDENTIFIED BY '{SECRET}'; GRANT ALL ON *.* TO clerk@'%'"),
    )?;
    let url = url.replace("root@", &format!("clerk:{SECRET}@"));
    let mut config = ProxyConfig::before(&server, &url).rule("shop.t", "segment:t");
    config.more = "[limits]\nrewrite_bytes_max = 20000\nlogin_ms_max = 2000\n".to_owned();
    let mut proxy = ProxyProcess::start(config)?;
    let login = Login {
        user: "clerk".to_owned(),
        password: SECRET.to_owned(),
        ..Login::root("shop")
    };
    statements_of_every_fate(&proxy, &login)?;
    logins_that_fail(&proxy, &login);
    store.kill9()?;
    let mut wire = Wire::connect_tcp(proxy.port(), &login)?;
    let rows = vec![format!("('{SECRET}')"); 100].join(",");
    wait_until("the end of the keys", WAIT_MAX, || {
        Ok(wire
            .run(format!("INSERT INTO t (a) VALUES {rows}"))
            .is_err())
    })?;
    let mut server = server;
    server.kill9()?;
    assert!(wire.query(format!("SELECT '{SECRET}'")).is_err());
    assert!(Wire::connect_tcp(proxy.port(), &login).is_err());
    let log = proxy.log();
    // It did log: else this shows nothing.
    assert!(log.contains("upstream cannot be reached"), "{log}");
    is_silent(&log);
    proxy.stop()?;
    is_silent(&proxy.log());
    Ok(())
}

fn statements_of_every_fate(proxy: &ProxyProcess, login: &Login) -> Result<()> {
    let long = SECRET.repeat(10_000);
    let texts = [
        format!("INSERT INTO t (a) VALUES ('{SECRET}')"),
        format!("INSERT INTO t (id, a) VALUES (RAND(), '{SECRET}')"),
        format!("INSERT INTO t (id, a) VALUES (1, '{SECRET}')"),
        format!("INSERT INTO t (id, a) VALUES (1, '{SECRET}')"),
        format!("INSERT INTO t (a) VALUES ('{SECRET}"),
        format!("INSERT INTO missing VALUES ('{SECRET}')"),
        format!("SET PASSWORD FOR CURRENT_USER = PASSWORD('{SECRET}')"),
        format!("INSERT INTO t (a) VALUES ('{long}')"),
    ];
    let mut wire = Wire::connect_tcp(proxy.port(), login)?;
    for text in texts {
        wire.query(text)?;
    }
    // The last one ended the connection.
    let mut wire = Wire::connect_tcp(proxy.port(), login)?;
    let prepared = wire.prepare("INSERT INTO t (id, a) VALUES (?, ?)")??;
    for key in [Param::Null, Param::Text(SECRET.into())] {
        wire.execute(&prepared, &[key, Param::Text(SECRET.into())])?;
    }
    wire.change_user(login)?;
    wire.send_raw(SECRET.as_bytes())?;
    Ok(())
}

fn logins_that_fail(proxy: &ProxyProcess, login: &Login) {
    let wrong = Login {
        password: format!("not {SECRET}"),
        ..login.clone()
    };
    let nowhere = Login {
        database: SECRET.to_owned(),
        ..login.clone()
    };
    for login in [wrong, nowhere] {
        assert!(Wire::connect_tcp(proxy.port(), &login).is_err());
    }
}

/// Neither do the programs that look at the configuration say a password of it.
#[test]
fn passwords_of_the_configuration_are_not_shown() -> Result<()> {
    let server = Upstream::shared(Flavour::MariaDb)?;
    let port = server.port();
    for url in [
        format!("mysql://nobody:{SECRET}@127.0.0.1:{port}/keywright"),
        format!("mysql://nobody:{SECRET}@127.0.0.1:1/keywright"),
        format!("mysql://nobody:{SECRET}@127.0.0.1:99999/keywright"),
        format!("postgres://nobody:{SECRET}@127.0.0.1/keywright"),
        // The driver takes what follows the first @ for the host.
        format!("postgres://nobody:x@{SECRET}@127.0.0.1/keywright"),
        format!("mysql://nobody:{SECRET}@127.0.0.1:{port}"),
        format!("nobody:{SECRET}@127.0.0.1"),
    ] {
        let config = ProxyConfig::before(&server, &url).rule("shop.t", "segment:t");
        for command in ["check", "init"] {
            let output = ProxyProcess::command(&config, &[command])?;
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(!output.status.success(), "{url} is of no use: {said}");
            assert!(!said.contains(SECRET), "{command} with {url}: {said}");
        }
    }
    // A key that there is not, in the line that is complained of.
    let mut config = ProxyConfig::before(&server, "mysql://nobody@127.0.0.1/keywright");
    config.listener = format!("password = \"{SECRET}\"");
    let output = ProxyProcess::command(&config, &["check"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("password: unknown option"), "{said}");
    assert!(!said.contains(SECRET), "{said}");
    Ok(())
}

/// The same program, with its log on a disk that is full.
fn on_a_full_disk(program: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" \"$@\" 2>/dev/full"]);
    shell.arg(program.get_program()).args(program.get_args());
    shell
}

/// It was the end of the program, and of all its clients, with the first line that could not be written.
#[test]
fn a_log_that_cannot_be_written_stops_nothing() -> Result<()> {
    let mut server = Upstream::start(Flavour::MariaDb)?;
    let store = make_store(&server, "keywright", &[("orders", 1)])?;
    let mut config = ProxyConfig::before(&server, &store);
    config.key_ports = vec!["keys = { orders = \"segment:orders\" }\n".to_owned()];
    let mut proxy = ProxyProcess::start(config)?;
    assert!(proxy.stop()?.success());
    proxy.begin_by(|program| on_a_full_disk(&program))?;
    let port = proxy.key_port()?;
    let gives = |words: &str| {
        let client = RespClient::connect(port);
        let given = client.and_then(|mut client| client.say(words)?.integer());
        given.is_ok()
    };
    wait_until("keys", WAIT_MAX, || Ok(gives("INCR orders")))?;
    // Clean, or the store would have gone back.
    server.stop()?;
    wait_until("the end of the keys", WAIT_MAX, || {
        Ok(!gives("INCRBY orders 1000"))
    })?;
    assert!(Wire::connect_tcp(proxy.port(), &Login::root("keywright")).is_err());
    assert!(proxy.is_running()?, "it ended with its log");
    server.restart()?;
    wait_until("keys again", WAIT_MAX, || Ok(gives("INCR orders")))?;
    assert!(proxy.stop()?.success());
    Ok(())
}

/// Killed when the test is over, whatever comes of it.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client that waits for no more than the test does.
fn client(port: u16) -> Result<TcpStream> {
    let client = TcpStream::connect(("127.0.0.1", port))?;
    client.set_read_timeout(Some(WAIT_MAX))?;
    Ok(client)
}

/// A collector that hangs, say. Its pipe is full after some hundred clients that are refused.
#[test]
fn a_log_that_nobody_reads_stops_nobody() -> Result<()> {
    const CLIENTS: usize = 1_500;
    let dir = tempfile::tempdir()?;
    let [listener, key_port, nobody] = [free_port()?, free_port()?, free_port()?];
    let (file, store) = (dir.path().join("keywright.toml"), dir.path().join("store"));
    let config = format!(
        "[store]\nurl = \"file:{}\"\nany_file_system = true\n\
         [[listener]]\nbind = \"127.0.0.1:{listener}\"\nupstream = \"127.0.0.1:{nobody}\"\n\
         [[listener]]\nprotocol = \"redis\"\nbind = \"127.0.0.1:{key_port}\"\nkeys = {{ tokens = \"uuid_v7\" }}\n",
        store.display()
    );
    fs::write(&file, config)?;
    let (mut reader, writer) = io::pipe()?;
    let mut program = Command::new(ProxyProcess::program()?);
    program.arg("run").arg("--config").arg(&file);
    program.stdin(Stdio::null()).stderr(writer);
    let mut started = Started(program.spawn()?);
    // So that the program alone has the other end.
    drop(program);
    wait_until("the listeners", WAIT_MAX, || {
        Ok([listener, key_port]
            .iter()
            .all(|&port| TcpStream::connect(("127.0.0.1", port)).is_ok()))
    })?;
    for _ in 0..CLIENTS {
        let refused = client(listener)?.read_to_end(&mut Vec::new());
        refused.context("a client while the log is full")?;
    }
    let mut asking = client(key_port)?;
    asking.write_all(b"PING\r\n")?;
    let mut answer = [0; 7];
    asking.read_exact(&mut answer)?;
    assert_eq!(&answer, b"+PONG\r\n");
    // It reads again: what was lost is told before the next event.
    let mut log = vec![0; 65_536];
    let count = reader.read(&mut log)?;
    log.truncate(count);
    client(listener)?.read_to_end(&mut Vec::new())?;
    kill(
        Pid::from_raw(i32::try_from(started.0.id())?),
        Signal::SIGTERM,
    )?;
    let mut ended = None;
    wait_until("the end of the program", WAIT_MAX, || {
        ended = started.0.try_wait()?;
        Ok(ended.is_some())
    })?;
    reader.read_to_end(&mut log)?;
    let log = String::from_utf8(log)?;
    assert!(ended.is_some_and(|status| status.success()), "{log}");
    assert_has(
        &log,
        &["listening", "lines of the log were lost", "events="],
    );
    let refused = log.matches("upstream cannot be reached").count();
    assert!(refused > 0 && refused < CLIENTS, "{refused}");
    Ok(())
}
