//! Three programs on one store, and the one that leads a switch is killed in the middle of it, while applications insert through all of them:
//! the others put the tables back, and one of them switches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, Wire, assert_has, make_store,
    wait_until,
};

use super::ahead::is_fenced;
use super::replaced::{Client, TABLE, no_id_came_twice};
use super::rule;

/// The first one leads, and the second has it switched in its place.
const PROGRAMS: usize = 3;
const LIMITS: &str = "[limits]\nswitch_wait_ms_max = 4000\nswitch_peer_wait_s = 6\n";
/// How long statements wait at most: `switch_wait_ms_max` and 5 s. The tables are to be as before sooner, since a program that was killed is missed
/// after 3 s.
const HELD_MAX: Duration = Duration::from_secs(9);
/// How long it may take from then on until keys are in force: a switch waits for the program that was killed until `switch_peer_wait_s` is over, and
/// one that is given up on a slow machine is tried again.
const SWITCHED_MAX: Duration = Duration::from_secs(30);
/// What each client gets at least before and behind it.
const IDS: u64 = 20;

/// The phase of the attempt, and how many programs hold for it.
const HOLDING: &str = "SELECT s.phase, (SELECT COUNT(*) FROM keywright_program p WHERE p.held = s.attempt) FROM keywright_switch s";

/// Where the program is that leads when it is killed.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// It waits for a transaction of another program's client.
    Waits,
    /// It has fenced the first server's table, and waits for the lock of the second one's.
    Fenced,
}

pub(super) fn another_program_switches_where_the_one_that_leads_dies_while_it_waits(
    flavour: Flavour,
) -> Result<()> {
    dies_at(flavour, Point::Waits)
}

pub(super) fn another_program_switches_where_the_one_that_leads_dies_behind_a_fence(
    flavour: Flavour,
) -> Result<()> {
    dies_at(flavour, Point::Fenced)
}

/// Each program serves both servers, whose native ids do not meet.
struct Fleet {
    servers: [Upstream; 2],
    store: Upstream,
    base: ProxyConfig,
    programs: Vec<ProxyProcess>,
}

fn config(base: &ProxyConfig, mode: &str) -> ProxyConfig {
    ProxyConfig {
        rules: vec![rule("one", mode)],
        ..base.clone()
    }
}

impl Fleet {
    fn new(flavour: Flavour) -> Result<Fleet> {
        let start = |offset: u32| {
            let offset = format!("--auto-increment-offset={offset}");
            let server = Upstream::start_with(flavour, &["--auto-increment-increment=2", &offset])?;
            server.run("mysql", TABLE)?;
            Ok::<Upstream, anyhow::Error>(server)
        };
        let servers = [start(1)?, start(2)?];
        let store = Upstream::start_with(flavour, &[])?;
        let base = ProxyConfig {
            store_url: make_store(&store, "keywright", &[("one", 1)])?,
            upstream_ports: servers.iter().map(Upstream::port).collect(),
            more: LIMITS.to_owned(),
            ..ProxyConfig::default()
        };
        let programs = (0..PROGRAMS).map(|_| ProxyProcess::start(config(&base, "observe")));
        let programs = programs.collect::<Result<Vec<ProxyProcess>>>()?;
        Ok(Fleet {
            servers,
            store,
            base,
            programs,
        })
    }

    fn logs(&self) -> String {
        let logs = self.programs.iter().map(ProxyProcess::log);
        logs.collect::<Vec<_>>().join("\n----\n")
    }

    /// What keeps the switch from its end, until it commits.
    fn keep_it_up(&self, point: Point) -> Result<Wire> {
        let (mut wire, statement) = match point {
            Point::Waits => (
                self.programs[1].wire("shop")?,
                "INSERT INTO orders (a) VALUES (2)",
            ),
            Point::Fenced => (
                self.servers[1].wire("shop")?,
                "SELECT * FROM orders LIMIT 1",
            ),
        };
        wire.run("BEGIN")?;
        wire.query(statement)?;
        Ok(wire)
    }

    /// Kills the program that leads. On a slow machine it may have given the attempt up before it dies, and begins again.
    fn kill_it_at(&mut self, point: Point) -> Result<()> {
        let mut store = self.store.wire("keywright")?;
        let mut direct = self.servers[0].wire("shop")?;
        let mut is_there = || -> Result<bool> {
            match point {
                Point::Waits => Ok(store.rows(HOLDING)? == [["holding", "2"]]),
                Point::Fenced => is_fenced(&mut direct, "orders"),
            }
        };
        let [observe, rewrite] = ["observe", "rewrite"].map(|mode| config(&self.base, mode));
        let leads = &mut self.programs[0];
        wait_until("a death in the middle of the switch", WAIT_MAX, || {
            if !is_there()? {
                return Ok(false);
            }
            leads.kill9()?;
            if is_there()? {
                return Ok(true);
            }
            leads.reconfigure(observe.clone());
            leads.restart()?;
            leads.reload(rewrite.clone())?;
            Ok(false)
        })
    }

    fn outlives(&mut self, point: Point, clients: &[Arc<Client>]) -> Result<()> {
        for client in clients {
            client.wait_for_more(IDS, WAIT_MAX)?;
        }
        let mut keeps_it_up = self.keep_it_up(point)?;
        let rewrite = config(&self.base, "rewrite");
        self.programs[0].reload(rewrite.clone())?;
        self.kill_it_at(point)?;
        let killed = Instant::now();
        self.programs[1].reload(rewrite)?;
        let mut store = self.store.wire("keywright")?;
        wait_until("the end of the attempt", HELD_MAX, || {
            Ok(store.rows("SELECT phase FROM keywright_switch")? == [["none"]])
        })?;
        println!("as before after {} ms", killed.elapsed().as_millis());
        keeps_it_up.run("COMMIT")?;
        wait_until("keys", SWITCHED_MAX, || {
            let keys = "SELECT COUNT(*) FROM keywright_rule WHERE key_space IS NOT NULL";
            Ok(store.rows(keys)? == [["1"]])
        })?;
        println!("switched after {} ms", killed.elapsed().as_millis());
        let others = self.programs[1..].iter().map(ProxyProcess::log);
        let undone = "the switch was undone, and the tables are as before";
        assert_has(&others.collect::<String>(), &[undone]);
        wait_until("the word of it", WAIT_MAX, || {
            Ok(self.programs[1].log().contains("the switch is in force"))
        })?;
        // It comes back, and finds done what its file wants.
        self.programs[0].restart()?;
        for client in clients {
            client.wait_for_more(IDS, WAIT_MAX)?;
        }
        Ok(())
    }
}

fn dies_at(flavour: Flavour, point: Point) -> Result<()> {
    let mut fleet = Fleet::new(flavour)?;
    let ports = fleet.programs.iter().flat_map(|its| its.ports().to_vec());
    let ports: Vec<u16> = ports.collect();
    let clients: Vec<Arc<Client>> = ports.iter().map(|_| Arc::default()).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (client, port) in clients.iter().zip(ports) {
            let is_over = &is_over;
            scope.spawn(move || client.run(port, is_over));
        }
        let done = fleet.outlives(point, &clients);
        is_over.store(true, Ordering::Release);
        done.with_context(|| fleet.logs())
    })?;
    let [first, second] = &fleet.servers;
    no_id_came_twice(&clients, [first, second], &fleet.logs())
}
