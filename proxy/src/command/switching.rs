//! A program's part in the switch while it runs: what its configuration wants anew it begins, and what others begin it follows.

mod attempt;
mod recheck;
mod trouble;

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use keywright_proxy::config::Config;
use keywright_proxy::in_force::InForce;
use keywright_proxy::metrics::Counters;
use keywright_proxy::switch::{Conductor, Limits};
use keywright_store::Failure;
use keywright_store::switch::{KeySpace, Next, Phase, RuleName, Standing, Switchboard, WantedKeys};
use tokio::time::{Instant, sleep};

use super::kept_back::KeptBack;
use super::wanted::{in_force, named, place_of, wanted};
use trouble::{Progress, Trouble};

/// How often the store is asked while nothing is switched, milliseconds.
const IDLE_MS: u64 = 250;
/// The same while something is.
const BUSY_MS: u64 = 10;
/// How long is paused after the first attempt that was given up, milliseconds.
const RETRY_MS: u64 = 1_000;
/// How long nothing is begun after an attempt, milliseconds: what waited gets its turn.
const TURN_MS: u64 = 500;

/// A program in the switch.
pub(super) struct Switching {
    board: Switchboard,
    conductor: Conductor<Arc<InForce>>,
    config: Arc<Config>,
    counters: Arc<Counters>,
    place: String,
    /// Rules whose wanted has changed while this program runs.
    changed: BTreeSet<RuleName>,
    /// Whether the configuration may want what is not in force.
    is_due: bool,
    /// The program goes along with others, and begins nothing: it is to end, or does not serve clients yet.
    is_stopping: bool,
    /// Another program has taken over, of the same place.
    has_given_way: bool,
    next_try: Instant,
    retry_ms: u64,
    /// How many attempts were begun since the configuration, and how many rules the last one of them left.
    tries: usize,
    rules_left: usize,
    /// When tables in force are looked at next whether they have their fence.
    next_fence: Instant,
    /// Before then not even if something asks for it.
    no_fence_before: Instant,
    /// How often statements were kept back from a server or a table, and native ones refused at the fence, as far as that was looked
    /// into.
    rechecked: (u64, u64),
    /// When an attempt was under way last.
    last_busy: Option<Instant>,
    trouble: Trouble,
    /// What is to be switched another program must switch.
    is_left_to_others: bool,
    /// What connections went by when the configuration was compared with what is in force last.
    compared: u64,
    /// The last attempt was for keys, too, that are in force, but not on all servers.
    repeats: bool,
    told_off: BTreeSet<RuleName>,
    /// Rules of which it was said last that their switch is repeated.
    told_repeated: BTreeSet<RuleName>,
    kept_back: KeptBack,
    is_idle: bool,
}

fn failed(failure: Failure) -> anyhow::Error {
    anyhow::anyhow!("{failure}")
}

fn limits(config: &Config) -> Limits {
    Limits {
        wait_ms_max: config.switch_wait_ms_max,
        peer_wait_ms: config.peer_wait_ms(),
    }
}

impl Switching {
    /// Of a program that begins; on `board` it has said nothing yet.
    pub(super) fn new(
        board: Switchboard,
        config: Arc<Config>,
        file: &Path,
        (in_force, counters): (Arc<InForce>, Arc<Counters>),
    ) -> Self {
        let limits = limits(&config);
        Self {
            conductor: Conductor::new(board.clone(), Arc::clone(&config), limits, in_force),
            board,
            place: place_of(file),
            is_due: true,
            is_stopping: false,
            has_given_way: false,
            config,
            counters,
            changed: BTreeSet::new(),
            next_try: Instant::now(),
            retry_ms: RETRY_MS,
            tries: 0,
            rules_left: 0,
            next_fence: Instant::now(),
            no_fence_before: Instant::now(),
            rechecked: (0, 0),
            last_busy: None,
            trouble: Trouble::default(),
            is_left_to_others: false,
            compared: 0,
            repeats: false,
            told_off: BTreeSet::new(),
            told_repeated: BTreeSet::new(),
            kept_back: KeptBack::default(),
            is_idle: true,
        }
    }

    /// Another configuration: what differs from the one before is to be switched.
    pub(super) fn configure(&mut self, config: Arc<Config>) {
        let before: Vec<WantedKeys> = self.config.rules.iter().filter_map(wanted).collect();
        let now = config.rules.iter().filter_map(wanted);
        let changed = now.filter(|wanted| !before.contains(wanted));
        self.changed.extend(changed.map(|wanted| wanted.rule));
        self.conductor
            .configure(Arc::clone(&config), limits(&config));
        self.config = config;
        self.is_due = true;
        self.trouble.tell_again();
        self.told_off.clear();
        // Of rules that are to have it now, too.
        self.next_fence = Instant::now();
        (self.next_try, self.retry_ms) = (Instant::now(), RETRY_MS);
        self.tries = 0;
    }

    /// The program starts on kept ranges: tables without their fence get no keys before the store was asked about them.
    pub(super) async fn look_without_store(&mut self, standing: &Standing) {
        self.conductor.look_without_store(standing).await;
    }

    /// From now on it goes along with others, and finishes what it has begun.
    pub(super) fn begin_nothing(&mut self) {
        self.is_stopping = true;
    }

    /// From now on it begins what the configuration wants anew.
    pub(super) fn may_begin(&mut self) {
        self.is_stopping = false;
    }

    /// Another program is the one of this place from now on.
    pub(super) fn give_way(&mut self) {
        self.begin_nothing();
        self.has_given_way = true;
    }

    /// Returns when it is time for the next step.
    pub(super) async fn pause(&self) {
        sleep(Duration::from_millis(match self.is_idle {
            true => IDLE_MS,
            false => BUSY_MS,
        }))
        .await;
    }

    /// Does something else that takes its time: meanwhile others hear that the program is there.
    pub(super) async fn beat_during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = sleep(Duration::from_millis(IDLE_MS)) => self.beat().await,
            }
        }
    }

    /// Others hear that the program is there.
    pub(super) async fn beat(&mut self) {
        if let Err(error) = self.conductor.beat_again().await {
            tracing::debug!("the store does not hear that the program is there: {error:#}");
        }
    }

    /// One step. True: what is in force is what is wanted, or nothing can be done about it now.
    pub(super) async fn step(&mut self) -> bool {
        let stepped = self.try_step().await;
        let is_settled = match &stepped {
            Ok(Progress::Waits | Progress::LeftToOthers | Progress::Settled) => true,
            Ok(Progress::Busy) | Err(_) => false,
        };
        let stepped = stepped.map_err(|error| format!("{error:#}"));
        let given_up = self.conductor.take_given_up();
        if let Some(trouble) = self.trouble.note(stepped, given_up) {
            tracing::warn!("{trouble}");
        }
        let in_progress = self.conductor.is_holding();
        self.counters.switching(in_progress, self.trouble.shown());
        is_settled
    }

    async fn try_step(&mut self) -> Result<Progress> {
        let next = match self.conductor.step().await {
            Ok(next) => next,
            Err(error) => {
                // Not at once again: who waits for a lock keeps others from the table.
                self.is_idle = true;
                return Err(error);
            }
        };
        self.is_idle = next == Next::Follow;
        let now = Instant::now();
        if next != Next::Follow {
            self.last_busy = Some(now);
            return Ok(Progress::Busy);
        }
        if self.is_stopping {
            return Ok(Progress::Waits);
        }
        let turn = Duration::from_millis(TURN_MS);
        let is_turn_over = self.last_busy.is_none_or(|busy| busy + turn < now);
        self.recheck(now).await?;
        self.is_due |= self.conductor.has_ahead() || self.may_be_switched_by_others();
        if !self.is_due {
            return Ok(match self.is_left_to_others {
                true => Progress::LeftToOthers,
                false => Progress::Settled,
            });
        }
        // At once: whoever starts again, or is told something else, goes by what was in force.
        let standing = self.record_wanted().await?;
        if now < self.next_try || !is_turn_over {
            return Ok(match (self.has_all(&standing), self.is_left_to_others) {
                (true, _) => Progress::Settled,
                (false, true) => Progress::LeftToOthers,
                (false, false) => Progress::Waits,
            });
        }
        self.begin(&standing).await
    }

    /// Whether others were to switch, and connections go by something else since then.
    fn may_be_switched_by_others(&self) -> bool {
        self.is_left_to_others && self.conductor.connections().version() != self.compared
    }

    /// Whether what the configuration wants is in force, as far as that is known before servers are asked.
    fn has_all(&self, standing: &Standing) -> bool {
        let mut all_wanted = self.config.rules.iter().filter_map(wanted);
        standing.phase == Phase::None
            && !self.repeats
            && all_wanted.all(|wanted| in_force(standing, &wanted.rule) == wanted.keys)
    }

    /// Notes in the store what the configuration wants and is in force; that differs from this before a switch.
    async fn record_wanted(&mut self) -> Result<Standing> {
        let standing = self.conductor.standing().await?;
        let all_wanted: Vec<WantedKeys> = self.config.rules.iter().filter_map(wanted).collect();
        let is_in_force = |wanted: &WantedKeys| in_force(&standing, &wanted.rule) == wanted.keys;
        if standing.phase != Phase::None || !all_wanted.iter().any(is_in_force) {
            return Ok(standing);
        }
        let all = self.board.all_wanted().await.map_err(failed)?;
        for wanted in all_wanted.into_iter().filter(is_in_force) {
            if self.changed.remove(&wanted.rule) {
                tracing::info!(
                    rule = wanted.rule.tables,
                    keys = named(wanted.keys.as_ref()),
                    "the rule is in force"
                );
            }
            let is_recorded =
                |(place, before): &(String, WantedKeys)| *place == self.place && *before == wanted;
            if !all.iter().any(is_recorded) {
                let recorded = self.board.record_wanted(&self.place, wanted).await;
                recorded.map_err(failed)?;
            }
        }
        Ok(standing)
    }

    /// Of a program that switches: of others whoever does says it.
    fn tell_kept_back(&mut self, are_known: bool) {
        let met = self.conductor.connections().traffic().on_unknown_server();
        if self.conductor.can_lead() && self.kept_back.look(met, are_known) {
            tracing::warn!(
                "INSERTs wait for keys on a server behind a listener, and admin leads only to servers on which they are in force: do upstream \
                 and admin of each listener lead to the same server?"
            );
        }
    }

    /// Once for each rule.
    fn say_others(&mut self, wanted: &WantedKeys, from: Option<&KeySpace>) {
        if self.told_off.insert(wanted.rule.clone()) {
            tracing::warn!(
                rule = wanted.rule.tables,
                "the keys come from {} now, as another program has switched them, and this configuration says {}: what is in force stays, so set \
                 the file to it; to switch, do that, send SIGHUP, then change the rule and send SIGHUP again",
                named(from),
                named(wanted.keys.as_ref()),
            );
        }
    }

    /// Steps until what is wanted is in force, or an attempt was given up, or the limit of an attempt is over.
    pub(super) async fn settle(&mut self) {
        let limit = Duration::from_millis(self.config.held_ms_max());
        let end = Instant::now() + limit;
        let mut has_begun = false;
        while Instant::now() < end {
            let is_settled = self.step().await;
            has_begun |= !self.is_idle;
            // Also after an attempt that was given up: the next is made while clients are served.
            if is_settled && (!self.is_due || has_begun || self.is_stopping) {
                return;
            }
            if self.trouble.is_reported() && self.is_idle {
                return;
            }
            sleep(Duration::from_millis(BUSY_MS)).await;
        }
    }

    /// The program ends: nobody is to wait for it.
    pub(super) async fn leave(&mut self) {
        if !self.has_given_way
            && let Err(error) = self.record_wanted().await
        {
            tracing::debug!("what is in force here was not noted in the store: {error:#}");
        }
        tell_end(&self.board).await;
    }
}

/// Nobody is to wait for this program.
pub(super) async fn tell_end(board: &Switchboard) {
    if let Err(failure) = board.leave().await {
        tracing::debug!(%failure, "the store was not told that this program ends");
    }
}
