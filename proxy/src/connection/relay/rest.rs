//! A connection on which there is nothing to pass: memory is given back, a newer snapshot is taken, and statements wait for them.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use keywright_session::RulesUpdate;
use tokio::task::unconstrained;
use tokio::time::{Instant, timeout_at};

use super::{Activity, Halt, IDLE_MS, Relay};
use crate::in_force::updates::ConfigUpdates;
use crate::schema::new_tables::ANSWER_MS_MAX;

/// After so long a statement that waits for what the server says of its table looks whether anybody still asks, milliseconds: a question may end without an
/// answer.
const LOOK_MS: u64 = 500;
/// How long a native INSERT that the server has refused at the fence waits for news of the switch, milliseconds: altogether, if it is sent again and
/// refused again.
const AT_FENCE_MS_MAX: u64 = 3_000;

impl Relay {
    /// What is done when there is nothing to do.
    pub(super) fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<Halt> {
        self.client.input.lend();
        self.upstream.input.lend();
        while self.activity != Activity::Resting && self.poll_idle(context) {
            match self.activity {
                Activity::Active => {
                    self.activity = Activity::Fading;
                    let next = Instant::now() + Duration::from_millis(IDLE_MS);
                    self.idle.as_mut().reset(next);
                }
                Activity::Fading | Activity::Resting => {
                    self.activity = Activity::Resting;
                    self.is_at_rest = self.is_quiet();
                    self.client.release();
                    self.upstream.release();
                    self.session.release();
                    self.keep_alive();
                }
            }
        }
        if self.stopping.poll(context) && self.is_between_commands() {
            return Poll::Ready(Halt::Stopping);
        }
        if self.cannot_follow(context) {
            return Poll::Ready(Halt::Outdated);
        }
        if self.is_idle() && self.session.ask_whether_open() {
            self.upstream
                .take_own(&mut self.client, self.session.to_upstream());
            self.is_due = true;
        }
        Poll::Pending
    }

    /// Has a server that says nothing asked whether it is there. Of the client's side that is set where it came in; here not before the
    /// connection rests, or a login waits without a limit, since most that end sooner need no call for it.
    pub(super) fn keep_alive(&mut self) {
        if !self.is_kept_alive {
            self.is_kept_alive = true;
            let set = self.upstream.stream.keep_alive(self.context.keepalive_s);
            if let Err(error) = set {
                self.span
                    .in_scope(|| tracing::debug!(%error, "setting keepalive"));
            }
        }
    }

    /// Takes newer rules if it can now; whether the connection must end, since it cannot.
    fn cannot_follow(&mut self, context: &mut Context<'_>) -> bool {
        let is_idle = self.is_idle();
        let updates = self.updates.as_mut();
        let is_due = updates.is_some_and(|updates| updates.poll(context));
        self.note_under_way(is_due);
        if !is_due || !is_idle {
            return false;
        }
        let Some(updates) = &mut self.updates else {
            return false;
        };
        if updates.is_passthrough() {
            return updates.poll_end(self.session.rest(), context);
        }
        match self.follow() {
            RulesUpdate::Taken | RulesUpdate::AfterTransaction => {
                self.updates.as_mut().map(ConfigUpdates::done);
                false
            }
            RulesUpdate::AfterCommand => false,
            RulesUpdate::Impossible => self.session.is_between_commands(),
        }
    }

    /// Where others wait for what is under way here, they are told since when it is. `is_due`: there may be newer rules, and these say whether they
    /// wait.
    fn note_under_way(&mut self, is_due: bool) {
        let since = match self.session.is_under_way() {
            true => Some(self.under_way_since.unwrap_or_else(Instant::now)),
            false => None,
        };
        self.under_way_since = since;
        if !is_due && !self.is_waited_for {
            return;
        }
        let (Some(updates), Some(entered)) = (&self.updates, &self.context.entered) else {
            return;
        };
        let rules = updates.rules(&updates.snapshot());
        self.is_waited_for = rules.is_some_and(|rules| self.session.holds_up(&rules));
        let since = since.filter(|_| self.is_waited_for);
        entered.is_waited_for(since.map(Instant::into_std));
    }

    /// Takes the newest rules, if it can.
    pub(super) fn follow(&mut self) -> RulesUpdate {
        let Some(updates) = &self.updates else {
            return RulesUpdate::Taken;
        };
        let snapshot = updates.snapshot();
        let Some(rules) = updates.rules(&snapshot) else {
            return RulesUpdate::Impossible;
        };
        let update = self.session.update_rules(&rules);
        if update == RulesUpdate::Taken {
            self.context.tally.note(self.session.events());
            self.context.sources = snapshot.sources();
            self.context.logged = Arc::clone(&snapshot.logged);
            self.context.tally = snapshot.tally();
            if let Some(entered) = &self.context.entered {
                entered.follows(Some(self.session.version()));
            }
        }
        update
    }

    /// A statement waits for newer rules, or for what the server says of its table; false if the connection cannot go on, or its client has ended.
    pub(super) async fn wait(&mut self) -> bool {
        if let Some(answers) = self.session.awaited_answer() {
            return self.wait_for_answer(answers).await;
        }
        let before = self.session.version();
        let can_go_on = match self.follow() {
            RulesUpdate::Taken => self.session.version() != before,
            // What the fence has refused waits for more than that.
            RulesUpdate::AfterTransaction => !self.session.is_at_fence(),
            RulesUpdate::AfterCommand | RulesUpdate::Impossible => {
                self.tell_outdated();
                return false;
            }
        };
        let Some(updates) = self.updates.as_ref().filter(|_| !can_go_on) else {
            return true;
        };
        let waits = &mut self.waits;
        let (limit, until) = match self.session.is_at_fence() {
            true => {
                let limit = updates.held_ms_max().min(AT_FENCE_MS_MAX);
                (limit, &mut waits.at_fence)
            }
            false => (updates.held_ms_max(), &mut waits.for_rules),
        };
        let limit = Duration::from_millis(limit);
        let until = *until.get_or_insert(Instant::now() + limit);
        let other = timeout_at(until, updates.wait_for(before));
        let Some(other) = self.client.stream.while_there(other).await else {
            return false;
        };
        if other.is_err() {
            self.waits.for_rules = None;
            let updates = self.updates.as_ref();
            match updates.and_then(ConfigUpdates::store_unheard) {
                Some(failure) => self.session.on_waited_for(failure),
                None => self.session.on_waited(),
            }
        }
        true
    }

    /// A statement's table is new, and the program asks its server about it. Answers about others are no reason to look at the whole statement, nor to wait
    /// for longer. False: its client has ended.
    async fn wait_for_answer(&mut self, answers: u64) -> bool {
        let limit = Duration::from_millis(ANSWER_MS_MAX);
        let until = *self.waits.for_answer.get_or_insert(Instant::now() + limit);
        let mut answers = answers;
        loop {
            let now = Instant::now();
            if now >= until {
                self.waits.for_answer = None;
                self.session.on_waited();
                return true;
            }
            let look_at = until.min(now + Duration::from_millis(LOOK_MS));
            // With another answer or without: it is the session that knows.
            let answered = timeout_at(look_at, self.context.new_tables.answered(answers));
            if self.client.stream.while_there(answered).await.is_none() {
                return false;
            }
            match self.session.still_awaits() {
                Some(more) => answers = more,
                None => return true,
            }
        }
    }

    /// The client is told that the connection ends, since it cannot follow the rules that are in force.
    pub(super) fn tell_outdated(&mut self) {
        self.session.tell_outdated();
        self.client
            .take_own(&mut self.upstream, self.session.to_client());
    }

    /// Whether the timer has fired; if not, the task is woken when it does.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> bool {
        if self.is_idle_set && !self.idle.is_elapsed() {
            return false;
        }
        // A task that has used its turn up is to wait for it all the same.
        let wait = std::pin::pin!(unconstrained(self.idle.as_mut()));
        let has_fired = wait.poll(context).is_ready();
        self.is_idle_set = !has_fired;
        has_fired
    }

    /// Whether no command is under way and nothing waits to be sent.
    fn is_between_commands(&self) -> bool {
        self.session.is_between_commands() && self.is_idle()
    }

    /// Whether nothing has come of the client that is still to be looked at, and nothing waits to be sent.
    fn is_idle(&self) -> bool {
        self.client.input.there().is_empty() && self.is_quiet()
    }

    /// Whether nothing waits to be sent.
    pub(super) fn is_quiet(&self) -> bool {
        self.pending() == (false, false)
    }
}
