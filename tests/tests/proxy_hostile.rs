//! Nobody breaks the proxy with bytes, neither clients nor what stands behind it: whatever comes, it lives, goes on serving
//! others, holds little memory, and lets nobody wait for ever.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use keywright_testkit::{
    Flavour, Login, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, Wire, command,
    make_store, wait_until,
};

/// What the proxy may hold after and during anything that happens here, over what it held before, bytes.
const MORE_BYTES_MAX: u64 = 64 << 20;
/// Streams of noise per test.
const NOISES: u64 = 200;
/// Clients that say nothing.
const SILENT: usize = 200;
/// What a hostile upstream sends at most before it gives up, bytes.
const FLOOD_BYTES: usize = 64 << 20;

/// A server behind a proxy with a rule, or whatever else stands behind it.
struct Peer {
    _server: Arc<Upstream>,
    proxy: ProxyProcess,
    before_bytes: u64,
}

impl Peer {
    fn open(schema: &str, limits: &str) -> Result<Peer> {
        Peer::with_more_behind(schema, limits, &[])
    }

    /// The first listener leads to the server, the others to those ports.
    fn with_more_behind(schema: &str, limits: &str, ports: &[u16]) -> Result<Peer> {
        let server = Upstream::shared(Flavour::MariaDb)?;
        server
            .wire("mysql")?
            .run(format!("CREATE DATABASE {schema}"))?;
        // All tests here want it: clients that say nothing hold a connection of the server's each.
        server
            .wire("mysql")?
            .run("SET GLOBAL max_connections = 1000")?;
        server
            .wire(schema)?
            .run("CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT)")?;
        let url = make_store(&server, &format!("store_{schema}"), &[("t", 1)])?;
        let mut config =
            ProxyConfig::before(&server, &url).rule(&format!("{schema}.t"), "segment:t");
        config.more = format!("[limits]\n{limits}\n");
        // Tables are switched before there is a server that cannot be asked.
        drop(ProxyProcess::start(config.clone())?);
        config.upstream_ports.extend(ports);
        // What stands there answers nobody yet.
        config.listener = "check = \"warn\"".to_owned();
        let proxy = ProxyProcess::start(config)?;
        proxy
            .wire(schema)?
            .run("INSERT INTO t (a) VALUES ('first')")?;
        let before_bytes = resident_bytes(&proxy)?;
        Ok(Peer {
            _server: server,
            proxy,
            before_bytes,
        })
    }

    /// The process lives, others are served, and little memory is held.
    fn is_unharmed(&mut self, schema: &str) -> Result<()> {
        assert!(self.proxy.is_running()?, "{}", self.proxy.log());
        self.proxy
            .wire(schema)?
            .run("INSERT INTO t (a) VALUES ('after')")?;
        let more = resident_bytes(&self.proxy)?.saturating_sub(self.before_bytes);
        assert!(more <= MORE_BYTES_MAX, "{more} bytes more than before");
        let log = self.proxy.log();
        let is_fault = |fault: &&str| log.contains(*fault);
        assert!(
            !["panicked", "session_overran"].iter().any(is_fault),
            "{log}"
        );
        Ok(())
    }
}

/// `VmRSS` of the proxy.
fn resident_bytes(proxy: &ProxyProcess) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.pid()?))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .context("no VmRSS")?;
    Ok(kilobytes.trim().parse::<u64>()? * 1024)
}

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    stream.set_write_timeout(Some(WAIT_MAX))?;
    Ok(stream)
}

/// Reads until the other side ends the connection, which it must.
fn read_to_end(stream: &mut TcpStream) -> Result<usize> {
    let mut heard = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        match stream.read(&mut heard) {
            Ok(0) => return Ok(total),
            Ok(count) => total += count,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Ok(total),
            Err(error) => return Err(error).context("the connection does not end"),
        }
    }
}

/// Noise of which every other stream begins like a packet of a sensible length.
fn noise(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes: Vec<u8> = (0..random.usize(1..2_000)).map(|_| random.u8(..)).collect();
    if random.bool()
        && let [low, middle, high, sequence, ..] = bytes.as_mut_slice()
    {
        (*low, *middle, *high, *sequence) = (random.u8(..), random.u8(0..4), 0, random.u8(0..2));
    }
    bytes
}

#[test]
fn noise_in_place_of_a_login() -> Result<()> {
    let mut place = Peer::open("noise_before", "login_ms_max = 10000")?;
    let mut held = place.proxy.wire("noise_before")?;
    for seed in 0..NOISES {
        let mut stream = connect(place.proxy.port())?;
        // The proxy may have ended the connection already.
        let _sent = stream
            .write_all(&noise(seed))
            .and_then(|()| stream.shutdown(Shutdown::Write));
        read_to_end(&mut stream)?;
    }
    assert_eq!(held.rows("SELECT 1")?, [["1"]]);
    place.is_unharmed("noise_before")
}

#[test]
fn noise_in_place_of_commands() -> Result<()> {
    let mut place = Peer::open("noise_after", "")?;
    let mut held = place.proxy.wire("noise_after")?;
    held.run("CREATE USER guest@'%'")?;
    held.run("GRANT SELECT, INSERT ON noise_after.* TO guest@'%'")?;
    for seed in 0..NOISES {
        // Somebody whom the server does not obey when noise tells it to stop.
        let guest = Login {
            user: "guest".to_owned(),
            ..Login::root("noise_after")
        };
        let mut wire = Wire::connect_tcp(place.proxy.port(), &guest)?;
        let _sent = wire.send_raw(&noise(seed));
        drop(wire);
    }
    assert_eq!(held.rows("SELECT 1")?, [["1"]]);
    wait_until("the end of all but one connection", WAIT_MAX, || {
        Ok(open_connections(&place.proxy)? == 1)
    })?;
    place.is_unharmed("noise_after")
}

fn open_connections(proxy: &ProxyProcess) -> Result<u64> {
    let open = proxy.figure("keywright_connections", &[])?;
    Ok(open.context("no count of connections")?.parse()?)
}

/// A length is only a promise: nothing is held for bytes that have not come.
#[test]
fn long_packets_that_never_come_take_no_memory() -> Result<()> {
    let mut place = Peer::open("promises", "login_ms_max = 3000")?;
    let mut held = Vec::new();
    for command in [
        command::QUERY,
        command::STMT_PREPARE,
        command::INIT_DB,
        command::CHANGE_USER,
        0x55,
    ] {
        for _ in 0..20 {
            let mut wire = place.proxy.wire("promises")?;
            wire.send_raw(&[0xFE, 0xFF, 0xFF, 0, command, b'I'])?;
            held.push(wire);
        }
    }
    let mut logins = Vec::new();
    for _ in 0..20 {
        let mut stream = connect(place.proxy.port())?;
        stream.write_all(&[0xFF, 0xFF, 0xFF, 1, 0])?;
        logins.push(stream);
    }
    for mut login in logins {
        read_to_end(&mut login)?;
    }
    place.is_unharmed("promises")?;
    drop(held);
    place.is_unharmed("promises")
}

#[test]
fn clients_that_say_nothing_are_sent_away() -> Result<()> {
    let mut place = Peer::open("silent", "login_ms_max = 5000")?;
    let mut silent = (0..SILENT)
        .map(|_| connect(place.proxy.port()))
        .collect::<Result<Vec<_>>>()?;
    // One byte at a time is no more than silence.
    let mut slow = connect(place.proxy.port())?;
    place.is_unharmed("silent")?;
    let started = Instant::now();
    while slow.write_all(&[1]).is_ok() && started.elapsed() < WAIT_MAX {
        thread::sleep(Duration::from_millis(20));
    }
    for stream in &mut silent {
        read_to_end(stream)?;
    }
    wait_until("the end of all connections", WAIT_MAX, || {
        Ok(open_connections(&place.proxy)? == 0)
    })?;
    place.is_unharmed("silent")
}

/// How an upstream that is none behaves to one client: `Err` when the proxy has ended the connection.
type Behaviour = fn(&mut TcpStream, u64) -> std::io::Result<()>;

/// Something that listens where a server should.
struct Hostile {
    port: u16,
    /// Before, clients are sent away: the proxy looks at tables when it starts.
    begun: Arc<AtomicBool>,
    /// Connections that it has behaved to, the program's own among them: it looks at tables again and again.
    accepted: Arc<AtomicUsize>,
    /// Those of them that are over.
    ended: Arc<AtomicUsize>,
}

impl Hostile {
    /// Accepts until the process ends.
    fn listen(behaviour: Behaviour) -> Result<Hostile> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let begun = Arc::new(AtomicBool::new(false));
        let (accepted, ended) = (Arc::<AtomicUsize>::default(), Arc::default());
        let (begins, accepts) = (Arc::clone(&begun), Arc::clone(&accepted));
        let count = Arc::<AtomicUsize>::clone(&ended);
        thread::spawn(move || {
            let begun = |_: &TcpStream| begins.load(Ordering::Acquire);
            for (seed, mut stream) in (0..).zip(listener.incoming().flatten().filter(begun)) {
                accepts.fetch_add(1, Ordering::Release);
                let count = Arc::clone(&count);
                thread::spawn(move || {
                    let _set = stream.set_write_timeout(Some(WAIT_MAX));
                    let _set = stream.set_read_timeout(Some(WAIT_MAX));
                    let _ended = behaviour(&mut stream, seed);
                    count.fetch_add(1, Ordering::Release);
                });
            }
        });
        Ok(Hostile {
            port,
            begun,
            accepted,
            ended,
        })
    }

    /// How many connections there were, and how many of them are over.
    fn counts(&self) -> (usize, usize) {
        let ended = self.ended.load(Ordering::Acquire);
        (self.accepted.load(Ordering::Acquire), ended)
    }
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, ..] = payload.len().to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

fn greeting() -> Vec<u8> {
    let mut payload = b"\x0a5.5.5-10.11.6-MariaDB\0\x01\0\0\0seedseed\0".to_vec();
    // Protocol 4.1, secure connection; plugins.
    payload.extend([0x00, 0x82, 45, 2, 0, 8, 0, 21]);
    payload.extend([0; 10]);
    payload.extend(b"seedseedseed\0mysql_native_password\0");
    packet(0, &payload)
}

/// Lets a client in, whoever it is.
fn let_in(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(&greeting())?;
    read_packet(stream)?;
    stream.write_all(&packet(2, &[0, 0, 0, 2, 0, 0, 0]))
}

fn read_packet(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let [a, b, c, _] = head;
    let mut payload = vec![0; usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16];
    stream.read_exact(&mut payload)?;
    Ok(payload)
}

fn noise_as_greeting(stream: &mut TcpStream, seed: u64) -> std::io::Result<()> {
    stream.write_all(&noise(seed))
}

fn a_greeting_cut_short(stream: &mut TcpStream, seed: u64) -> std::io::Result<()> {
    let greeting = greeting();
    let cut = usize::try_from(seed).unwrap_or(0) % greeting.len();
    stream.write_all(greeting.get(..cut).unwrap_or_default())
}

fn an_endless_login(stream: &mut TcpStream, _: u64) -> std::io::Result<()> {
    stream.write_all(&greeting())?;
    read_packet(stream)?;
    loop {
        stream.write_all(&packet(2, b"\xFEmysql_native_password\0seed"))?;
        read_packet(stream)?;
    }
}

fn noise_as_answers(stream: &mut TcpStream, seed: u64) -> std::io::Result<()> {
    let_in(stream)?;
    read_packet(stream)?;
    stream.write_all(&noise(seed))
}

/// The probe and whatever else is asked is answered with column definitions without end.
fn endless_definitions(stream: &mut TcpStream, _: u64) -> std::io::Result<()> {
    let_in(stream)?;
    read_packet(stream)?;
    stream.write_all(&packet(1, &[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]))?;
    flood(stream, 1 << 16)
}

/// As the answer to a statement of the client's: rows of 1 MB.
fn endless_rows(stream: &mut TcpStream, _: u64) -> std::io::Result<()> {
    let_in(stream)?;
    read_packet(stream)?;
    for part in [
        packet(1, &[1]),
        packet(2, b"column"),
        packet(3, &[0xFE, 0, 0, 2, 0]),
    ] {
        stream.write_all(&part)?;
    }
    flood(stream, 1 << 20)
}

fn flood(stream: &mut TcpStream, packet_bytes: usize) -> std::io::Result<()> {
    let part = packet(2, &vec![b'x'; packet_bytes]);
    for _ in 0..FLOOD_BYTES / packet_bytes {
        stream.write_all(&part)?;
    }
    Ok(())
}

/// What clients do who do not know what stands there: each must come to an end.
fn try_it(port: u16, login: &Login) {
    let Ok(mut wire) = Wire::connect_tcp(port, login) else {
        return;
    };
    for sql in ["SELECT 1", "INSERT INTO t (a) VALUES (1)", "SELECT 2"] {
        if wire.query(sql).is_err() {
            return;
        }
    }
}

#[test]
fn upstreams_that_are_none_harm_nobody() -> Result<()> {
    let behaviours: [(Behaviour, u64); 6] = [
        (noise_as_greeting, 50),
        (a_greeting_cut_short, 100),
        (an_endless_login, 3),
        (noise_as_answers, 100),
        (endless_definitions, 3),
        (endless_rows, 3),
    ];
    let hostile = behaviours
        .iter()
        .map(|(behaviour, _)| Hostile::listen(*behaviour))
        .collect::<Result<Vec<_>>>()?;
    let ports: Vec<u16> = hostile.iter().map(|hostile| hostile.port).collect();
    let limits = "login_ms_max = 5000";
    let mut place = Peer::with_more_behind("upstreams", limits, &ports)?;
    let login = Login::root("upstreams");
    let listeners = place.proxy.ports().to_vec();
    for ((port, hostile), (_, clients)) in listeners.iter().skip(1).zip(&hostile).zip(behaviours) {
        hostile.begun.store(true, Ordering::Release);
        for _ in 0..clients {
            try_it(*port, &login);
        }
        wait_until("the end of the hostile connections", WAIT_MAX, || {
            let (accepted, ended) = hostile.counts();
            Ok(u64::try_from(ended)? >= clients && ended == accepted)
        })?;
        place.is_unharmed("upstreams")?;
    }
    Ok(())
}

/// A client that does not read holds up its own upstream, not the proxy's memory.
#[test]
fn results_that_nobody_reads_wait_at_the_server() -> Result<()> {
    let hostile = Hostile::listen(endless_rows)?;
    let mut place = Peer::with_more_behind("unread", "", &[hostile.port])?;
    hostile.begun.store(true, Ordering::Release);
    let port = *place.proxy.ports().get(1).context("the second listener")?;
    let mut unread = Vec::new();
    for _ in 0..10 {
        let mut wire = Wire::connect_tcp(port, &Login::root("unread"))?;
        wire.send_query("SELECT 1")?;
        unread.push(wire);
    }
    // So long that all that would be held is there.
    for _ in 0..20 {
        place.is_unharmed("unread")?;
        thread::sleep(Duration::from_millis(50));
    }
    let (accepted, ended) = hostile.counts();
    assert!(
        accepted - ended >= unread.len(),
        "it could send everything to one: {ended} of {accepted} are over"
    );
    drop(unread);
    wait_until("the end of all connections", WAIT_MAX, || {
        Ok(open_connections(&place.proxy)? == 0)
    })?;
    place.is_unharmed("unread")
}
