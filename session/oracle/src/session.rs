//! Both sessions, called one after the other.

use std::sync::Arc;

use keywright_core::KeyBatch;

use crate::budget::Shared;
use crate::compare::{Shown, same};
use crate::convert;
use crate::rules::Rules;
use crate::{
    Budget, Event, KeyFailure, List, Listing, Rest, Room, RulesUpdate, SessionFacts, Step,
};

/// A session up to November 2026 had itself asked once more so, where one answers at once since.
const AGAIN: before::Step = before::Step::Consumed(0);

/// Both sessions of one connection.
pub struct Session {
    before: before::Session,
    now: now::Session,
    rules: Arc<Rules>,
    budget: Option<Shared>,
    up: Vec<u8>,
    down: Vec<u8>,
    events: Vec<Event>,
}

impl Session {
    /// As that of one.
    pub fn new(rules: Arc<Rules>, facts: SessionFacts) -> Self {
        let before = before::Session::new(Arc::clone(&rules.before), convert::facts(&facts));
        let now = now::Session::new(Arc::clone(&rules.now), facts);
        Self {
            before,
            now,
            rules,
            budget: None,
            up: Vec::new(),
            down: Vec::new(),
            events: Vec::new(),
        }
    }

    /// As that of one.
    #[must_use]
    pub fn must_see_change_user(self) -> Self {
        Self {
            before: self.before.must_see_change_user(),
            now: self.now.must_see_change_user(),
            ..self
        }
    }

    /// As that of one.
    #[must_use]
    pub fn with_budget(self, budget: Arc<dyn Budget>) -> Self {
        let budget = Shared::new(budget);
        Self {
            before: self.before.with_budget(Arc::new(budget.clone())),
            now: self.now.with_budget(Arc::new(budget.clone())),
            budget: Some(budget),
            ..self
        }
    }

    /// Both have done the same. What they say is the pair's.
    fn settle(&mut self) {
        let (before, now) = (self.before.to_upstream(), self.now.to_upstream());
        same("what the server gets", Shown(before), Shown(now));
        before.clear();
        self.up.append(now);
        let (before, now) = (self.before.to_client(), self.now.to_client());
        same("what the client gets", Shown(before), Shown(now));
        before.clear();
        self.down.append(now);
        let (before, now) = (self.before.events(), self.now.events());
        if !before.is_empty() || !now.is_empty() {
            let before: Vec<_> = before.drain(..).map(convert::event).collect();
            let now = std::mem::take(now);
            self.events.extend(same("what happened", before, now));
        }
        self.rules.compare();
        if let Some(budget) = &self.budget {
            budget.compare();
        }
        self.is_between_commands();
        self.is_at_fence();
        self.is_passthrough();
        self.version();
        self.rest();
        self.shown();
    }

    /// Both have answered.
    fn answered(&mut self, before: before::Step, now: Step) -> Step {
        let step = same("the step", convert::step(before), now);
        self.settle();
        step
    }

    /// As that of one.
    pub fn on_client(&mut self, bytes: &[u8]) -> Step {
        let now = self.now.on_client(bytes);
        let mut before = self.before.on_client(bytes);
        while before == AGAIN {
            before = self.before.on_client(bytes);
        }
        self.answered(before, now)
    }

    /// As that of one.
    pub fn on_client_in_place(&mut self, bytes: &mut impl Room) -> Step {
        let mut of_before = bytes.there().to_vec();
        let now = self.now.on_client_in_place(bytes);
        let mut before = self.before.on_client_in_place(&mut of_before);
        while before == AGAIN {
            before = self.before.on_client_in_place(&mut of_before);
        }
        same(
            "what lies in the buffer",
            Shown(&of_before),
            Shown(bytes.there()),
        );
        self.answered(before, now)
    }

    /// As that of one. Sessions up to November 2026 did not say it.
    pub fn needs_client_bytes(&self) -> bool {
        self.now.needs_client_bytes()
    }

    /// As that of one.
    pub fn on_upstream(&mut self, bytes: &[u8]) -> Step {
        let now = self.now.on_upstream(bytes);
        let before = self.before.on_upstream(bytes);
        self.answered(before, now)
    }

    /// As that of one.
    pub fn on_keys(&mut self, keys: Result<KeyBatch, KeyFailure>) {
        self.before.on_keys(convert::keys(&keys));
        self.now.on_keys(keys);
        self.settle();
    }

    /// As that of one.
    pub fn memory_full(&mut self) {
        self.before.memory_full();
        self.now.memory_full();
        self.settle();
    }

    /// As that of one.
    pub fn release(&mut self) {
        self.now.release();
        self.before.release();
        self.settle();
    }

    /// As that of one.
    pub fn reset(&mut self, facts: SessionFacts) {
        self.before.reset(convert::facts(&facts));
        self.now.reset(facts);
        self.settle();
    }

    /// As that of one.
    pub fn refused(&mut self) {
        self.before.refused();
        self.now.refused();
        self.settle();
    }

    /// As that of one.
    pub fn ask_whether_open(&mut self) -> bool {
        let now = self.now.ask_whether_open();
        let before = self.before.ask_whether_open();
        self.settle();
        same("whether there is something to ask", before, now)
    }

    /// Of the one that stands: the other may not have it.
    pub fn awaited_answer(&self) -> Option<u64> {
        self.now.awaited_answer()
    }

    /// Of the one that stands: the other may not have it.
    pub fn still_awaits(&self) -> Option<u64> {
        self.now.still_awaits()
    }

    /// As that of one.
    pub fn on_waited(&mut self) {
        self.before.on_waited();
        self.now.on_waited();
        self.settle();
    }

    /// As that of one. Sessions up to November 2026 were not told why.
    pub fn on_waited_for(&mut self, failure: KeyFailure) {
        self.before.on_waited();
        self.now.on_waited_for(failure);
        self.settle();
    }

    /// As that of one.
    pub fn update_rules(&mut self, rules: &Arc<Rules>) -> RulesUpdate {
        let now = self.now.update_rules(&rules.now);
        let before = convert::update(self.before.update_rules(&rules.before));
        let update = same("whether rules are taken", before, now);
        if update == RulesUpdate::Taken {
            self.rules = Arc::clone(rules);
        }
        self.settle();
        update
    }

    /// As that of one.
    pub fn tell_stopping(&mut self) {
        self.now.tell_stopping();
        self.before.tell_stopping();
        self.settle();
    }

    /// As that of one.
    pub fn tell_outdated(&mut self) {
        self.now.tell_outdated();
        self.before.tell_outdated();
        self.settle();
    }

    /// As that of one.
    pub fn allow_status(&mut self, is_allowed: bool) {
        self.before.allow_status(is_allowed);
        self.now.allow_status(is_allowed);
    }

    /// As that of one.
    pub fn show(&mut self, list: &List) {
        self.before.show(&convert::list(list));
        self.now.show(list);
        self.settle();
    }

    /// As that of one.
    pub fn shown(&self) -> Option<Listing> {
        let before = self.before.shown().map(convert::listing);
        same("what is listed", before, self.now.shown())
    }

    /// What both have said to the upstream.
    pub fn to_upstream(&mut self) -> &mut Vec<u8> {
        &mut self.up
    }

    /// What both have said to the client.
    pub fn to_client(&mut self) -> &mut Vec<u8> {
        &mut self.down
    }

    /// What happened with both.
    pub fn events(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    /// As that of one.
    pub fn is_between_commands(&self) -> bool {
        let (before, now) = (
            self.before.is_between_commands(),
            self.now.is_between_commands(),
        );
        same("whether a command is under way", before, now)
    }

    /// As that of one.
    pub fn is_at_fence(&self) -> bool {
        let (before, now) = (self.before.is_at_fence(), self.now.is_at_fence());
        same("whether a command is at the fence", before, now)
    }

    /// Of the one that stands: sessions before November 2026 did not say so.
    pub fn is_under_way(&self) -> bool {
        self.now.is_under_way()
    }

    /// Of the one that stands: sessions before November 2026 did not say so.
    pub fn holds_up(&self, rules: &Rules) -> bool {
        self.now.holds_up(&rules.now)
    }

    /// As that of one.
    pub fn is_passthrough(&self) -> bool {
        let (before, now) = (self.before.is_passthrough(), self.now.is_passthrough());
        same("whether it is a passthrough", before, now)
    }

    /// As that of one.
    pub fn version(&self) -> u64 {
        same("version", self.before.version(), self.now.version())
    }

    /// As that of one.
    pub fn rest(&self) -> Rest {
        let now = self.now.rest();
        // Up to November 2026 others than passthroughs said something too, which nobody asked for.
        match self.is_passthrough() {
            true => same("what is under way", convert::rest(self.before.rest()), now),
            false => now,
        }
    }
}
