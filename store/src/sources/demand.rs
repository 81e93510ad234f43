//! Between those who take keys and the task that refills: asking, waiting, failing.

mod figures;
mod news;
mod waiting;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keywright_core::Cause;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tracing::{debug, info, warn};

use crate::failure::Failure;
use figures::Figures;
pub use figures::WAIT_BOUNDS_US;
pub(crate) use news::StoreNews;
pub(crate) use waiting::{Outlook, PutOff};
use waiting::{PutOffs, WaiterSlot, Waiting};

/// One source's asking and waiting.
#[derive(Debug)]
pub(crate) struct Demand {
    /// The source's, for the log.
    name: String,
    wait_ms_max: u64,
    waiters_max: u32,
    /// Somebody asked since the task looked last.
    asked: AtomicBool,
    /// Somebody may want keys at any time.
    wanted: AtomicBool,
    wake: Notify,
    answered: Notify,
    waiting: Waiting,
    put_offs: PutOffs,
    closed: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
    /// What was said of the store already.
    news: Arc<StoreNews>,
    pub(crate) figures: Figures,
}

/// What keeps the source from refilling.
#[derive(Debug, Clone)]
struct Trouble {
    failure: Failure,
    /// Requests for fewer keys are not concerned.
    need: u64,
    /// Waiting may help.
    passes: bool,
    since: Instant,
    /// The log has it of this source, and not of another of its store only.
    is_said: bool,
    /// The log has this or an earlier failure of the same trouble.
    was_said: bool,
}

impl Demand {
    pub(crate) fn new(name: String, wait_ms_max: u64, waiters_max: u32) -> Self {
        Self {
            name,
            wait_ms_max,
            waiters_max,
            asked: AtomicBool::new(false),
            wanted: AtomicBool::new(true),
            wake: Notify::new(),
            answered: Notify::new(),
            waiting: Waiting::default(),
            put_offs: PutOffs::default(),
            closed: AtomicBool::new(false),
            trouble: Mutex::new(None),
            news: Arc::default(),
            figures: Figures::default(),
        }
    }

    /// The same; what other sources with these news have said of their store it need not say.
    pub(crate) fn sharing(self, news: Arc<StoreNews>) -> Self {
        Self { news, ..self }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How long somebody waits at most, milliseconds.
    pub(crate) fn wait_ms_max(&self) -> u64 {
        self.wait_ms_max
    }

    /// Asks for a refill before anybody has to wait.
    #[inline]
    pub(crate) fn ask(&self) {
        if !self.asked.load(Ordering::Relaxed) {
            self.insist();
        }
    }

    /// Asks for a refill of another kind than before: what kept earlier ones from coming says nothing of it.
    pub(crate) fn begin_anew(&self) {
        *self.trouble() = None;
        self.ask();
    }

    /// Somebody may want keys at any time from here on.
    pub(crate) fn want(&self) {
        if !self.wanted.swap(true, Ordering::AcqRel) {
            *self.trouble() = None;
            self.insist();
        }
    }

    /// Nobody wants keys any more, but for who is at it and waits: nothing is kept ready, and that there is nothing is no trouble.
    pub(crate) fn want_no_more(&self) {
        if self.wanted.swap(false, Ordering::AcqRel) {
            self.insist();
        }
    }

    /// Whether somebody may want keys at any time.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    /// Asks for a refill that a statement waits for. The statement has a place, so whoever reads `asked` next counts it.
    fn insist(&self) {
        if !self.asked.swap(true, Ordering::AcqRel) {
            self.wake.notify_one();
        }
    }

    /// Takes with `attempt`, waiting for refills in between, up to the limit.
    ///
    /// # Errors
    /// What keeps the source from refilling, or that it took too long.
    pub(crate) async fn take<T>(
        &self,
        need: u64,
        attempt: impl Fn() -> Option<T>,
    ) -> Result<T, Failure> {
        if !self.is_closed()
            && let Some(taken) = attempt()
        {
            return Ok(taken);
        }
        let counted = self.figures.begin_wait();
        let result = self.wait(need, counted.began(), attempt).await;
        if result.is_err() {
            self.figures.refused.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    async fn wait<T>(
        &self,
        need: u64,
        began: Instant,
        attempt: impl Fn() -> Option<T>,
    ) -> Result<T, Failure> {
        let _place = self.place(need)?;
        let deadline = began + Duration::from_millis(self.wait_ms_max);
        loop {
            let answered = self.answered.notified();
            tokio::pin!(answered);
            // From here on no answer is missed, and then it is tried again.
            answered.as_mut().enable();
            if self.is_closed() {
                return Err(Failure::new(
                    Cause::Draining,
                    "no keys are issued any more: shutting down",
                ));
            }
            if let Some(taken) = attempt() {
                return Ok(taken);
            }
            match self.put_offs.of(need, Instant::now()) {
                Some(put_off) if put_off.outlasts(deadline) => return Err(put_off.failure),
                // The task wakes up by itself when that is over.
                Some(_) => {}
                None => self.insist(),
            }
            if let Some(failure) = self.hopeless(need) {
                return Err(failure);
            }
            if timeout_at(deadline, answered).await.is_err() {
                return Err(self.timed_out());
            }
        }
    }

    fn place(&self, need: u64) -> Result<WaiterSlot<'_>, Failure> {
        self.waiting.enter(need, self.waiters_max).ok_or_else(|| {
            Failure::new(
                Cause::RefillTimeout,
                format!(
                    "{} statements wait for keys of this source already",
                    self.waiters_max
                ),
            )
        })
    }

    /// Trouble that waiting does not mend, or that has lasted longer than anybody waits.
    fn hopeless(&self, need: u64) -> Option<Failure> {
        let trouble = self.trouble().clone()?;
        let lasting = trouble.since.elapsed() > Duration::from_millis(self.wait_ms_max);
        let concerned = need >= trouble.need;
        (concerned && (!trouble.passes || lasting)).then_some(trouble.failure)
    }

    fn timed_out(&self) -> Failure {
        match self.trouble().clone() {
            Some(trouble) => trouble.failure,
            None => Failure::new(
                Cause::RefillTimeout,
                format!("no key came within {} ms", self.wait_ms_max),
            ),
        }
    }

    fn trouble(&self) -> MutexGuard<'_, Option<Trouble>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ── the task's side ──

    /// Returns when somebody has asked or the source is closed, or the time is up.
    pub(crate) async fn asked(&self, until: Option<Instant>) -> bool {
        loop {
            if self.is_closed() {
                return false;
            }
            if self.asked.swap(false, Ordering::AcqRel) {
                return true;
            }
            let woken = self.wake.notified();
            match until {
                None => woken.await,
                Some(until) if timeout_at(until, woken).await.is_err() => return false,
                Some(_) => {}
            }
        }
    }

    /// Whether nothing is to be kept ready: nobody wants keys, and nobody waits for some. Nothing is in trouble then.
    pub(crate) fn rests(&self) -> bool {
        let rests = !self.is_wanted() && self.waiting.is_empty();
        if rests {
            *self.trouble() = None;
            self.put_off_nothing();
        }
        rests
    }

    /// The largest request that waits now and is not put off; 0: there is none.
    pub(crate) fn need(&self) -> u64 {
        let put_off = self.put_offs.smallest(Instant::now());
        let limit = put_off.map_or(u64::MAX, |put_off| put_off.need);
        self.waiting.most_below(limit)
    }

    /// Whether not even a single key can be had at the moment.
    pub(crate) fn is_all_put_off(&self) -> bool {
        self.put_offs.of(1, Instant::now()).is_some()
    }

    /// Requests that are too large wait, or fail where waiting does not help or not in time; smaller ones are not concerned.
    pub(crate) fn put_off(&self, put_off: PutOff) {
        self.figures.refill_failures.fetch_add(1, Ordering::Relaxed);
        let (need, failure) = (put_off.need, put_off.failure.clone());
        if self.put_offs.add(put_off) {
            warn!(source = self.name, cause = failure.cause().name(), need, %failure, "batch too large");
        } else {
            debug!(source = self.name, cause = failure.cause().name(), need, %failure, "batch too large");
        }
        self.answered.notify_waiters();
    }

    /// What was put off may be had.
    pub(crate) fn put_off_nothing(&self) {
        self.put_offs.clear();
    }

    /// When the task has to look again: at a time of its own, or when something is no longer put off.
    pub(crate) fn look_at(&self, own: Instant) -> Instant {
        self.put_offs.first_end().map_or(own, |end| end.min(own))
    }

    /// What was put off until now is not any more.
    pub(crate) fn end_put_offs(&self) {
        self.put_offs.expire(Instant::now());
    }

    /// There are keys again.
    pub(crate) fn succeeded(&self) {
        let before = self.trouble().take();
        if let Some(trouble) = before {
            if trouble.is_said {
                self.news.is_over(&trouble.failure);
            }
            match trouble.passes {
                true if trouble.was_said => info!(source = self.name, "keys are reserved again"),
                true => debug!(source = self.name, "keys are reserved again"),
                false => {}
            }
        }
        self.answered.notify_waiters();
    }

    /// Requests for so many fail; the refill itself stays asked for.
    pub(crate) fn failed(&self, failure: Failure, need: u64, outlook: Outlook) {
        self.figures.refill_failures.fetch_add(1, Ordering::Relaxed);
        {
            let mut trouble = self.trouble();
            let now = Instant::now();
            let old = trouble.as_ref();
            // The first one is news, its repetitions are not, nor what another source has said of the store.
            let is_repeated = old.is_some_and(|old| old.is_said && old.failure == failure);
            let is_news = !is_repeated && self.news.is_news(&failure, now);
            if is_news {
                warn!(source = self.name, cause = failure.cause().name(), %failure, "no keys can be reserved");
            } else {
                debug!(source = self.name, cause = failure.cause().name(), %failure, "still no keys");
            }
            *trouble = Some(Trouble {
                is_said: is_news || is_repeated,
                was_said: is_news || old.is_some_and(|old| old.was_said),
                since: old.map_or(now, |old| old.since),
                failure,
                need,
                passes: outlook == Outlook::MayPass,
            });
        }
        self.answered.notify_waiters();
    }

    /// Waits before the next attempt, unless the source is closed meanwhile.
    pub(crate) async fn pause(&self, ms: u64) {
        let end = Instant::now() + Duration::from_millis(ms);
        while !self.is_closed() && Instant::now() < end {
            let _ = timeout_at(end, self.wake.notified()).await;
        }
        // A wake-up that was swallowed here is made up for by looking at `asked` first.
    }

    /// No key is issued from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake.notify_one();
        self.answered.notify_waiters();
    }

    /// Returns when no key is issued any more.
    pub(crate) async fn closed(&self) {
        while !self.is_closed() {
            // A wake-up that is swallowed here is made up for as in `pause`.
            self.wake.notified().await;
        }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What keeps the source from refilling, or from serving large requests.
    pub(crate) fn last_failure(&self) -> Option<Failure> {
        let trouble = self
            .trouble()
            .as_ref()
            .map(|trouble| trouble.failure.clone());
        trouble.or_else(|| {
            let put_off = self.put_offs.smallest(Instant::now());
            put_off.map(|put_off| put_off.failure)
        })
    }

    /// The same where somebody may want keys: nobody else is concerned.
    pub(crate) fn failure_of_wanted(&self) -> Option<Failure> {
        self.last_failure().filter(|_| self.is_wanted())
    }
}
