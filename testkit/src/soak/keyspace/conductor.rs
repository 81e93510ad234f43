//! Lets things happen, one after the other, while others draw.

use std::collections::BTreeMap;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use super::event::{Event, Original, ProgramEnd};
use super::fleet::{Fleet, SERVERS_MAX, Served, TABLES};
use super::issuer::{dry, last_draw};
use super::report::KeySpaceReport;
use super::store::StoreKind;
use super::{drawer, rows};
use crate::machine::process::send;
use crate::{ProxyProcess, Replication, Stop, WAIT_MAX, assert_has, wait_until};

/// How many draw at the same time.
const DRAWERS: u64 = 6;
/// What comes between two events at least.
const IDS_BETWEEN: u64 = 20_000;
/// How long one stands still: longer than a lease.
const PAUSE: Duration = Duration::from_millis(1_500);
/// The longest that an issuer may be without ids.
const DRY_MAX: Duration = Duration::from_secs(150);

/// All that there is, and what happens.
pub(super) struct Conductor {
    fleet: Fleet,
    random: fastrand::Rng,
    events: BTreeMap<&'static str, u32>,
    seed: u64,
    began: Instant,
    drawers: Vec<JoinHandle<()>>,
}

impl Conductor {
    /// Starts everything, and those who draw.
    ///
    /// # Errors
    /// Something does not start.
    pub(super) fn begin(seed: u64, store: StoreKind) -> Result<Conductor> {
        let fleet = Fleet::start(store)?;
        let drawers = (0..DRAWERS).map(|number| drawer::start(&fleet.world, seed ^ number));
        Ok(Conductor {
            drawers: drawers.collect(),
            fleet,
            random: fastrand::Rng::with_seed(seed),
            events: BTreeMap::new(),
            seed,
            began: Instant::now(),
        })
    }

    /// Lets things happen for so long and until so many ids were seen, then sums up.
    ///
    /// # Errors
    /// An id was seen twice, something failed that must not, or ids stopped coming.
    pub(super) fn conduct(mut self, length: Duration, ids_min: u64) -> Result<KeySpaceReport> {
        // Making all of it is not part of it.
        self.began = Instant::now();
        for issuer in self.fleet.world.issuers() {
            issuer.note_ids();
        }
        let mut number = 0_u32;
        let mut done = self.wait_for_ids(IDS_BETWEEN);
        let ids = |fleet: &Fleet| fleet.world.findings.ledger.ids();
        while done.is_ok() && (self.began.elapsed() < length || ids(&self.fleet) < ids_min) {
            number += 1;
            let event = Event::draw(&mut self.random);
            done = self.next(number, event);
        }
        let done = done.and_then(|()| self.all_issue());
        self.fleet.world.findings.stop();
        let mut panicked = false;
        for drawer in self.drawers.drain(..) {
            panicked |= drawer.join().is_err();
        }
        let seed = self.seed;
        if let Some(repeated) = self.fleet.world.findings.ledger.repeated() {
            bail!("seed {seed}: {repeated}");
        }
        if let Some(fault) = self.fleet.world.findings.first_fault() {
            bail!("seed {seed}, event {number}: {fault}");
        }
        done.with_context(|| format!("seed {seed}, event {number}"))?;
        if panicked {
            bail!("seed {seed}: a drawing thread panicked");
        }
        let rows = self.rows().with_context(|| format!("seed {seed}"))?;
        let findings = &self.fleet.world.findings;
        Ok(KeySpaceReport {
            seed,
            took: self.began.elapsed(),
            ids: findings.ledger.ids(),
            runs: findings.ledger.runs(),
            rows,
            events: self.events,
            refusals: findings.refusals(),
        })
    }

    fn next(&mut self, number: u32, event: Event) -> Result<()> {
        let at = self.began.elapsed().as_secs_f64();
        let what = format!("{number} at {at:.1} s: {event}");
        eprintln!("    {what}");
        self.fleet.world.findings.ledger.event(what);
        if self.happens(event).with_context(|| event.to_string())? {
            *self.events.entry(event.kind()).or_default() += 1;
        }
        thread::sleep(Duration::from_millis(self.random.u64(100..700)));
        self.wait_for_ids(IDS_BETWEEN)
    }

    /// Whether it did: some need what is not there.
    fn happens(&mut self, event: Event) -> Result<bool> {
        match event {
            Event::Program(which, end) => self.end_program(which, end),
            Event::PauseProgram(which) => self.pause_program(which),
            Event::StepClock(which, offset_s) => self.fleet.step_clock(which, offset_s),
            Event::KillServer(which) => self.server_restarts(which, None),
            Event::RestartServer(which) => self.server_restarts(which, Some(Stop::Fast)),
            Event::KillBackend(which) => self.kill_backend(which),
            Event::PauseServer(which) => {
                let at = self.server_at(which);
                let server = &self.fleet.servers[at].server;
                server.pause()?;
                thread::sleep(PAUSE);
                server.resume().map(|()| true)
            }
            Event::CopyServer(which) => self.copy_server(which),
            Event::BackUpServer(which) => self.back_up_server(which),
            Event::RestoreServer(which) => self.restore_server(which),
            Event::Promote(which, original) => self.promote(which, original),
            Event::KillShard(which) => {
                let at = which % self.fleet.shards.len();
                let shard = &mut self.fleet.shards[at];
                shard.kill9()?;
                shard.restart().map(|()| true)
            }
            Event::KillStore(which) => {
                let away = Duration::from_millis(self.random.u64(0..3_000));
                self.fleet.store.kill(which, || {
                    thread::sleep(away);
                    Ok(())
                })
            }
            Event::PauseStore(which) => self.fleet.store.pause(which, || {
                thread::sleep(PAUSE);
                Ok(())
            }),
            Event::BackUpStore => self.fleet.store.back_up(),
            Event::RestoreStore => self.restore_store(),
        }
    }

    fn server_at(&self, which: usize) -> usize {
        which % self.fleet.servers.len()
    }

    fn end_program(&mut self, which: usize, end: ProgramEnd) -> Result<bool> {
        let at = which % self.fleet.programs.len();
        let config = self.fleet.config_of(at)?;
        let away = Duration::from_millis(self.random.u64(0..3_000));
        let program = &mut self.fleet.programs[at];
        program.reconfigure(config);
        match end {
            ProgramEnd::Killed => {
                program.kill9()?;
                thread::sleep(away);
                program.restart()?;
            }
            ProgramEnd::Stopped => {
                let status = program.stop()?;
                if !status.success() {
                    bail!("it ended with {status}; its log:\n{}", program.log());
                }
                program.restart()?;
            }
            // The old one is killed when it is let go, whoever is connected to it.
            ProgramEnd::TakenOver => drop(program.take_over()?),
        }
        Ok(true)
    }

    fn pause_program(&mut self, which: usize) -> Result<bool> {
        let program = &self.fleet.programs[which % self.fleet.programs.len()];
        send(program.pid()?, Signal::SIGSTOP)?;
        thread::sleep(PAUSE);
        send(program.pid()?, Signal::SIGCONT)?;
        Ok(true)
    }

    fn server_restarts(&mut self, which: usize, stop: Option<Stop>) -> Result<bool> {
        let at = self.server_at(which);
        let served = &mut self.fleet.servers[at];
        match stop {
            Some(how) => served.server.stop(how)?,
            None => served.server.kill9()?,
        }
        self.server_starts(at)?;
        Ok(true)
    }

    /// Starts a server; programs hear of another port.
    fn server_starts(&mut self, at: usize) -> Result<()> {
        let served = &mut self.fleet.servers[at];
        let port = served.server.port();
        served.server.start()?;
        served.moved();
        if served.server.port() != port {
            self.tell_programs()?;
        }
        Ok(())
    }

    /// All programs get the configuration of now, one after the other.
    fn tell_programs(&mut self) -> Result<()> {
        for at in 0..self.fleet.programs.len() {
            let end = match self.random.u8(0..3) {
                0 => ProgramEnd::Killed,
                1 => ProgramEnd::Stopped,
                _ => ProgramEnd::TakenOver,
            };
            self.end_program(at, end)?;
        }
        Ok(())
    }

    fn kill_backend(&mut self, which: usize) -> Result<bool> {
        let at = self.server_at(which);
        let server = &self.fleet.servers[at].server;
        let sql = "SELECT pid FROM pg_stat_activity WHERE datname LIKE 'shop%' AND backend_type = 'client backend' LIMIT 1";
        match server.client("postgres")?.query_opt(sql, &[])? {
            Some(row) => server.kill9_backend(row.try_get(0)?).map(|()| true),
            None => Ok(false),
        }
    }

    /// Makes room for one more.
    fn make_room(&mut self, but: &str) {
        let others = |served: &Served| served.name != but;
        while self.fleet.servers.len() >= SERVERS_MAX {
            let Some(at) = self.fleet.servers.iter().position(others) else {
                return;
            };
            self.fleet.leave(at);
        }
    }

    fn copy_server(&mut self, which: usize) -> Result<bool> {
        let name = self.fleet.servers[self.server_at(which)].name.clone();
        self.make_room(&name);
        let at = self.place_of(&name)?;
        let served = &mut self.fleet.servers[at];
        match which % 3 {
            0 => served.server.kill9()?,
            1 => served.server.stop(Stop::Immediate)?,
            _ => served.server.stop(Stop::Fast)?,
        }
        let mut copy = served.server.copy()?;
        copy.start()?;
        self.server_starts(at)?;
        self.fleet.join(copy);
        self.tell_programs()?;
        Ok(true)
    }

    fn place_of(&self, name: &str) -> Result<usize> {
        let mut all = self.fleet.servers.iter();
        all.position(|served| served.name == name)
            .context("the server is not there")
    }

    fn back_up_server(&mut self, which: usize) -> Result<bool> {
        let at = self.server_at(which);
        let served = &mut self.fleet.servers[at];
        served.server.stop(Stop::Fast)?;
        served.backup = Some(served.server.copy()?);
        self.server_starts(at)?;
        Ok(true)
    }

    fn restore_server(&mut self, which: usize) -> Result<bool> {
        // Any that has a backup, from that one on.
        let from = self.server_at(which);
        let (before, after) = self.fleet.servers.split_at_mut(from);
        let mut all = after.iter_mut().chain(before);
        let found = all.find_map(|served| Some((served.backup.take()?, served)));
        let Some((mut backup, served)) = found else {
            return Ok(false);
        };
        served.server.kill9()?;
        backup.start()?;
        served.replace(backup);
        self.tell_programs()?;
        Ok(true)
    }

    fn promote(&mut self, which: usize, original: Original) -> Result<bool> {
        let name = self.fleet.servers[self.server_at(which)].name.clone();
        if original == Original::GoesOn {
            self.make_room(&name);
        }
        let at = self.place_of(&name)?;
        let standby = self.fleet.servers[at]
            .server
            .standby("standby", Replication::Asynchronous)?;
        self.wait_for_ids(IDS_BETWEEN)?;
        let served = &mut self.fleet.servers[at];
        match original {
            Original::Lost => {
                served.server.kill9()?;
                standby.promote()?;
                served.replace(standby);
            }
            Original::GoesOn => {
                standby.promote()?;
                self.fleet.join(standby);
            }
        }
        self.tell_programs()?;
        Ok(true)
    }

    /// As the documentation says it: all programs stopped, the backup put in place, the operator says how much may be missing and how far ids
    /// came that are known, and programs start.
    fn restore_store(&mut self) -> Result<bool> {
        if !self.fleet.store.has_backup() {
            return Ok(false);
        }
        for program in &mut self.fleet.programs {
            program.kill9()?;
        }
        let minutes = self.fleet.store.restore()?;
        let config = self.fleet.config();
        let lost = format!("{minutes}m");
        let said = ProxyProcess::said(&config, &["store", "restored", "--lost", &lost])?;
        assert_has(&said, &["tag \"orders\": its bound is"]);
        // What clients of programs got since the backup is estimated; an operator says what he knows.
        let ledger = &self.fleet.world.findings.ledger;
        let highest = ledger.highest("orders").unwrap_or(0).to_string();
        ProxyProcess::said(&config, &["advance", "orders", "--above", &highest])?;
        for at in 0..self.fleet.programs.len() {
            let config = self.fleet.config_of(at)?;
            let program = &mut self.fleet.programs[at];
            program.reconfigure(config);
            program.restart()?;
        }
        Ok(true)
    }

    /// Waits until that many more ids have come.
    fn wait_for_ids(&self, ids: u64) -> Result<()> {
        let findings = &self.fleet.world.findings;
        let goal = findings.ledger.ids() + ids;
        wait_until("ids", WAIT_MAX, || {
            if findings.ledger.repeated().is_some() || findings.stopped() {
                bail!("the soak is over");
            }
            Ok(findings.ledger.ids() >= goal)
        })
        .with_context(|| format!("refused so far: {:?}", findings.refusals()))?;
        let issuers = self.fleet.world.issuers();
        match issuers.iter().find(|its| its.came().elapsed() > DRY_MAX) {
            Some(issuer) => bail!("{}", dry(issuer)),
            None => Ok(()),
        }
    }

    /// Everybody issues when all is there again.
    fn all_issue(&self) -> Result<()> {
        let ledger = &self.fleet.world.findings.ledger;
        for issuer in self.fleet.world.issuers() {
            wait_until("ids of each issuer", WAIT_MAX, || {
                let began = ledger.begin();
                match last_draw(&issuer) {
                    Ok((what, space, ids)) => {
                        ledger.record(space, u32::MAX, &what, began, &ids);
                        Ok(true)
                    }
                    Err(error) => {
                        issuer.note_refusal(&error);
                        Ok(false)
                    }
                }
            })
            .with_context(|| dry(&issuer))?;
        }
        Ok(())
    }

    fn rows(&self) -> Result<u64> {
        let ledger = &self.fleet.world.findings.ledger;
        let mut all = 0;
        for table in TABLES {
            all += rows::check(&self.fleet.shards, table, ledger)?;
        }
        Ok(all)
    }
}
