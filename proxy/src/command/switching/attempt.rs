//! An attempt begins: what the configuration wants anew is to be switched, and what is not in force on all servers is repeated.

use std::time::Duration;

use anyhow::{Result, bail};
use keywright_store::switch::{Change, Peer, Phase, RuleName, Standing, WantedKeys, missing};
use tokio::time::Instant;

use super::trouble::Progress;
use super::{RETRY_MS, Switching, failed};
use crate::command::wanted::{in_force, is_news, one_of_groups, repeated, tell_repeated, wanted};

/// How long is paused after an attempt that was given up, milliseconds at most: twice as long each time.
const RETRY_MS_MAX: u64 = 60_000;

impl Switching {
    /// Begins to switch what the configuration wants anew.
    pub(super) async fn begin(&mut self, standing: &Standing) -> Result<Progress> {
        if standing.phase != Phase::None {
            return Ok(Progress::Busy);
        }
        self.compared = self.conductor.connections().version();
        let mut changes = self.changes(standing).await?;
        self.is_left_to_others = false;
        // One attempt goes one way.
        let goes_on = changes.iter().any(|change| change.to.is_some());
        changes.retain(|change| change.to.is_some() == goes_on);
        if changes.is_empty() {
            self.is_due = false;
            // What comes next, a failover for instance, does not pay for what was in the way before.
            (self.tries, self.rules_left, self.retry_ms) = (0, 0, RETRY_MS);
            return Ok(Progress::Settled);
        }
        if !self.conductor.can_lead() {
            (self.is_due, self.is_left_to_others) = (false, true);
            bail!(
                "this program switches no tables, since a listener has no admin url: they stay as they are until another program does"
            );
        }
        if let Some(Peer { holder, .. }) = missing(self.config.peer_wait_ms(), standing) {
            self.fence_ahead().await?;
            bail!(
                "tables are not switched yet: {holder} is not heard of, and may come back until it was silent for {} s",
                self.config.switch_peer_wait_s
            );
        }
        if changes.len() < self.rules_left {
            self.retry_ms = RETRY_MS;
        }
        self.rules_left = changes.len();
        // What is in the way of some rules is not to keep the others back.
        if let Some(turn) = self.tries.checked_sub(1) {
            changes = one_of_groups(changes, turn);
        }
        self.tries = self.tries.saturating_add(1);
        self.repeats = changes.iter().any(|change| change.from == change.to);
        // If it is given up; the next follows later and later.
        self.next_try = Instant::now() + Duration::from_millis(self.retry_ms);
        self.retry_ms = self.retry_ms.saturating_mul(2).min(RETRY_MS_MAX);
        self.conductor.begin(&changes).await?;
        self.is_idle = false;
        Ok(Progress::Busy)
    }

    /// What is to be switched, as the configuration wants it anew, and what is to be repeated.
    async fn changes(&mut self, standing: &Standing) -> Result<Vec<Change>> {
        let all = self.board.all_wanted().await.map_err(failed)?;
        let mut changes = Vec::new();
        let on_unknown_servers = self.conductor.on_unknown_servers(standing).await;
        let are_known = on_unknown_servers.is_empty() && !self.conductor.has_of_others();
        self.tell_kept_back(are_known);
        let all_wanted: Vec<WantedKeys> = self.config.rules.iter().filter_map(wanted).collect();
        for wanted in all_wanted {
            let from = in_force(standing, &wanted.rule);
            if from == wanted.keys {
                changes.extend(repeated(&wanted.rule, from, &on_unknown_servers));
            } else if self.changed.contains(&wanted.rule)
                || is_news((&self.place, &wanted), from.as_ref(), &all)
            {
                changes.push(Change {
                    rule: wanted.rule,
                    from,
                    to: wanted.keys,
                });
            } else {
                self.say_others(&wanted, from.as_ref());
                changes.extend(repeated(&wanted.rule, from, &on_unknown_servers));
            }
        }
        let is_repeated = |rule: &RuleName| {
            let mut changes = changes.iter();
            changes.any(|change| change.rule == *rule && change.from == change.to)
        };
        let mut now = on_unknown_servers;
        now.retain(is_repeated);
        tell_repeated(now, &mut self.told_repeated);
        Ok(changes)
    }
}
