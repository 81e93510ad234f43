//! Reads what is known of the servers' tables: once before rules come into force, and again every `schema_refresh_s` while they are.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use keywright_proxy::config::Config;
use keywright_proxy::metrics::Counters;
use keywright_proxy::tables::{self, Counting, Inspection, TableFacts};
use keywright_store::switch::{Heard, Switchboard};
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::check;
use super::unseen_ids::{self, UnseenIds};

/// How much later than the rules the fence comes where clients are connected, milliseconds: by then what they sent by the old rules
/// has reached the server.
const FENCE_LATER_MS: u64 = 1_000;

/// What is known of the servers behind all listeners, and the look that is under way.
pub(super) struct SchemaRefresh {
    config: Arc<Config>,
    counters: Arc<Counters>,
    board: Switchboard,
    /// By listener.
    known: Vec<Known>,
    unseen_ids: UnseenIds,
    /// SchemaRefresh at which there were connections that nobody reads.
    unread: u64,
    ticks: Interval,
    under_way: JoinSet<Refreshed>,
    /// How often tables had been changed when that began.
    began_at: u64,
}

/// What a look has found.
#[derive(Default)]
struct Refreshed {
    /// By listener; `None` where the server could not be asked.
    found: Vec<Option<Inspection>>,
    /// What went by the other programs; `None` where no rule observes, or not all is known.
    heard: Option<Heard>,
}

#[derive(Default)]
struct Known {
    seen: TableFacts,
    /// What was logged and still holds.
    reported: Vec<String>,
}

impl SchemaRefresh {
    /// SchemaRefresh at the tables of every listener, fails with all that forbids to go on, and applies fences if nothing does: `now`, or a
    /// little later, when clients that are connected go by the rules.
    pub(super) async fn begin(
        config: Arc<Config>,
        counters: Arc<Counters>,
        board: Switchboard,
        now: bool,
    ) -> Result<SchemaRefresh> {
        let began_at = counters.schema.defined();
        let mut looked = inspect_all(&config, false).await?;
        // A fence without the proxy's rule in force would only stop inserts.
        let lacks_fence = looked.iter().any(|found| found.unfenced > 0);
        if lacks_fence && now {
            looked = inspect_all(&config, true).await?;
        }
        // Before anybody is served the others know that there is one more.
        heard(&config, &counters, &board, 0).await;
        let listeners = config.listeners.iter().zip(looked);
        let known = listeners
            .map(|(listener, found)| {
                let mut known = Known::default();
                known.learn(&listener.bind, &found, &counters);
                known
            })
            .collect();
        counters.schema.note_look(began_at, true);
        let period = Duration::from_secs(config.schema_refresh_s);
        let first = match lacks_fence && !now {
            true => Duration::from_millis(FENCE_LATER_MS),
            false => period,
        };
        let mut ticks = interval_at(Instant::now() + first, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(SchemaRefresh {
            config,
            counters,
            board,
            known,
            unseen_ids: UnseenIds::default(),
            unread: 0,
            ticks,
            under_way: JoinSet::new(),
            began_at,
        })
    }

    /// SchemaRefresh by another configuration from now on, with the same listeners and rules.
    pub(super) fn follow(&mut self, config: Arc<Config>) {
        self.config = config;
        self.unseen_ids.forget();
    }

    /// What sessions must know, by listener.
    pub(super) fn seen(&self) -> Vec<TableFacts> {
        self.known.iter().map(|known| known.seen.clone()).collect()
    }

    /// SchemaRefresh when it is time; returns when something has changed that sessions must know. May be dropped while it waits.
    pub(super) async fn changed(&mut self) {
        loop {
            tokio::select! {
                _ = self.ticks.tick() => {
                    if self.under_way.is_empty() && !self.config.rules.is_empty() {
                        self.began_at = self.counters.schema.defined();
                        self.refresh();
                    }
                }
                Some(done) = self.under_way.join_next() => {
                    let before = self.seen();
                    // Who panicked has said so.
                    self.learn(done.unwrap_or_default());
                    let is_other = self.seen() != before;
                    self.counters.schema.note_look(self.began_at, is_other);
                    if is_other {
                        return;
                    }
                }
            }
        }
    }

    fn refresh(&mut self) {
        let has_unread = self.counters.traffic.unread() > 0;
        self.unread = self.unread.saturating_add(u64::from(has_unread));
        let (config, counters) = (Arc::clone(&self.config), Arc::clone(&self.counters));
        let look = inspect(config, counters, self.board.clone(), self.unread);
        self.under_way.spawn(look);
    }

    fn learn(&mut self, looked: Refreshed) {
        let Refreshed { found, heard } = looked;
        match heard {
            Some(heard) => self.learn_of_unseen_ids(&found, &heard),
            None => self.unseen_ids.forget(),
        }
        let listeners = self.config.listeners.iter().zip(&mut self.known);
        for ((listener, known), found) in listeners.zip(found) {
            if let Some(found) = found {
                known.learn(&listener.bind, &found, &self.counters);
            }
        }
    }

    fn learn_of_unseen_ids(&mut self, found: &[Option<Inspection>], heard: &Heard) {
        let found = found.iter().flatten();
        let countings: Vec<&Counting> = found.map(|found| &found.counting).collect();
        let (config, counters) = (&self.config, &self.counters);
        let own = unseen_ids::went_by(config, counters, self.unread);
        let output = self
            .unseen_ids
            .learn(config, &countings, &own, heard, counters);
        for unseen in output {
            tracing::warn!("{}", unseen.report);
            let board = self.board.clone();
            tokio::spawn(async move {
                if let Err(failure) = board.note_unseen(unseen).await {
                    tracing::warn!(%failure, "check will not know of these ids");
                }
            });
        }
    }
}

impl Known {
    fn learn(&mut self, listener: &str, found: &Inspection, counters: &Counters) {
        for left_out in &found.left_out {
            if !self.reported.contains(left_out) {
                tracing::error!(listener, "{left_out}");
            }
        }
        for warning in &found.warnings {
            if !self.reported.contains(warning) {
                tracing::warn!(listener, "{warning}");
            }
        }
        self.reported = [found.left_out.as_slice(), &found.warnings].concat();
        self.seen.clone_from(&found.seen);
        counters.fence_missing(listener, found.unfenced);
    }
}

/// What is found, by listener.
///
/// # Errors
/// All that forbids to go on.
async fn inspect_all(config: &Config, apply_fence: bool) -> Result<Vec<Inspection>> {
    let mut looked = Vec::new();
    let mut errors = Vec::new();
    for listener in &config.listeners {
        let found = check::inspect(config, listener, apply_fence).await;
        let of_listener = |error: &String| format!("{}: {error}", listener.bind);
        errors.extend(found.errors.iter().map(of_listener));
        looked.push(found);
    }
    errors.extend(tables::unmatched(config, &looked));
    if !errors.is_empty() {
        bail!(
            "{} problem(s) on the servers must be solved first:\n    {}",
            errors.len(),
            errors.join("\n    ")
        );
    }
    Ok(looked)
}

async fn inspect(
    config: Arc<Config>,
    counters: Arc<Counters>,
    board: Switchboard,
    unread: u64,
) -> Refreshed {
    let mut found = Vec::new();
    let mut is_all = true;
    for listener in &config.listeners {
        let Some(admin) = &listener.admin else {
            found.push(None);
            continue;
        };
        found.push(match tables::inspect_again(&config, admin, true).await {
            Ok(found) => Some(found),
            Err(error) => {
                counters.schema_refresh_failed();
                is_all = false;
                let listener = &listener.bind;
                tracing::warn!(
                    listener,
                    "the tables could not be looked at again: {error:#}"
                );
                None
            }
        });
    }
    // After the servers were read: what they have made has gone by before.
    let heard = heard(&config, &counters, &board, unread).await;
    Refreshed {
        found,
        heard: heard.filter(|_| is_all),
    }
}

/// Notes in the store what went by this program, and reads what went by the others.
async fn heard(
    config: &Arc<Config>,
    counters: &Arc<Counters>,
    board: &Switchboard,
    unread: u64,
) -> Option<Heard> {
    config.observing().next()?;
    let (config, counters) = (Arc::clone(config), Arc::clone(counters));
    let figures = move || unseen_ids::went_by(&config, &counters, unread);
    match board.note_native(figures).await {
        Ok(heard) => Some(heard),
        Err(failure) => {
            tracing::warn!(
                %failure,
                "what went by other programs is not known: nothing is said of ids that came by none"
            );
            None
        }
    }
}
