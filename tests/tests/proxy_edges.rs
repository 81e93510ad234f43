//! Where connections through the proxy end or stall: peers that die, vanish, stop reading or break off in the middle. The other
//! side sees an end, nothing is left behind, and memory stays bounded.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, Wire, command,
    make_store, wait_until,
};
use nix::sys::signal::Signal;

keywright_testkit::on_both_flavours!(
    a_client_gone_in_the_middle_leaves_nothing,
    a_server_killed_in_the_middle_is_an_end,
    a_statement_killed_by_another_connection_ends_the_same,
    a_client_that_does_not_read_costs_no_memory,
    a_client_that_idles_too_long_sees_the_same_end,
);

/// A server, and proxies without and with a rule before it.
struct Shop {
    server: Upstream,
    proxies: Vec<ProxyProcess>,
}

impl Shop {
    fn open(flavour: Flavour, limits: &str) -> Result<Shop> {
        let server = Upstream::start(flavour)?;
        server.run(
            "mysql",
            "CREATE DATABASE shop; CREATE TABLE shop.n (n INT);
             INSERT INTO shop.n WITH RECURSIVE up AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM up WHERE n < 1000) SELECT n FROM up;
             CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT)",
        )?;
        let store = make_store(&server, "keywright", &[("orders", 1)])?;
        let mut config = ProxyConfig::before(&server, &store);
        config.more = format!("[limits]\n{limits}\n");
        let ruled = config.clone().rule("shop.orders", "segment:orders");
        let proxies = vec![ProxyProcess::start(config)?, ProxyProcess::start(ruled)?];
        Ok(Shop { server, proxies })
    }
}

/// Waits until a proxy has no clients and the server no connections of theirs.
fn wait_for_none(proxy: &ProxyProcess, server: &Upstream) -> Result<()> {
    wait_until("no client", WAIT_MAX, || {
        let (_, metrics) = proxy.http_get("/metrics")?;
        Ok(metrics.contains("\nkeywright_connections 0\n"))
    })?;
    let on_shop = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'shop'";
    wait_until("no connection", WAIT_MAX, || {
        Ok(server.run("mysql", on_shop)? == [["0"]])
    })
}

fn a_client_gone_in_the_middle_leaves_nothing(flavour: Flavour) -> Result<()> {
    let shop = Shop::open(flavour, "")?;
    for proxy in &shop.proxies {
        let insert = b"INSERT INTO orders (a) VALUES ('";
        for sent in [0, 2, 4, 5, 4 + insert.len()] {
            let mut wire = proxy.wire("shop")?;
            let whole = [&[200, 0, 0, 0, command::QUERY], insert.as_slice()].concat();
            wire.send_raw(&whole[..sent])?;
        }
        // In the middle of an answer, too.
        let mut wire = proxy.wire("shop")?;
        wire.send_query("SELECT REPEAT('x', 10000000)")?;
        wire.read_packet()?;
        drop(wire);
        wait_for_none(proxy, &shop.server)?;
    }
    let rows = shop.server.run("shop", "SELECT COUNT(*) FROM orders")?;
    assert_eq!(rows, [["0"]]);
    Ok(())
}

fn a_server_killed_in_the_middle_is_an_end(flavour: Flavour) -> Result<()> {
    let mut shop = Shop::open(flavour, "")?;
    let mut wires = Vec::new();
    for proxy in &shop.proxies {
        let mut wire = proxy.wire("shop")?;
        wire.send_query(ENDLESS)?;
        wire.read_packet()?;
        wires.push(wire);
    }
    shop.server.kill9()?;
    for wire in &mut wires {
        let mut packets = 0_u64;
        // A read that waits too long is an error of another kind.
        let error = loop {
            match wire.read_packet() {
                Ok(_) => packets += 1,
                Err(error) => break format!("{error:#}"),
            }
        };
        assert!(packets > 0);
        assert!(!error.contains("temporarily unavailable"), "{error}");
    }
    Ok(())
}

/// More rows than anybody reads.
const ENDLESS: &str = "SELECT REPEAT('x', 1000) FROM n a, n b, n c";
/// More than sockets hold, in a few very long packets.
const LONG_ROWS: &str = "SELECT REPEAT('x', 15000000) FROM n LIMIT 8";

fn a_statement_killed_by_another_connection_ends_the_same(flavour: Flavour) -> Result<()> {
    let shop = Shop::open(flavour, "")?;
    let killed = |connect: &dyn Fn() -> Result<Wire>| -> Result<Option<Vec<Reply>>> {
        let mut wire = connect()?;
        let mut other = connect()?;
        wire.send_query("SELECT SLEEP(1000)")?;
        let question = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {} AND info LIKE 'SELECT SLEEP%'",
            wire.thread_id()
        );
        wait_until("the statement", WAIT_MAX, || {
            Ok(other.rows(&question)? == [["1"]])
        })?;
        other.run(format!("KILL {}", wire.thread_id()))?;
        let answer = wire.read_query().ok();
        assert!(wire.query("SELECT 1").is_err(), "the connection goes on");
        Ok(answer)
    };
    let direct = killed(&|| shop.server.wire("shop"))?;
    for proxy in &shop.proxies {
        assert_eq!(killed(&|| proxy.wire("shop"))?, direct);
        wait_for_none(proxy, &shop.server)?;
    }
    Ok(())
}

fn a_client_that_does_not_read_costs_no_memory(flavour: Flavour) -> Result<()> {
    /// What a proxy may take for eight clients beyond what it took for none, kB: two full buffers for each, and some.
    const KB_MAX: u64 = 16 << 10;
    let shop = Shop::open(flavour, "")?;
    for proxy in &shop.proxies {
        let before = resident_kb(proxy)?;
        let mut wires = Vec::new();
        for text in [ENDLESS, LONG_ROWS] {
            for _ in 0..4 {
                let mut wire = proxy.wire("shop")?;
                wire.send_query(text)?;
                wires.push(wire);
            }
        }
        for wire in &wires {
            wait_until("a full socket", WAIT_MAX, || is_stuck(&shop.server, wire))?;
        }
        let after = resident_kb(proxy)?;
        assert!(
            after < before + KB_MAX,
            "from {before} kB to {after} kB for {} clients that do not read",
            wires.len()
        );
        // One that reads after all gets everything.
        let mut last = wires.pop().context("a client")?;
        let rows = last.read_query()?;
        assert!(matches!(rows.as_slice(), [Reply::Rows(_)]), "{rows:?}");
        drop((wires, last));
        wait_for_none(proxy, &shop.server)?;
    }
    Ok(())
}

/// Whether the server waits for somebody to take what it sends.
fn is_stuck(server: &Upstream, wire: &Wire) -> Result<bool> {
    let states = match server.flavour() {
        Flavour::MariaDb => "'Writing to net'",
        Flavour::MySql => "'Sending to client'",
    };
    let question = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {} AND state = {states}",
        wire.thread_id()
    );
    Ok(server.run("mysql", &question)? == [["1"]])
}

fn resident_kb(proxy: &ProxyProcess) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.pid()?))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(number.context("no VmRSS")?.parse()?)
}

/// MariaDB resets such a connection without a word; MySQL says why, and ends it in order.
fn a_client_that_idles_too_long_sees_the_same_end(flavour: Flavour) -> Result<()> {
    let shop = Shop::open(flavour, "")?;
    let idle = |mut wire: Wire| {
        wire.run("SET wait_timeout = 1")?;
        Result::Ok(wire)
    };
    let mut direct = idle(shop.server.wire("shop")?)?;
    let through = shop.proxies.iter().map(|proxy| idle(proxy.wire("shop")?));
    let through = through.collect::<Result<Vec<_>>>()?;
    let end = direct.read_to_end();
    match flavour {
        Flavour::MariaDb => assert_eq!(end, (Vec::new(), Some(ErrorKind::ConnectionReset))),
        Flavour::MySql => {
            assert!(end.0.windows(5).any(|state| state == b"HY000"), "{end:?}");
            assert_eq!(end.1, None);
        }
    }
    for mut wire in through {
        assert_eq!(wire.read_to_end(), end);
    }
    Ok(())
}

/// Where bytes may still be on their way, a reset is kept back for a while; a connection at rest has none.
#[test]
fn the_reset_of_a_connection_at_rest_is_not_kept_back() -> Result<()> {
    /// Longer than it takes for a connection to be at rest.
    const IDLE: Duration = Duration::from_secs(3);
    const KEPT_BACK: Duration = Duration::from_millis(500);
    const TRIES: usize = 5;
    let shop = Shop::open(Flavour::MariaDb, "")?;
    let end = |proxy: &ProxyProcess| {
        let mut wire = proxy.wire("shop")?;
        let began = Instant::now();
        wire.run(format!("SET wait_timeout = {}", IDLE.as_secs()))?;
        let end = wire.read_to_end();
        assert_eq!(end, (Vec::new(), Some(ErrorKind::ConnectionReset)));
        Result::Ok(began.elapsed())
    };
    for proxy in &shop.proxies {
        // The machine may be busy, but none of those that are kept back is that early.
        let mut soonest = Duration::MAX;
        for _ in 0..TRIES {
            let ends = thread::scope(|scope| {
                let clients = [(); 4].map(|()| scope.spawn(|| end(proxy)));
                let ends = clients.map(|client| client.join().expect("a client"));
                ends.into_iter().collect::<Result<Vec<_>>>()
            })?;
            soonest = soonest.min(ends.into_iter().min().context("a client")?);
            if soonest < IDLE + KEPT_BACK {
                break;
            }
        }
        assert!(soonest < IDLE + KEPT_BACK, "after {soonest:?}");
    }
    Ok(())
}

#[test]
fn a_client_gone_while_keys_are_awaited_leaves_nothing() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT)",
    )?;
    let keys = Upstream::start(Flavour::MariaDb)?;
    let store = make_store(&keys, "keywright", &[("orders", 1)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("shop.orders", "segment:orders");
    config.store_url = store;
    let proxy = ProxyProcess::start(config)?;
    let rows = vec!["('x')"; 1000].join(",");
    let insert = format!("INSERT INTO orders (a) VALUES {rows}");
    proxy.wire("shop")?.run(&insert)?;
    // It neither answers nor ends.
    keys.signal(Signal::SIGSTOP)?;
    for _ in 0..10_000 {
        let mut wire = proxy.wire("shop")?;
        wire.send_query(&insert)?;
        drop(wire);
        let (_, metrics) = proxy.http_get("/metrics")?;
        if !metrics.contains("\nkeywright_waits_total{source=\"segment:orders\"} 0\n") {
            break;
        }
    }
    wait_for_none(&proxy, &server)?;
    keys.signal(Signal::SIGCONT)?;
    wait_until("keys again", WAIT_MAX, || {
        let mut wire = proxy.wire("shop")?;
        let replies = wire.query("INSERT INTO orders (a) VALUES ('after')")?;
        Ok(matches!(replies.as_slice(), [Reply::Done(_)]))
    })?;
    let counts = server.run("shop", "SELECT COUNT(*) - COUNT(DISTINCT id) FROM orders")?;
    assert_eq!(counts, [["0"]]);
    Ok(())
}

#[test]
fn a_client_that_speaks_first_reads_why_it_is_turned_away() -> Result<()> {
    let shop = Shop::open(Flavour::MariaDb, "connections_max = 1")?;
    for proxy in &shop.proxies {
        let mut only = None;
        wait_until("the only place", WAIT_MAX, || {
            only = proxy.wire("shop").ok();
            Ok(only.is_some())
        })?;
        for _ in 0..20 {
            let mut client = TcpStream::connect(("127.0.0.1", proxy.port()))?;
            client.set_read_timeout(Some(WAIT_MAX))?;
            client.write_all(&[0; 1000])?;
            let mut heard = Vec::new();
            client.read_to_end(&mut heard)?;
            assert_eq!(heard.get(4..7), Some([0xFF, 0x10, 0x04].as_slice()));
        }
    }
    Ok(())
}

#[test]
fn silent_peers_are_asked_whether_they_are_there() -> Result<()> {
    let shop = Shop::open(Flavour::MariaDb, "keepalive_s = 20")?;
    for proxy in &shop.proxies {
        let _wire = proxy.wire("shop")?;
        wait_until("timers on both sockets", WAIT_MAX, || {
            let to_client = keepalive_left_s(Some(proxy.port()), None)?;
            let to_server = keepalive_left_s(None, Some(shop.server.port()))?;
            Ok(
                to_client.is_some_and(|left| left <= 20)
                    && to_server.is_some_and(|left| left <= 20),
            )
        })?;
    }
    Ok(())
}

/// How long a socket of these ports has until its peer is asked, seconds; `None`: no such socket is ever asked.
fn keepalive_left_s(local: Option<u16>, remote: Option<u16>) -> Result<Option<u64>> {
    const ESTABLISHED: &str = "01";
    const KEEPALIVE: &str = "02:";
    let sockets = fs::read_to_string("/proc/net/tcp")?;
    for line in sockets.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, from, to, state, _, timer, ..] = fields.as_slice() else {
            bail!("a line of /proc/net/tcp: {line}");
        };
        let is = |address: &str, port: Option<u16>| {
            port.is_none_or(|port| address.ends_with(&format!(":{port:04X}")))
        };
        if *state != ESTABLISHED || !is(from, local) || !is(to, remote) {
            continue;
        }
        if let Some(ticks) = timer.strip_prefix(KEEPALIVE) {
            // Hundredths of a second.
            return Ok(Some(u64::from_str_radix(ticks, 16)? / 100));
        }
    }
    Ok(None)
}
