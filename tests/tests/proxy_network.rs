//! What the network does to the proxy: probes, silent and slow peers, connections that are left in the middle of everything.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::slice;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use keywright_testkit::{
    Flavour, Login, ProxyConfig, ProxyProcess, Result, SqlFault, Upstream, WAIT_MAX, Wire,
    make_store, wait_until,
};
use socket2::{Domain, Socket, Type};

keywright_testkit::on_both_flavours!(
    connections_without_a_login_block_nobody,
    nothing_that_a_client_says_blocks_the_others,
    the_admin_connection_stays_at_its_address,
);

/// An address of this machine that servers do not take for `localhost`, from which they count no errors.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Errors in a row after which the servers of these tests let nobody in any more.
const ERRORS_MAX: usize = 10;

/// Passes connections on to a port, from [`ELSEWHERE`]; its own port.
fn forwarder(to: u16) -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            // It ends with the process, and what cannot be connected is closed.
            let _ = forward(near, to);
        }
    });
    Ok(port)
}

fn forward(near: TcpStream, to: u16) -> Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((ELSEWHERE, 0)).into())?;
    socket.connect(&SocketAddr::from(([127, 0, 0, 1], to)).into())?;
    let far = TcpStream::from(socket);
    for (mut from, mut to) in [
        (near.try_clone()?, far.try_clone()?),
        (far.try_clone()?, near.try_clone()?),
    ] {
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
    }
    Ok(())
}

/// One packet without its header.
fn packet(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let mut payload = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8];
    stream.read_exact(&mut payload)?;
    Ok(payload)
}

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    Ok(stream)
}

/// Protocol 4.1, proofs with their length before them, plugins with names.
const USUAL: u32 = 1 | 1 << 9 | 1 << 15 | 1 << 19;

/// A login request of a user, with a proof by a plugin.
fn login_request(capabilities: u32, user: &str, proof: &[u8], plugin: &str) -> Vec<u8> {
    let mut payload = capabilities.to_le_bytes().to_vec();
    payload.extend((1_u32 << 24).to_le_bytes());
    payload.push(45);
    payload.extend([0; 23]);
    payload.extend(user.as_bytes());
    payload.extend([0, u8::try_from(proof.len()).unwrap()]);
    payload.extend(proof);
    payload.extend(plugin.as_bytes());
    payload.push(0);
    packet_of(1, &payload)
}

fn packet_of(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).unwrap();
    [&[len, 0, 0, sequence], payload].concat()
}

/// An introduction by a plugin that is not the account's, so that the server asks anew.
fn introduction(flavour: Flavour, user: &str) -> Vec<u8> {
    let other = match flavour {
        Flavour::MariaDb => "caching_sha2_password",
        Flavour::MySql => "mysql_native_password",
    };
    login_request(USUAL, user, b"", other)
}

/// A server that counts errors, with the accounts `app` and `half`, and a proxy that comes to it from [`ELSEWHERE`].
fn counting_server(flavour: Flavour) -> Result<(Upstream, ProxyConfig)> {
    let errors_max = format!("--max-connect-errors={ERRORS_MAX}");
    let server = Upstream::start_with(flavour, &["--skip-name-resolve=0", &errors_max])?;
    server.run(
        "mysql",
        "CREATE USER app@'%'; GRANT ALL ON *.* TO app@'%'; CREATE USER half@'%' IDENTIFIED BY 'secret'",
    )?;
    let config = ProxyConfig {
        upstream_ports: vec![forwarder(server.port())?],
        ..ProxyConfig::before(&server, &make_store(&server, "keywright", &[])?)
    };
    Ok((server, config))
}

/// The server has blocked nobody.
fn app_can_log_in(proxy: &ProxyProcess, after: &str) -> Result<()> {
    let login = Login {
        user: "app".to_owned(),
        ..Login::root("mysql")
    };
    let wire = Wire::connect_tcp(proxy.port(), &login);
    wire.map(drop).with_context(|| after.to_owned())
}

fn connections_without_a_login_block_nobody(flavour: Flavour) -> Result<()> {
    let (_server, mut config) = counting_server(flavour)?;
    config.more = "[limits]\nanswer_ms_max = 3000\n".to_owned();
    let proxy = ProxyProcess::start(config)?;
    app_can_log_in(&proxy, "nothing")?;
    // A balancer's probes: with and without waiting for the greeting.
    for _ in 0..ERRORS_MAX * 5 {
        drop(connect(proxy.port())?);
        packet(&mut connect(proxy.port())?)?;
    }
    app_can_log_in(&proxy, "probes")?;
    for _ in 0..ERRORS_MAX * 2 {
        let mut client = connect(proxy.port())?;
        packet(&mut client)?;
        client.write_all(&introduction(flavour, "half"))?;
        packet(&mut client)?;
    }
    app_can_log_in(&proxy, "logins that were left in the middle")?;
    let mut silent = (0..ERRORS_MAX * 2)
        .map(|_| connect(proxy.port()))
        .collect::<Result<Vec<_>>>()?;
    for client in &mut silent {
        packet(client)?;
        let shown = packet(client)?;
        assert!(shown.starts_with(b"\xFF\x87\x04#08S01"), "{shown:?}");
    }
    app_can_log_in(&proxy, "clients that say nothing")?;
    assert!(!proxy.log().contains("panicked"), "{}", proxy.log());
    Ok(())
}

/// What a client that has no account may say in a login, and have the server count.
fn nothing_that_a_client_says_blocks_the_others(flavour: Flavour) -> Result<()> {
    let (server, config) = counting_server(flavour)?;
    if flavour == Flavour::MariaDb {
        server.run(
            "mysql",
            "INSTALL SONAME 'auth_ed25519'; CREATE USER signed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret')",
        )?;
    }
    let proxy = ProxyProcess::start(config)?;
    // So often that the server would let nobody in, had it counted. What a client says, in turn with the server; whether it waits to be
    // refused.
    let try_often = |what: &str, said: &[Vec<u8>], is_refused: bool| -> Result<()> {
        for _ in 0..ERRORS_MAX * 2 {
            let mut client = connect(proxy.port())?;
            for bytes in said {
                packet(&mut client)?;
                client.write_all(bytes)?;
            }
            let shown = packet(&mut client)?;
            assert_eq!(
                shown.first() == Some(&0xFF),
                is_refused,
                "{what}: {shown:?}"
            );
        }
        app_can_log_in(&proxy, what)
    };
    let (native, sha2) = ("mysql_native_password", "caching_sha2_password");
    let usual = login_request(USUAL, "half", b"", native);
    let older = login_request(USUAL & !(1 << 9), "half", b"", native);
    try_often("an older protocol", &[older], true)?;
    try_often("half a login", &[packet_of(1, &usual[4..24])], true)?;
    try_often("an empty login", &[packet_of(1, b"")], true)?;
    let attributes = login_request(USUAL | 1 << 20, "half", b"", native);
    try_often("no attributes", &[attributes], true)?;
    for user in ["half", "nobody"] {
        let proof = login_request(USUAL, user, b"short", native);
        try_often("a short proof", &[proof], true)?;
    }
    let asked_anew = introduction(flavour, "half");
    let answer = packet_of(3, b"short");
    try_often("a short answer", &[asked_anew, answer.clone()], true)?;
    match flavour {
        Flavour::MariaDb => {
            let signed = introduction(flavour, "signed");
            try_often("no signature", slice::from_ref(&signed), false)?;
            try_often("a short signature", &[signed, answer], true)
        }
        Flavour::MySql => {
            let wrong = login_request(USUAL, "half", &[7; 32], sha2);
            try_often("no password in full", slice::from_ref(&wrong), false)?;
            try_often("an empty one", &[wrong, packet_of(3, b"")], true)
        }
    }
}

#[test]
fn a_server_that_says_nothing_is_told_soon_and_by_every_driver() -> Result<()> {
    let store = Upstream::shared(Flavour::MariaDb)?;
    let silent = TcpListener::bind(("127.0.0.1", 0))?;
    let port = silent.local_addr()?.port();
    let config = ProxyConfig {
        upstream_ports: vec![port],
        more: "[limits]\nconnect_ms_max = 300\n".to_owned(),
        ..ProxyConfig::before(&store, &make_store(&store, "store_silent", &[])?)
    };
    let proxy = ProxyProcess::start(config)?;
    let began = Instant::now();
    let refused = Wire::connect_tcp(proxy.port(), &Login::root("")).err();
    let fault = refused.and_then(|error| error.downcast::<SqlFault>().ok());
    let fault = fault.context("a login at a silent server")?;
    assert_eq!((fault.errno, fault.sqlstate.as_str()), (1158, ""));
    assert!(began.elapsed() < Duration::from_secs(20), "{began:?}");
    // Connector/C takes numbers of its own, such as 2003, for a malformed packet.
    let client = Command::new("mariadb")
        .args(["--no-defaults", "--skip-ssl", "-h127.0.0.1", "-uroot"])
        .arg(format!("-P{}", proxy.port()))
        .args(["-e", "SELECT 1"])
        .output()?;
    let said = String::from_utf8_lossy(&client.stderr).into_owned();
    let expected =
        format!("ERROR 1158 (HY000): Can't connect to MySQL server on '127.0.0.1:{port}'");
    assert!(said.contains(&expected), "{said}");
    Ok(())
}

#[test]
fn slow_clients_of_http_hold_nobody_up() -> Result<()> {
    let server = Upstream::shared(Flavour::MariaDb)?;
    let config = ProxyConfig::before(&server, &make_store(&server, "store_slow", &[])?);
    let proxy = ProxyProcess::start(config)?;
    let mut slow = Vec::new();
    for _ in 0..600 {
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.metrics_port()))?;
        stream.write_all(b"GET /metrics HTT")?;
        slow.push(stream);
        if slow.len() % 100 == 0 {
            let began = Instant::now();
            assert_eq!(proxy.http_get("/healthz")?, (200, "ok\n".to_owned()));
            let took = began.elapsed();
            assert!(
                took < Duration::from_secs(10),
                "{} slow: {took:?}",
                slow.len()
            );
        }
    }
    assert_eq!(proxy.http_get("/nothing")?.0, 404);
    let (status, body) = proxy.http_get("/metrics")?;
    assert!(
        status == 200 && body.contains("keywright_connections 0\n"),
        "{status} {body}"
    );
    Ok(())
}

fn the_admin_connection_stays_at_its_address(flavour: Flavour) -> Result<()> {
    let server = Upstream::start_with(flavour, &["--skip-name-resolve=0"])?;
    server.run(
        "mysql",
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT);
         CREATE USER looker@localhost; CREATE USER looker@'127.0.0.2'; GRANT ALL ON *.* TO looker@'127.0.0.2'",
    )?;
    let port = forwarder(server.port())?;
    let store = make_store(&server, "keywright", &[("orders", 1)])?;
    let config = ProxyConfig {
        upstream_ports: Vec::new(),
        more: format!(
            "[[listener]]\nbind = \"127.0.0.1:1\"\nupstream = \"127.0.0.1:{port}\"\nadmin = \"mysql://looker@127.0.0.1:{port}\""
        ),
        ..ProxyConfig::before(&server, &store).rule("shop.orders", "segment:orders")
    };
    let said = ProxyProcess::said(&config, &["check"])?;
    assert!(
        said.contains("ready to run") && !said.contains("no table"),
        "{said}"
    );
    Ok(())
}

#[test]
fn texts_of_prepared_statements_count() -> Result<()> {
    // So long that they are gathered in buffers that every connection has.
    const TEXT_BYTES: usize = 200 << 10;
    const BYTES_MAX: usize = 8 << 20;
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT);
         SET GLOBAL max_allowed_packet = 67108864",
    )?;
    let mut config = ProxyConfig::before(
        &server,
        &make_store(&server, "keywright", &[("orders", 1)])?,
    )
    .rule("shop.orders", "segment:orders");
    config.more = format!(
        "[limits]\nmemory_bytes_max = {BYTES_MAX}\nrewrite_bytes_max = {}\n",
        BYTES_MAX / 4
    );
    let proxy = ProxyProcess::start(config)?;
    let sql = |length: usize| {
        format!(
            "INSERT INTO orders (a) VALUES (CONCAT(?, '{}'))",
            "x".repeat(length)
        )
    };
    let mut wires = [proxy.wire("shop")?, proxy.wire("shop")?];
    for round in 0..3 {
        let mut prepared = Vec::new();
        let fault = loop {
            let wire = &mut wires[prepared.len() % 2];
            match wire.prepare(sql(TEXT_BYTES))? {
                Ok(statement) => prepared.push(statement),
                Err(fault) => break fault,
            }
            assert!(
                prepared.len() <= BYTES_MAX / TEXT_BYTES,
                "texts do not count"
            );
        };
        assert_eq!(fault.errno, 1041, "{fault}");
        assert!(
            prepared.len() > BYTES_MAX / TEXT_BYTES / 2,
            "round {round}: only {}",
            prepared.len()
        );
        // Both go on, and whatever is closed makes room: one by one, with everything, with the connection.
        for wire in &mut wires {
            assert_eq!(wire.rows("SELECT 1")?, [["1"]]);
        }
        match round {
            0 => {
                for (at, statement) in prepared.iter().enumerate() {
                    wires[at % 2].close(statement)?;
                }
            }
            1 => {
                for wire in &mut wires {
                    wire.command(keywright_testkit::command::RESET_CONNECTION, &[])?;
                    wire.command(keywright_testkit::command::INIT_DB, b"shop")?;
                }
            }
            _ => wires = [proxy.wire("shop")?, proxy.wire("shop")?],
        }
        // A connection's end is noticed when it is.
        wait_until("the memory of what was closed", WAIT_MAX, || {
            let again = wires[0].prepare(sql(TEXT_BYTES))?;
            if let Ok(statement) = &again {
                wires[0].close(statement)?;
            }
            Ok(again.is_ok())
        })?;
    }
    Ok(())
}
