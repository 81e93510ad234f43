//! Taking states of the word of the lease that is held now.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use keywright_core::{
    BeforeEpoch, Biz, Cause, ClockDecision, KeyBatch, Layout, WorkerId, Zone, readable,
};
use tokio::time::{Instant, sleep};

use crate::clock::Clock;
use crate::failure::Failure;
use crate::lease::Words;
use crate::lease::space::Space;
use crate::settings::{Limits, SnowflakeSettings};
use crate::sources::demand::Demand;
use crate::sources::time::clock_watch::ClockWatch;

pub(super) const BULK_HINT: &str =
    "use key = \"segment:TAG\" for tables that are filled in bulk, or fewer rows per statement";

/// A clock that is not followed and falls back was mended: the keeper looks at it anew, and so often, milliseconds, it is asked whether it has.
const MENDED_LOOK_MS: u64 = 5;

/// While keys come from the spare worker the clock is looked at so often, milliseconds: it may have been mended, and somebody is to hear of it.
const SPARE_LOOK_MS: u64 = 1_000;

/// Keys that come from one leased worker id, whichever it is at the moment.
#[derive(Debug)]
pub(crate) struct TimeSupply {
    pub(crate) space: Space,
    pub(super) layout: Layout,
    pub(super) wanted: Option<WorkerId>,
    pub(super) worker_id_max: u32,
    pub(crate) settings: SnowflakeSettings,
    /// Whether buckets of readable ids are divided among several stores.
    pub(super) must_be_divided: bool,
    pub(crate) clock: Arc<dyn Clock>,
    /// What the wall clock reads too much, milliseconds.
    pub(super) skew_ms: AtomicI64,
    /// What the wall clock read when it was looked at last since keys come from the spare worker.
    looked_ms: AtomicI64,
    pub(super) lease: ArcSwapOption<Leased>,
    followed: Mutex<Followed>,
    pub(super) watch: ClockWatch,
    pub(crate) demand: Demand,
}

/// The generation of all leases that is followed.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// That of the first lease, until [`TimeSupply::follow`] says another.
    pub(crate) generation: Option<u64>,
    /// Whether nothing is given before a generation is followed.
    pub(crate) is_left: bool,
    /// First state above all that was issued from leases of older ones.
    pub(crate) floor_state: u64,
}

/// The lease that is held.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) worker_id: u32,
    pub(super) words: Words,
    /// States from here on have the bound extended.
    pub(super) extend_at: AtomicU64,
}

/// States that were taken, and whose.
struct States {
    first: u64,
    worker_id: u32,
    worker_part: u64,
}

impl TimeSupply {
    pub(crate) fn new(
        space: Space,
        (settings, must_be_divided): (SnowflakeSettings, bool),
        clock: Arc<dyn Clock>,
        limits: &Limits,
    ) -> Self {
        let (layout, wanted, worker_id_max) = match space {
            Space::Snowflake => (
                settings.layout,
                settings.worker_id,
                settings.layout.worker_id_max(),
            ),
            Space::Readable => (readable::LAYOUT, None, readable::BUCKETS - 1),
        };
        Self {
            space,
            layout,
            wanted,
            worker_id_max,
            watch: ClockWatch::new(space, &settings),
            settings,
            must_be_divided,
            clock,
            skew_ms: AtomicI64::new(0),
            looked_ms: AtomicI64::new(i64::MIN),
            lease: ArcSwapOption::const_empty(),
            followed: Mutex::default(),
            demand: Demand::new(
                space.name().to_owned(),
                limits.wait_ms_max,
                limits.waiters_max,
            ),
        }
    }

    /// Follows another generation of all leases: nothing more is taken from a lease of an older one, and another lease is taken.
    pub(crate) fn follow(&self, generation: u64) {
        {
            let mut followed = self.followed();
            if followed.generation == Some(generation) && !followed.is_left {
                return;
            }
            followed.generation = Some(generation);
            followed.is_left = false;
            self.drop_lease(&mut followed);
        }
        self.demand.begin_anew();
    }

    /// Nothing more is taken from the lease, and no other is taken, until a generation is followed.
    pub(crate) fn leave(&self) {
        {
            let mut followed = self.followed();
            if followed.is_left {
                return;
            }
            followed.is_left = true;
            self.drop_lease(&mut followed);
        }
        self.demand.begin_anew();
    }

    fn drop_lease(&self, followed: &mut Followed) {
        if let Some(lease) = self.lease.swap(None) {
            followed.floor_state = followed.floor_state.max(lease.words.drain());
        }
    }

    pub(crate) fn followed(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Most states that one request can have.
    pub(crate) fn tick_ids(&self) -> u64 {
        1 << self.layout.sequence_bits()
    }

    /// Whether so few states are left below the bound that it should be extended.
    pub(super) fn is_low(&self) -> bool {
        let guard = self.lease.load();
        guard
            .as_deref()
            .is_some_and(|lease| lease.words.next() > lease.extend_at.load(Ordering::Relaxed))
    }

    /// What the wall clock reads, less what it reads too much, unix milliseconds.
    pub(super) fn now_ms(&self) -> i64 {
        let skew_ms = self.skew_ms.load(Ordering::Relaxed);
        self.clock.wall_ms().saturating_sub(skew_ms)
    }

    /// Whether keys can be of a moment, or of later ones only.
    pub(super) fn check_begun(&self, now_ms: i64) -> Result<(), BeforeEpoch> {
        match self.space {
            Space::Snowflake => self.layout.check_begun(now_ms),
            Space::Readable => readable::check_begun(now_ms, Zone::UTC),
        }
    }

    pub(super) fn now_state(&self) -> u64 {
        self.layout.state_at(self.now_ms())
    }

    /// `count` states, of one tick if that is asked for, and whose.
    #[inline]
    fn try_states(&self, count: u64, in_tick: bool) -> Option<States> {
        if self.demand.is_closed() {
            return None;
        }
        let guard = self.lease.load();
        let lease = guard.as_deref()?;
        let (decision, now_ms) = self.watch.decide(|| self.now_ms());
        let its = lease.words.of(decision)?;
        let now = self.layout.state_at(now_ms);
        let first = if in_tick {
            let bits = self.layout.sequence_bits();
            its.word.take_in_tick(now, count, bits).ok()?
        } else {
            its.word.take(now, count).ok()?
        };
        self.watch.issued_at(now_ms);
        if decision == ClockDecision::IssueSpare {
            self.look_while_spare();
        }
        if first.saturating_add(count) > lease.extend_at.load(Ordering::Relaxed) {
            self.demand.ask();
        }
        self.demand
            .figures
            .issued
            .fetch_add(count, Ordering::Relaxed);
        Some(States {
            first,
            worker_id: lease.worker_id,
            worker_part: its.part,
        })
    }

    /// Snowflake keys. Those of one tick differ by one in the sequence field; others have no common distance.
    #[inline]
    pub(crate) fn try_snowflakes(&self, count: u64, contiguous: bool) -> Option<KeyBatch> {
        let in_tick = contiguous || count == 1;
        let States {
            first, worker_part, ..
        } = self.try_states(count, in_tick)?;
        let id = |state| self.layout.compose(state, worker_part).cast_unsigned();
        if !in_tick {
            return Some(KeyBatch::Listed((first..first + count).map(id).collect()));
        }
        Some(KeyBatch::Numbers {
            first: id(first),
            spacing: if count > 1 {
                id(first + 1) - id(first)
            } else {
                1
            },
            count,
        })
    }

    /// Readable keys; `None` also when the clock is outside the years that they can tell.
    pub(crate) fn try_readables(&self, count: u64, biz: &Biz) -> Option<KeyBatch> {
        let States {
            first, worker_id, ..
        } = self.try_states(count, false)?;
        let bucket = u8::try_from(worker_id).ok()?;
        let text = |state| {
            let (written_ms, sequence) = readable::parts_of_state(state);
            readable::format(written_ms, biz, bucket, sequence).ok()
        };
        let texts: Option<Vec<String>> = (first..first + count).map(text).collect();
        texts.map(KeyBatch::Texts)
    }

    /// Waits for what `attempt` needs.
    pub(crate) async fn take(
        &self,
        count: u64,
        in_tick: bool,
        attempt: impl Fn() -> Option<KeyBatch>,
    ) -> Result<KeyBatch, Failure> {
        let most = self.tick_ids();
        if in_tick && count > most {
            let failure = Failure::new(
                Cause::ArgumentOutOfRange,
                format!(
                    "{count} consecutive {} keys do not fit into one tick, which holds {most}",
                    self.space.name()
                ),
            );
            return Err(failure.hint(BULK_HINT));
        }
        let deadline = Instant::now() + Duration::from_millis(self.demand.wait_ms_max());
        loop {
            self.wait_for_clock(deadline).await?;
            // It may be set back while the keys are waited for.
            let unless_behind = || match self.is_clock_behind() {
                true => Some(None),
                false => attempt().map(Some),
            };
            if let Some(keys) = self.demand.take(count, unless_behind).await? {
                return Ok(keys);
            }
        }
    }

    fn is_clock_behind(&self) -> bool {
        let (decision, _) = self.watch.decide(|| self.now_ms());
        match decision {
            ClockDecision::Issue | ClockDecision::IssueSpare => false,
            ClockDecision::WaitMs(_) | ClockDecision::Refuse { behind_ms: _ } => true,
        }
    }

    /// Waits for the clock where the policy says so, until `deadline` at most.
    async fn wait_for_clock(&self, deadline: Instant) -> Result<(), Failure> {
        loop {
            let (mut wait_ms, behind_ms) = match self.watch.decide(|| self.now_ms()).0 {
                ClockDecision::Issue | ClockDecision::IssueSpare => return Ok(()),
                ClockDecision::WaitMs(ms) => (Some(ms), ms),
                ClockDecision::Refuse { behind_ms } => (None, behind_ms),
            };
            if self.skew_ms.load(Ordering::Relaxed) != 0 {
                self.look_at_clock();
                wait_ms = Some(MENDED_LOOK_MS);
            }
            let wait = wait_ms.map(Duration::from_millis);
            let Some(wait) = wait.filter(|wait| Instant::now() + *wait <= deadline) else {
                let refused = &self.demand.figures.refused;
                refused.fetch_add(1, Ordering::Relaxed);
                return Err(self.watch.behind(behind_ms));
            };
            sleep(wait).await;
        }
    }

    /// Has the keeper read the clock, not when the bound is to be extended.
    fn look_at_clock(&self) {
        if let Some(lease) = self.lease.load().as_deref() {
            lease.extend_at.store(0, Ordering::Relaxed);
        }
        self.demand.ask();
    }

    #[cold]
    fn look_while_spare(&self) {
        let wall_ms = self.clock.wall_ms();
        let looked_ms = self.looked_ms.load(Ordering::Relaxed);
        if wall_ms.abs_diff(looked_ms) >= SPARE_LOOK_MS {
            self.looked_ms.store(wall_ms, Ordering::Relaxed);
            self.look_at_clock();
        }
    }

    /// The worker id that keys carry now.
    pub(crate) fn worker_id(&self) -> Option<u32> {
        self.lease.load().as_deref().map(|lease| lease.worker_id)
    }

    /// How much time is left below the bound, milliseconds.
    pub(crate) fn remaining_ms(&self) -> u64 {
        let guard = self.lease.load();
        let Some(lease) = guard.as_deref() else {
            return 0;
        };
        let next = lease.words.next().max(self.now_state());
        let ticks = lease.words.hi().saturating_sub(next) >> self.layout.sequence_bits();
        ticks.saturating_mul(u64::from(self.layout.tick_ms()))
    }
}
