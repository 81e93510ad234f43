//! Ranges that are kept in a local file, for the next start.

use std::sync::{Arc, Weak};
use std::time::Duration;

use keywright_core::Tag;
use tracing::error;

use super::{Inner, Keys};
use crate::kept::keeper::Keeper;
use crate::switch::state::Standing;

/// How often is looked whether the file can be had, and whether it is too late for what was kept, milliseconds.
const LOOK_MS: u64 = 500;

impl Keys {
    /// Keeps a part of what is reserved from now on, where the settings name a file, and takes what is in it. To be asked before the first source.
    /// `configuration` tells configurations apart; others wait so long for a program that is silent, milliseconds.
    pub fn keep_ranges(&self, configuration: &str, peer_wait_ms: u64) {
        if let Some(keeper) = &self.0.keeper {
            keeper.begin(configuration, peer_wait_ms);
            note_seen(&self.0, keeper);
            self.0.runtime.spawn(look(Arc::downgrade(&self.0)));
        }
    }

    /// The store does not say what is in force: what was in force when the ranges were kept with which the program goes on. Nothing: there are
    /// none that may be used, and the log says why.
    pub fn start_on_kept_ranges(&self) -> Option<Standing> {
        match self.0.keeper.as_ref()?.start() {
            Ok(standing) => Some(standing),
            Err(why) => {
                error!("the store does not answer, and no kept ranges are used: {why}");
                None
            }
        }
    }

    /// The store says what is in force: whatever was kept before is not used.
    pub fn drop_kept_ranges(&self) {
        if let Some(keeper) = &self.0.keeper {
            keeper.anew();
        }
    }

    /// Another configuration is in force.
    pub fn keep_ranges_by(&self, configuration: &str, peer_wait_ms: u64) {
        if let Some(keeper) = &self.0.keeper {
            keeper.configure(configuration, peer_wait_ms);
        }
    }

    /// What is in force, for the next start; nothing: it must not go by it. False: it may.
    pub fn keep_standing(&self, standing: Option<&Standing>) -> bool {
        let keeper = self.0.keeper.as_ref();
        keeper.is_none_or(|keeper| keeper.stand(standing))
    }

    /// Erases what is kept. False: it may be there, and must not be handed back.
    pub fn stop_keeping(&self) -> bool {
        self.0.keeper.as_ref().is_none_or(|keeper| keeper.end())
    }

    /// The program ends while its store is away: what is kept stays in the file, and is not handed back. True: nothing is kept.
    pub fn leave_kept_ranges(&self) -> bool {
        self.0.keeper.as_ref().is_none_or(|keeper| keeper.leave())
    }

    /// Whether the program has started on kept ranges, and the store was not heard of since; nothing where none are kept.
    pub fn is_on_kept_ranges(&self) -> Option<bool> {
        let keeper = self.0.keeper.as_ref()?;
        Some(keeper.is_in_use())
    }

    /// A moment of `CLOCK_BOOTTIME`, milliseconds, from which on the store may hear of the program.
    pub(crate) fn boot_ms(&self) -> Option<u64> {
        self.0.clock.boot_ms()
    }

    /// The store has heard of the program since that moment.
    pub(crate) fn heard(&self, since_boot_ms: Option<u64>) {
        if let (Some(keeper), Some(boot_ms)) = (&self.0.keeper, since_boot_ms) {
            keeper.heard(boot_ms);
        }
    }
}

/// Until nobody has the store any more.
async fn look(keys: Weak<Inner>) {
    let mut was_late = false;
    loop {
        tokio::time::sleep(Duration::from_millis(LOOK_MS)).await;
        let Some(inner) = keys.upgrade() else {
            return;
        };
        let Some(keeper) = &inner.keeper else {
            return;
        };
        if keeper.look_again() {
            note_seen(&inner, keeper);
        }
        if keeper.is_late() {
            if !was_late {
                error!(
                    "what was kept is not given any more: the store does not answer, and others need not wait for this program (switch_peer_wait_s)"
                );
            }
            give_up(&inner);
            was_late = true;
        }
    }
}

/// How far tags had come by the file: a store that says less has gone back.
fn note_seen(inner: &Inner, keeper: &Keeper) {
    for seen in keeper.seen() {
        if let Ok(tag) = Tag::parse(&seen.tag) {
            let bound = (seen.key_space, seen.bound);
            inner.store.note_bound(&tag, bound);
        }
    }
}

fn give_up(inner: &Arc<Inner>) {
    let keys = Keys(Arc::clone(inner));
    let segments: Vec<_> = keys.sources().segments.values().cloned().collect();
    segments.iter().for_each(|supply| supply.expire());
}
