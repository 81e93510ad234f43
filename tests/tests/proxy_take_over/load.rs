//! Clients who come and go, and clients who stay, while programs take over from each other.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use keywright_testkit::{
    Flavour, IdLog, Login, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, Wire, make_store,
    wait_until,
};

/// How often a program takes over.
const TAKE_OVERS: usize = 5;
/// Clients who connect, insert and leave, as PHP does, over TCP and over the UNIX socket each.
const COMERS: usize = 3;
/// Clients who stay, as a pool's do.
const POOLED: usize = 3;
/// How many come and go at least before the next program takes over.
const VISITS: usize = 100;
/// The longest pause between two transactions of those who stay, milliseconds.
const PAUSE_MS_MAX: u64 = 20;

/// What clients have, and what was said to them.
struct Seen {
    orders: IdLog,
    events: IdLog,
    visits: AtomicUsize,
    over: AtomicBool,
    troubles: Mutex<Vec<String>>,
}

impl Seen {
    /// Does it until it is over; whatever goes wrong is what is looked for.
    fn again_and_again(&self, who: &str, mut work: impl FnMut() -> Result<()>) {
        while !self.over.load(Ordering::Relaxed) {
            if let Err(error) = work() {
                let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
                troubles.push(format!("{who}: {error:#}"));
                // One more would say the same.
                self.over.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Two rows of a segment, one with a snowflake.
    fn insert(&self, wire: &mut Wire) -> Result<()> {
        let first = wire.run("INSERT INTO orders (a) VALUES (1), (2)")?;
        let first = i64::try_from(first.last_insert_id)?;
        self.orders.record_unordered(vec![first, first + 1]);
        let event = wire.run("INSERT INTO events (a) VALUES (1)")?;
        let event = i64::try_from(event.last_insert_id)?;
        self.events.record_unordered(vec![event]);
        Ok(())
    }

    /// Connects, inserts, leaves.
    fn visit(&self, connect: impl Fn() -> Result<Wire>) -> Result<()> {
        let mut wire = connect().context("connecting")?;
        self.insert(&mut wire)?;
        self.visits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// A transaction.
    fn transact(&self, wire: &mut Wire) -> Result<()> {
        wire.run("BEGIN")?;
        self.insert(wire)?;
        self.insert(wire)?;
        wire.run("COMMIT")?;
        // Idle between two, as in a pool; how long is what chance is for.
        thread::sleep(Duration::from_millis(fastrand::u64(0..PAUSE_MS_MAX)));
        Ok(())
    }
}

#[test]
fn clients_notice_nothing_of_five_take_overs() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    let store = make_store(&server, "keywright", &[("orders", 1)])?;
    // Without a unique key, so that a repeated id is seen as such.
    let tables = ["orders", "events"]
        .map(|table| format!("CREATE TABLE shop.{table} (id BIGINT NOT NULL, a INT, KEY (id))"));
    server.run(
        "mysql",
        &format!("CREATE DATABASE shop; {}", tables.join("; ")),
    )?;
    let directory = tempfile::tempdir()?;
    let socket = directory.path().join("keywright.sock");
    let mut config = ProxyConfig::before(&server, &store)
        .rule("shop.orders", "segment:orders")
        .rule("shop.events", "snowflake");
    let _ = write!(
        config.more,
        "[[listener]]\nbind = \"unix:{}\"\nupstream = \"127.0.0.1:{}\"\n\
         admin = \"mysql://root@127.0.0.1:{}\"\n",
        socket.display(),
        server.port(),
        server.port()
    );
    let mut proxy = ProxyProcess::start(config)?;
    wait_until("all sockets", WAIT_MAX, || {
        Ok(proxy.http_get("/readyz")?.0 == 200)
    })?;
    let seen = Seen {
        orders: IdLog::new(),
        events: IdLog::new(),
        visits: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        troubles: Mutex::default(),
    };
    let (port, metrics) = (proxy.port(), proxy.metrics_port());
    let olds = thread::scope(|scope| {
        start_clients(scope, &seen, (port, metrics), &socket);
        let olds = take_over_in_a_row(&mut proxy, &seen);
        seen.over.store(true, Ordering::Relaxed);
        olds
    });
    let troubles = seen.troubles.into_inner();
    let troubles = troubles.unwrap_or_else(PoisonError::into_inner);
    assert!(troubles.is_empty(), "{troubles:#?}\n{}", proxy.log());
    for mut old in olds? {
        assert!(old.wait()?.success(), "{}", proxy.log());
    }
    assert!(socket.exists(), "an old program has removed the socket");
    assert!(proxy.stop()?.success(), "{}", proxy.log());
    let handed_back = proxy.log().matches("handed back the rests").count();
    assert_eq!(handed_back, TAKE_OVERS + 1, "{}", proxy.log());
    for (table, log) in [("orders", &seen.orders), ("events", &seen.events)] {
        let told = log.check()?;
        let rows = server.run("shop", &format!("SELECT id FROM {table}"))?;
        let ids = rows.concat();
        let ids: Vec<i64> = ids
            .iter()
            .map(|id| Ok(id.parse()?))
            .collect::<Result<_>>()?;
        let stored = IdLog::new();
        stored.record_unordered(ids);
        assert_eq!(stored.check()?, told, "{table}");
        println!(
            "{table}: {} rows, all distinct, all acknowledged",
            told.count
        );
    }
    println!("{} visits", seen.visits.load(Ordering::Relaxed));
    Ok(())
}

fn start_clients<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    seen: &'scope Seen,
    (port, metrics): (u16, u16),
    socket: &Path,
) {
    let login = || Login::root("shop");
    for _ in 0..COMERS {
        scope.spawn(move || {
            let visit = || seen.visit(|| Wire::connect_tcp(port, &login()));
            seen.again_and_again("a visitor", visit);
        });
        let socket: PathBuf = socket.to_owned();
        scope.spawn(move || {
            let visit = || seen.visit(|| Wire::connect_unix(&socket, &login()));
            seen.again_and_again("a visitor by the UNIX socket", visit);
        });
    }
    for _ in 0..POOLED {
        scope.spawn(move || {
            let mut wire = None;
            seen.again_and_again("a client who stays", || {
                let wire = match &mut wire {
                    Some(wire) => wire,
                    None => wire.insert(Wire::connect_tcp(port, &login())?),
                };
                seen.transact(wire)
            });
        });
    }
    scope.spawn(move || seen.again_and_again("a probe", || is_ready(metrics)));
}

/// Whether `/readyz` says so.
fn is_ready(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // Others come to their turn, too.
    thread::sleep(Duration::from_millis(PAUSE_MS_MAX));
    Ok(())
}

/// Each in the middle of the load; the programs that gave way.
fn take_over_in_a_row(
    proxy: &mut ProxyProcess,
    seen: &Seen,
) -> Result<Vec<keywright_testkit::Program>> {
    let mut olds = Vec::new();
    for round in 0..=TAKE_OVERS {
        let goal = seen.visits.load(Ordering::Relaxed) + VISITS;
        wait_until("visits", WAIT_MAX, || {
            let is_over = seen.over.load(Ordering::Relaxed);
            Ok(is_over || seen.visits.load(Ordering::Relaxed) >= goal)
        })?;
        if round < TAKE_OVERS {
            olds.push(proxy.take_over()?);
        }
    }
    Ok(olds)
}
