//! A server fails over: while applications insert on it and on another one, where the switch is repeated for the one that took over,
//! however busy the others are; and in the middle of an attempt.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use keywright_testkit::{
    AT_FENCE, Flavour, Login, ProxyConfig, ProxyProcess, Reply, Result, Upstream, WAIT_MAX, Wire,
    assert_has, free_port, make_store, wait_until,
};
use nix::sys::signal::Signal;

use super::ahead::is_fenced;
use super::rule;

/// How long the rules may take to be in force on the new server.
const REPEATED_MAX: Duration = Duration::from_secs(60);
/// Keys that a client gets at least between two failovers.
const KEYS_BETWEEN: u64 = 100;

pub(super) const TABLE: &str = "CREATE DATABASE shop; USE shop; \
                     CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)";

/// What a client got, on one listener of one program.
#[derive(Default)]
pub(super) struct Client {
    ids: Mutex<Vec<u64>>,
    count: AtomicU64,
    failed: Mutex<Vec<String>>,
}

impl Client {
    /// Inserts until it is over. A connection that is cut is made anew.
    pub(super) fn run(&self, port: u16, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Acquire) {
            if let Ok(mut wire) = Wire::connect_tcp(port, &Login::root("shop")) {
                self.insert_on(&mut wire, is_over);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn insert_on(&self, wire: &mut Wire, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Acquire) {
            let Ok(replies) = wire.query("INSERT INTO orders (a) VALUES (1)") else {
                return;
            };
            match replies.as_slice() {
                [Reply::Done(done)] => {
                    self.ids.lock().unwrap().push(done.last_insert_id);
                    self.count.fetch_add(1, Ordering::Release);
                }
                // The server said that it stops.
                [Reply::Failed(fault)] if fault.errno == 1053 => return,
                other => self.failed.lock().unwrap().push(format!("{other:?}")),
            }
        }
    }

    pub(super) fn wait_for_more(&self, count: u64, within: Duration) -> Result<Duration> {
        let (began, before) = (Instant::now(), self.count.load(Ordering::Acquire));
        while self.count.load(Ordering::Acquire) < before + count {
            let failed = self.failed.lock().unwrap();
            anyhow::ensure!(began.elapsed() < within, "no keys; {failed:?}");
            drop(failed);
            thread::sleep(Duration::from_millis(1));
        }
        Ok(began.elapsed())
    }
}

/// What a replica has of a table: all rows, and the fence.
fn replicate(from: &Upstream, to: &Upstream) -> Result<()> {
    let (mut source, mut target) = (from.wire("shop")?, to.wire("shop")?);
    target.run("DELETE FROM orders")?;
    for rows in source.rows("SELECT id, a FROM orders")?.chunks(1_000) {
        let rows: Vec<String> = rows
            .iter()
            .map(|row| format!("({})", row.join(",")))
            .collect();
        target.run(format!("INSERT INTO orders VALUES {}", rows.join(",")))?;
    }
    let fence = match to.flavour() {
        Flavour::MariaDb => 1 << 63,
        Flavour::MySql => u64::MAX,
    };
    target.run(format!("ALTER TABLE orders AUTO_INCREMENT = {fence}"))?;
    Ok(())
}

/// Two programs before two servers, of which the first fails over.
struct Fleet {
    serving: Upstream,
    programs: [ProxyProcess; 2],
    /// By program, then by listener.
    clients: [Arc<Client>; 4],
}

impl Fleet {
    /// Another server, which has received everything, takes the place of the one that serves.
    fn fail_over(&mut self, mut to: Upstream) -> Result<()> {
        for client in &self.clients {
            client.wait_for_more(KEYS_BETWEEN, WAIT_MAX)?;
        }
        let port = self.serving.port();
        self.serving.move_to(free_port()?)?;
        replicate(&self.serving, &to)?;
        self.serving.stop()?;
        to.move_to(port)?;
        self.serving = to;
        for client in [0, 2] {
            let took = self.clients[client].wait_for_more(KEYS_BETWEEN, REPEATED_MAX);
            let took = took.with_context(|| self.logs())?;
            println!("keys on the new server after {} ms", took.as_millis());
        }
        Ok(())
    }

    fn logs(&self) -> String {
        let logs = self.programs.iter().map(ProxyProcess::log);
        logs.collect::<Vec<_>>().join("\n----\n")
    }
}

pub(super) fn a_server_takes_over_while_others_write(flavour: Flavour) -> Result<()> {
    for key in ["segment:one", "snowflake"] {
        fail_over_with(flavour, key).with_context(|| key.to_owned())?;
    }
    Ok(())
}

fn fail_over_with(flavour: Flavour, key: &str) -> Result<()> {
    let store = Upstream::start_with(flavour, &[])?;
    let start = || {
        let server = Upstream::start_with(flavour, &[])?;
        server.run("mysql", TABLE)?;
        Ok::<Upstream, anyhow::Error>(server)
    };
    let (serving, other, spares) = (start()?, start()?, [start()?, start()?]);
    let config = ProxyConfig {
        store_url: make_store(&store, "keywright", &[("one", 1)])?,
        upstream_ports: vec![serving.port(), other.port()],
        rules: vec![rule("", "rewrite").replace("segment:", key)],
        ..ProxyConfig::default()
    };
    let programs = [
        ProxyProcess::start(config.clone())?,
        ProxyProcess::start(config)?,
    ];
    let ports = programs.iter().flat_map(|program| program.ports().to_vec());
    let ports: Vec<u16> = ports.collect();
    let mut fleet = Fleet {
        serving,
        programs,
        clients: <[Arc<Client>; 4]>::default(),
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (client, port) in fleet.clients.clone().into_iter().zip(ports) {
            let is_over = &is_over;
            scope.spawn(move || client.run(port, is_over));
        }
        let mut spares = spares.into_iter();
        let done = spares.try_for_each(|spare| fleet.fail_over(spare));
        is_over.store(true, Ordering::Release);
        done
    })?;
    no_id_came_twice(&fleet.clients, [&fleet.serving, &other], &fleet.logs())
}

/// No client heard of an error, what clients were told is there, and behind the fence nothing else comes.
pub(super) fn no_id_came_twice(
    clients: &[Arc<Client>],
    servers: [&Upstream; 2],
    logs: &str,
) -> Result<()> {
    let mut told = Vec::new();
    for client in clients {
        assert_eq!(*client.failed.lock().unwrap(), [""; 0], "{logs}");
        told.append(&mut client.ids.lock().unwrap());
    }
    let count = told.len();
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), count, "an id was told twice");
    let mut rows = Vec::new();
    for server in servers {
        let ids = server.wire("shop")?.rows("SELECT id FROM orders")?;
        rows.extend(ids.into_iter().flatten());
        let direct = server
            .wire("shop")?
            .query("INSERT INTO orders (a) VALUES (1)")?;
        assert!(
            matches!(direct.as_slice(), [Reply::Failed(fault)] if AT_FENCE.contains(&fault.errno)),
            "{direct:?}"
        );
    }
    let count = rows.len();
    let rows = rows.iter().map(|id| id.parse::<u64>());
    let rows: BTreeSet<u64> = rows.collect::<std::result::Result<_, _>>()?;
    assert_eq!(rows.len(), count, "an id is on both servers");
    assert!(told.iter().all(|id| rows.contains(id)));
    Ok(())
}

/// A server is gone for good while an attempt is under way that has fenced a table there: the attempt is finished without it. What it has of
/// a fence is lifted when it comes back.
pub(super) fn a_server_is_replaced_in_the_middle_of_an_attempt(flavour: Flavour) -> Result<()> {
    let store = Upstream::start_with(flavour, &[])?;
    let start = || {
        let server = Upstream::start_with(flavour, &[])?;
        server.run("mysql", TABLE)?;
        Ok::<Upstream, anyhow::Error>(server)
    };
    let (mut gone, other, mut spare) = (start()?, start()?, start()?);
    let base = ProxyConfig {
        store_url: make_store(&store, "keywright", &[("one", 1)])?,
        upstream_ports: vec![gone.port(), other.port()],
        ..ProxyConfig::default()
    };
    let config = |mode: &str| ProxyConfig {
        rules: vec![rule("one", mode)],
        ..base.clone()
    };
    let mut proxy = ProxyProcess::start(config("observe"))?;
    let insert = |proxy: &ProxyProcess, listener: usize| -> Result<u64> {
        let port = proxy.ports()[listener];
        let mut wire = Wire::connect_tcp(port, &Login::root("shop"))?;
        Ok(wire
            .run("INSERT INTO orders (a) VALUES (1)")?
            .last_insert_id)
    };
    assert_eq!((insert(&proxy, 0)?, insert(&proxy, 1)?), (1, 1));
    // The second table's lock does not come, and then its server does not answer until the first one is another.
    let mut locks = other.wire("shop")?;
    locks.run("BEGIN")?;
    locks.rows("SELECT * FROM orders")?;
    proxy.reload(config("rewrite"))?;
    let recorded = "SELECT COUNT(*) FROM keywright_switch_table";
    wait_until("the first fence", WAIT_MAX, || {
        Ok(store.wire("keywright")?.rows(recorded)? == [["1"]])
    })?;
    other.signal(Signal::SIGSTOP)?;
    let port = gone.port();
    gone.stop()?;
    spare.move_to(port)?;
    other.signal(Signal::SIGCONT)?;
    wait_until("the end of the attempt", WAIT_MAX, || {
        Ok(proxy.log().contains("the switch was undone"))
    })?;
    proxy.reload(config("observe"))?;
    assert_eq!((insert(&proxy, 0)?, insert(&proxy, 1)?), (1, 2));
    spare.stop()?;
    gone.restart()?;
    assert_eq!(insert(&proxy, 0)?, 2);
    locks.run("COMMIT")?;
    proxy.reload(config("rewrite"))?;
    let keys = "SELECT COUNT(*) FROM keywright_rule WHERE key_space IS NOT NULL";
    wait_until("keys", WAIT_MAX, || {
        Ok(store.wire("keywright")?.rows(keys)? == [["1"]])
    })?;
    assert!(insert(&proxy, 0)? > 2);
    Ok(())
}

/// Whoever began an attempt dies behind its first fence, and the program that is left to end it has no such rule: it cannot lift that. Who has
/// the rule does, and native ids go on where they were.
pub(super) fn an_attempt_is_ended_by_a_program_without_its_rule(flavour: Flavour) -> Result<()> {
    let store = Upstream::start_with(flavour, &[])?;
    let start = || {
        let server = Upstream::start_with(flavour, &[])?;
        server.run("mysql", TABLE)?;
        Ok::<Upstream, anyhow::Error>(server)
    };
    let (first, second) = (start()?, start()?);
    first.run(
        "shop",
        "CREATE TABLE line (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store_url = make_store(&store, "keywright", &[("one", 1)])?;
    let config = |rule: String| ProxyConfig {
        store_url: store_url.clone(),
        upstream_ports: vec![first.port(), second.port()],
        rules: vec![rule],
        more: "[limits]\nswitch_peer_wait_s = 2\n".to_owned(),
        ..ProxyConfig::default()
    };
    let other = rule("one", "observe").replace("shop.orders", "shop.line");
    let left = ProxyProcess::start(config(other))?;
    let mut dies = ProxyProcess::start(config(rule("one", "observe")))?;
    let mut locks = second.wire("shop")?;
    locks.run("BEGIN")?;
    locks.rows("SELECT * FROM orders")?;
    let mut direct = first.wire("shop")?;
    direct.run("INSERT INTO orders (a) VALUES (1)")?;
    dies.reload(config(rule("one", "rewrite")))?;
    // On a slow machine it may have given up, and lifted the fence, before it dies.
    wait_until("a death behind the first fence", WAIT_MAX, || {
        if !is_fenced(&mut direct, "orders")? {
            return Ok(false);
        }
        dies.kill9()?;
        let is_left = is_fenced(&mut direct, "orders")?;
        if !is_left {
            dies.restart()?;
        }
        Ok(is_left)
    })?;
    locks.run("COMMIT")?;
    // Where ids go on the rows do not say any more.
    let ids = direct.rows("SELECT MAX(id) FROM orders")?.concat().concat();
    direct.run("DELETE FROM orders")?;
    wait_until("the end of the attempt", WAIT_MAX, || {
        let phase = "SELECT phase FROM keywright_switch";
        Ok(store.wire("keywright")?.rows(phase)? == [["none"]])
    })?;
    let log = left.log();
    assert_has(
        &log,
        &["finished without a table that no rule of it here has"],
    );
    dies.reconfigure(config(rule("one", "observe")));
    dies.restart()?;
    wait_until("the end of the fence", WAIT_MAX, || {
        Ok(!is_fenced(&mut direct, "orders")?)
    })?;
    let next = direct.rows("SELECT id FROM orders")?.concat().concat();
    assert_eq!(next.parse::<u64>()?, ids.parse::<u64>()? + 1);
    Ok(())
}
