//! Two servers behind two programs, pooled connections with and without transactions, switched again and again: by SIGHUP of one
//! program after the other and by restarts, first in calm, then with programs that are killed and paused, and in a soak with a store that
//! is killed too.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use fastrand::Rng;
use keywright_core::Cause;
use keywright_testkit::{
    AT_FENCE, Flavour, Login, Param, ProxyConfig, ProxyProcess, Reply, Result, SqlFault, Upstream,
    WAIT_MAX, Wire, make_store, wait_until,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How often the tables go from native to a tag, to snowflake ids, to another tag, and back, in each phase. With it the store is killed too.
const ROUNDS_VARIABLE: &str = "KEYWRIGHT_SWITCHES";
/// By default.
const ROUNDS: u64 = 1;
const CLIENTS: u64 = 32;
/// Longest pause of a program, milliseconds: shorter than the time after which others go on without it.
const PAUSE_MS_MAX: u64 = 800;
/// Longest time that the store's server is away, milliseconds.
const AWAY_MS_MAX: u64 = 2_000;
const LIMITS: &str = "[limits]\nswitch_wait_ms_max = 4000\nswitch_peer_wait_s = 6\n";

/// What happens beside the switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Calm,
    /// Programs are killed and paused.
    Programs,
    /// The store's server is killed as well: inserts may be answered with the error that says so.
    Store,
}

/// What clients saw.
#[derive(Default)]
struct StormResult {
    is_over: AtomicBool,
    inserts: AtomicU64,
    longest_us: AtomicU64,
    cut: AtomicU64,
    without_store: Mutex<BTreeMap<String, u64>>,
    errors: Mutex<BTreeMap<String, u64>>,
    ids: Mutex<Vec<u64>>,
}

struct Fleet {
    servers: [Upstream; 2],
    store: Mutex<Upstream>,
    programs: [Mutex<ProxyProcess>; 2],
    ports: Vec<u16>,
    base: ProxyConfig,
}

fn config(base: &ProxyConfig, key: &str, mode: &str) -> ProxyConfig {
    let mut config = base.clone();
    config
        .rules
        .push(super::rule("", mode).replace("segment:", key));
    config
}

impl Fleet {
    fn new(flavour: Flavour) -> Result<Fleet> {
        let start = |offset: u32| {
            let offset = format!("--auto-increment-offset={offset}");
            Upstream::start_with(flavour, &["--auto-increment-increment=2", &offset])
        };
        let servers = [start(1)?, start(2)?];
        for server in &servers {
            server.run(
                "mysql",
                "CREATE DATABASE shop; USE shop;
                 CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a BIGINT)",
            )?;
        }
        // As a store has to be: what it has said it knows after a crash.
        let store = Upstream::start_with(flavour, &["--innodb-flush-log-at-trx-commit=1"])?;
        let base = ProxyConfig {
            store_url: make_store(&store, "keywright", &[("one", 1), ("two", 1)])?,
            upstream_ports: servers.iter().map(Upstream::port).collect(),
            more: LIMITS.to_owned(),
            ..ProxyConfig::default()
        };
        let start = || ProxyProcess::start(config(&base, "segment:one", "observe"));
        let programs = [start()?, start()?];
        let ports = programs.iter().flat_map(|program| program.ports().to_vec());
        let ports = ports.collect();
        let programs = programs.map(Mutex::new);
        Ok(Fleet {
            servers,
            store: Mutex::new(store),
            programs,
            ports,
            base,
        })
    }

    fn in_force(&self) -> Result<String> {
        let sql = "SELECT COALESCE(MAX(key_space), '') FROM keywright.keywright_rule";
        let store = self.store.lock().unwrap();
        let rows = store.wire("keywright")?.rows(sql)?;
        Ok(rows.into_iter().flatten().next().unwrap_or_default())
    }

    /// One program after the other is told.
    fn switch(&self, key: &str, mode: &str, restarts: bool) -> Result<()> {
        let wanted = if mode == "observe" { "" } else { key };
        for program in &self.programs {
            let mut program = program.lock().unwrap();
            let config = config(&self.base, key, mode);
            if restarts {
                program.stop()?;
                program.reconfigure(config);
                program.restart()?;
            } else {
                program.reload(config)?;
            }
        }
        wait_until(&format!("\"{wanted}\" to be in force"), WAIT_MAX, || {
            Ok(self.in_force()? == wanted)
        })
        .with_context(|| self.logs())
    }

    fn logs(&self) -> String {
        let logs = self
            .programs
            .iter()
            .map(|program| program.lock().unwrap().log());
        logs.collect::<Vec<_>>().join("\n----\n")
    }

    fn client(&self, seed: u64, seen: &StormResult) {
        let mut rng = Rng::with_seed(seed);
        let in_transactions = seed.is_multiple_of(2);
        let mut ids = Vec::new();
        while !seen.is_over.load(Ordering::Acquire) {
            let port = self.ports[rng.usize(..self.ports.len())];
            // Who is cut off connects again, as a pool does.
            let Ok(mut wire) = Wire::connect_tcp(port, &Login::root("shop")) else {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            };
            let worked = work(&mut wire, in_transactions, &mut rng, seen, &mut ids);
            match worked {
                Ok(()) => {}
                Err(Trouble::Cut) => {
                    seen.cut.fetch_add(1, Ordering::Relaxed);
                }
                Err(Trouble::WithoutStore(what)) => {
                    *seen.without_store.lock().unwrap().entry(what).or_default() += 1;
                }
                Err(Trouble::Failed(what)) => {
                    *seen.errors.lock().unwrap().entry(what).or_default() += 1;
                }
            }
        }
        seen.ids.lock().unwrap().extend(ids);
    }
}

enum Trouble {
    Cut,
    /// The store does not answer, and the statement is to be sent again later.
    WithoutStore(String),
    Failed(String),
}

/// The server, or the proxy, is about to stop.
const STOPPING: u16 = 1053;

fn trouble(fault: &SqlFault) -> Trouble {
    match fault.errno {
        STOPPING => Trouble::Cut,
        errno if errno == Cause::StoreUnavailable.mysql_errno() => {
            Trouble::WithoutStore(String::from_utf8_lossy(&fault.message).into_owned())
        }
        errno => Trouble::Failed(format!(
            "{errno} {}",
            String::from_utf8_lossy(&fault.message)
        )),
    }
}

fn checked(replies: Result<Vec<Reply>>) -> std::result::Result<u64, Trouble> {
    match replies.map(|replies| replies.into_iter().next()) {
        Ok(Some(Reply::Done(done))) => Ok(done.last_insert_id),
        Ok(Some(Reply::Failed(fault))) => Err(trouble(&fault)),
        Ok(Some(Reply::Rows(_))) => Ok(0),
        Ok(None) | Err(_) => Err(Trouble::Cut),
    }
}

fn work(
    wire: &mut Wire,
    in_transactions: bool,
    rng: &mut Rng,
    seen: &StormResult,
    ids: &mut Vec<u64>,
) -> std::result::Result<(), Trouble> {
    let prepared = wire.prepare("INSERT INTO orders (a) VALUES (?)");
    let prepared = prepared.map_err(|_| Trouble::Cut)?;
    let prepared = prepared.map_err(|fault| trouble(&fault))?;
    for _ in 0..rng.u32(50..500) {
        if seen.is_over.load(Ordering::Acquire) {
            return Ok(());
        }
        let began = Instant::now();
        let mut new = Vec::new();
        if in_transactions {
            checked(wire.query("BEGIN"))?;
            checked(wire.query("SELECT a FROM orders ORDER BY id DESC LIMIT 1"))?;
        }
        for _ in 0..rng.u32(1..3) {
            new.push(checked(match rng.bool() {
                true => wire.query("INSERT INTO orders (a) VALUES (1)"),
                false => wire.execute(&prepared, &[Param::Signed(2)]),
            })?);
        }
        if in_transactions {
            checked(wire.query("COMMIT"))?;
        }
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        seen.longest_us.fetch_max(took, Ordering::Relaxed);
        seen.inserts.fetch_add(new.len() as u64, Ordering::Relaxed);
        ids.extend(new);
        std::thread::sleep(Duration::from_millis(rng.u64(1..8)));
    }
    Ok(())
}

/// Kills and pauses programs, and kills the store, until it is over.
fn disturb(fleet: &Fleet, phase: Phase, seed: u64, is_over: &AtomicBool) -> Result<()> {
    let mut rng = Rng::with_seed(seed);
    while !is_over.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(rng.u64(200..5_000)));
        if phase == Phase::Store && rng.u8(..3) == 0 {
            let mut store = fleet.store.lock().unwrap();
            store.kill9()?;
            std::thread::sleep(Duration::from_millis(rng.u64(1..AWAY_MS_MAX)));
            store.restart()?;
            continue;
        }
        let mut program = fleet.programs[rng.usize(..2)].lock().unwrap();
        if rng.bool() {
            program.kill9()?;
            program.restart()?;
        } else {
            let pid = Pid::from_raw(i32::try_from(program.pid()?)?);
            drop(program);
            // It may be another by the time it goes on, which is sent nothing that harms.
            kill(pid, Signal::SIGSTOP)?;
            std::thread::sleep(Duration::from_millis(rng.u64(1..PAUSE_MS_MAX)));
            kill(pid, Signal::SIGCONT)?;
        }
    }
    Ok(())
}

fn rounds(fleet: &Fleet, rounds: u64, rng: &mut Rng) -> Result<()> {
    for _ in 0..rounds {
        for (key, mode) in [
            ("segment:one", "rewrite"),
            ("snowflake", "rewrite"),
            ("segment:two", "rewrite"),
            ("segment:two", "observe"),
            ("snowflake", "observe"),
        ] {
            fleet.switch(key, mode, rng.bool())?;
            std::thread::sleep(Duration::from_millis(rng.u64(50..300)));
        }
    }
    Ok(())
}

keywright_testkit::on_both_flavours!(a_fleet_is_switched_under_load);

fn a_fleet_is_switched_under_load(flavour: Flavour) -> Result<()> {
    let wanted = std::env::var(ROUNDS_VARIABLE).ok();
    let phases = match wanted {
        Some(_) => &[Phase::Calm, Phase::Programs, Phase::Store][..],
        None => &[Phase::Calm, Phase::Programs],
    };
    let wanted = wanted.map_or(Ok(ROUNDS), |text| text.parse())?;
    let fleet = Fleet::new(flavour)?;
    let mut rng = Rng::with_seed(26);
    for phase in phases {
        let seen = StormResult::default();
        let over = AtomicBool::new(false);
        let switched = std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (fleet, seen) = (&fleet, &seen);
                scope.spawn(move || fleet.client(client, seen));
            }
            let disturbs = (*phase != Phase::Calm).then(|| {
                let (fleet, over) = (&fleet, &over);
                scope.spawn(move || disturb(fleet, *phase, 7, over))
            });
            let switched = rounds(&fleet, wanted, &mut rng);
            over.store(true, Ordering::Release);
            let disturbed = disturbs.map_or(Ok(()), |thread| thread.join().unwrap());
            seen.is_over.store(true, Ordering::Release);
            switched.and(disturbed)
        });
        switched?;
        report(&fleet, &seen, *phase)?;
    }
    Ok(())
}

fn report(fleet: &Fleet, seen: &StormResult, phase: Phase) -> Result<()> {
    let errors = seen.errors.lock().unwrap().clone();
    let mut ids = Vec::new();
    for server in &fleet.servers {
        for id in server
            .wire("shop")?
            .rows("SELECT id FROM orders")?
            .iter()
            .flatten()
        {
            ids.push(id.parse::<u64>()?);
        }
    }
    let rows = ids.len();
    ids.sort_unstable();
    ids.dedup();
    let without_store = seen.without_store.lock().unwrap().clone();
    println!(
        "{phase:?}: {} inserts answered, {rows} rows, {} distinct, {} connections cut off, longest {} ms, told to wait: {without_store:?}",
        seen.inserts.load(Ordering::Relaxed),
        ids.len(),
        seen.cut.load(Ordering::Relaxed),
        seen.longest_us.load(Ordering::Relaxed) / 1_000,
    );
    if phase != Phase::Store && !without_store.is_empty() {
        bail!("{without_store:?}\n{}", fleet.logs());
    }
    if !errors.is_empty() {
        bail!("{errors:?}\n{}", fleet.logs());
    }
    assert_eq!(ids.len(), rows, "an id is there twice");
    let mut output = seen.ids.lock().unwrap().clone();
    assert!(!output.is_empty());
    output.sort_unstable();
    let before = output.len();
    output.dedup();
    assert_eq!(output.len(), before, "an id was told twice");
    assert!(
        output.iter().all(|id| ids.binary_search(id).is_ok()),
        "what was told is there"
    );
    let direct = fleet.servers[0]
        .wire("shop")?
        .query("INSERT INTO orders (a) VALUES (1)")?;
    let is_refused = |fault: &SqlFault| AT_FENCE.contains(&fault.errno);
    // At the end the tables are native again.
    assert!(!matches!(direct.as_slice(), [Reply::Failed(fault)] if is_refused(fault)));
    Ok(())
}
