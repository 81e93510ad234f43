//! Issuers, store, time, and the one checker.

use std::collections::HashMap;

use fastrand::Rng;
use keywright_core::{Layout, Preset};

use crate::issuer::Issuer;
use crate::lease_call::WINDOW_MS;
use crate::store::Store;
use crate::tag_call::Grant;

/// What is simulated: the sound rules, or some with a known fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// As the service does it.
    Sound,
    /// A lease that expires, without a bound: the heir starts at the time it reads.
    TimeToLiveOnly,
    /// Ids are taken by an addition that may overshoot.
    FetchAdd,
    /// A reservation whose answer was lost is used.
    PublishUnknown,
    /// A bound is extended without looking whose it is.
    ExtendBlindly,
    /// The spare word of an heir does not begin at the bound.
    SpareBeginsAnew,
    /// A rest is handed back and used all the same.
    HandBackAndKeep,
    /// A bound of another server is trusted.
    NoGap,
    /// Rests that were handed back on another server are trusted.
    KeepForeignRests,
    /// They are thrown away only by who looks for rests, not by every reservation.
    KeepUnlessLookedFor,
}

/// What becomes of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Answered,
    AnswerLost,
    NeverDone,
}

/// What happened in a run.
#[derive(Debug, Default)]
pub struct Outcome {
    pub violation: Option<String>,
    pub tag_ids: u64,
    pub snowflakes: u64,
    pub spare_ids: u64,
    pub takeovers: u64,
    pub promotions: u64,
    pub rebuilds: u64,
    pub returned_used: u64,
}

/// Everything.
pub struct World {
    pub random: Rng,
    pub rules: Rules,
    pub now_ms: i64,
    pub store: Store,
    /// The store without its last change of the tag, and what that was: what an asynchronous replica may have.
    pub lagging: Option<(Store, Option<Grant>)>,
    pub issuers: Vec<Issuer>,
    pub takeovers: u64,
    pub spare_ids: u64,
    pub returned_used: u64,
    promotions: u64,
    rebuilds: u64,
    processes: u32,
    tag_ids: HashMap<u64, String>,
    snowflakes: HashMap<i64, String>,
    violation: Option<String>,
    verbose: bool,
}

const ISSUERS: u32 = 3;
const STEPS: u32 = 400;
pub const START_MS: i64 = 1_795_219_200_000;
/// How far a wall clock is ever from the true time.
const CLOCK_MS_MAX: i64 = 2_000;

/// Every other seed has a spare bit, and with it ids of the spare worker while a clock is behind; and long ticks, so that two of them meet in one.
fn layout_of(seed: u64) -> Layout {
    const SPARE: &str = "time=41,worker=9,spare=1,sequence=12,tick=100ms,epoch=1288834974657";
    match seed.is_multiple_of(2) {
        true => Preset::Twitter.layout(),
        false => Layout::parse(SPARE).unwrap(),
    }
}

/// Runs one seed.
pub fn run(seed: u64, rules: Rules, verbose: bool) -> Outcome {
    let mut world = World {
        random: Rng::with_seed(seed),
        rules,
        now_ms: START_MS,
        store: Store::new(START_MS, layout_of(seed)),
        lagging: None,
        issuers: Vec::new(),
        takeovers: 0,
        spare_ids: 0,
        returned_used: 0,
        promotions: 0,
        rebuilds: 0,
        processes: ISSUERS,
        tag_ids: HashMap::new(),
        snowflakes: HashMap::new(),
        violation: None,
        verbose,
    };
    world.issuers = (0..ISSUERS)
        .map(|n| Issuer::new(format!("process {n}"), 0))
        .collect();
    for step in 0..STEPS {
        world.step(step);
        if world.violation.is_some() {
            break;
        }
    }
    Outcome {
        violation: world.violation,
        tag_ids: world.tag_ids.len() as u64,
        snowflakes: world.snowflakes.len() as u64,
        takeovers: world.takeovers,
        spare_ids: world.spare_ids,
        promotions: world.promotions,
        rebuilds: world.rebuilds,
        returned_used: world.returned_used,
    }
}

impl World {
    fn step(&mut self, step: u32) {
        let at = self.random.usize(..self.issuers.len());
        let choice = self.random.u32(..1_000);
        if self.verbose {
            println!(
                "step {step}: t {} {} does {choice}",
                self.now_ms - START_MS,
                self.issuers[at].owner
            );
        }
        self.now_ms += self.random.i64(0..20);
        match choice {
            0..=299 => self.take_tag(at),
            300..=449 => self.hear_of_tag(at),
            450..=699 => self.take_snowflakes(at),
            700..=849 => self.hear_of_lease(at),
            850..=909 => self.see_to_lease(at, 1),
            910..=929 => self.crash(at),
            930..=949 => self.stop(at),
            950..=969 => {
                self.issuers[at].wall_offset_ms = self.random.i64(-CLOCK_MS_MAX..=CLOCK_MS_MAX);
            }
            970..=984 => self.now_ms += self.random.i64(0..4_000),
            985..=989 => self.rebuild(),
            _ => self.promote(),
        }
    }

    pub fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// The outcome of a transaction.
    pub fn fate(&mut self) -> Fate {
        match self.random.u32(..10) {
            0 => Fate::AnswerLost,
            1 => Fate::NeverDone,
            _ => Fate::Answered,
        }
    }

    /// Memory is gone; another process begins on the same machine.
    pub fn crash(&mut self, at: usize) {
        self.processes += 1;
        let owner = format!("process {}", self.processes);
        let wall_offset_ms = self.issuers[at].wall_offset_ms;
        self.issuers[at] = Issuer::new(owner, wall_offset_ms);
    }

    /// A replica takes over that lacks the last change of the tag, and all of the leases since. What it lacks must be within
    /// what the gaps are made for: one reservation no larger than recorded, leases whose ids are not far ahead of the clock.
    fn promote(&mut self) {
        let Some((lagging, lost)) = self.lagging.take() else {
            return;
        };
        // With the gap before it: two promotions in a row must not both lose what followed the same row.
        let covered = lost.is_none_or(|grant| grant.end - lagging.number <= lagging.last.2);
        // After one promotion ids run ahead of the clock for as long as the gap is; the next gap does not count on that.
        let soon_ms = self.now_ms + CLOCK_MS_MAX + WINDOW_MS.cast_signed();
        let caught_up = self
            .store
            .leases
            .iter()
            .all(|lease| lease.row.hi_ms <= soon_ms);
        if !covered || !caught_up || lagging.server != self.store.server {
            return;
        }
        self.store = lagging;
        self.promotions += 1;
        // A name that no server had before.
        self.store.server = u32::try_from(self.promotions).unwrap() + 1;
        if self.verbose {
            println!(
                "  a replica is promoted at {}: number {}, last {:?}, rests {:?}",
                self.now_ms, self.store.number, self.store.last, self.store.returned
            );
        }
    }

    /// A server that failed before takes over again, as a copy of the present one that lacks nothing. Every row must have been
    /// written to since it failed: what nobody touched meanwhile bears its name still, and it has no way of knowing.
    fn rebuild(&mut self) {
        let present = self.store.server;
        let touched = self.store.last.0 == present
            && self
                .store
                .leases
                .iter()
                .all(|lease| lease.row.server == self.store.name());
        let server = 1 + self.random.u32(..=u32::try_from(self.promotions).unwrap());
        if !touched || server == present {
            return;
        }
        self.store.server = server;
        self.lagging = None;
        self.rebuilds += 1;
        if self.verbose {
            println!("  server {server} comes back as a copy of server {present}");
        }
    }

    pub fn issue_tag(&mut self, at: usize, id: u64) {
        let by = self.issuers[at].owner.clone();
        if let Some(before) = self.tag_ids.insert(id, by.clone()) {
            self.violation.get_or_insert(format!(
                "id {id} of the tag was issued by {before} and by {by}"
            ));
        }
    }

    pub fn issue_snowflake(&mut self, at: usize, id: i64) {
        let by = self.issuers[at].owner.clone();
        if let Some(before) = self.snowflakes.insert(id, by.clone()) {
            self.violation.get_or_insert(format!(
                "snowflake id {id} was issued by {before} and by {by}"
            ));
        }
    }
}
