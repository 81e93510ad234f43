//! What the file says when a program starts, until it is known whether that is used.

use std::sync::atomic::Ordering;

use tracing::warn;

use super::{Keeper, State, key};
use crate::kept::content::Content;
use crate::kept::disk::{Found, KeptFile};
use crate::kept::judge::{Here, Unusable, judge};
use crate::switch::state::Standing;

impl Keeper {
    /// Takes the file, and looks what is in it. A program that only looks at a store never does.
    pub(crate) fn begin(&self, configuration: &str, peer_wait_ms: u64) {
        let mut state = self.state();
        state.configuration = configuration.to_owned();
        state.peer_wait_ms = peer_wait_ms;
        state.found = Some(
            match KeptFile::open(&self.settings.path, self.settings.any_file_system) {
                Ok(file) => {
                    let found = file.read();
                    state.file = Some(file);
                    // Whatever keeps the ranges from being used: to have come so far is not undone.
                    if let Ok(Some(found)) = &found {
                        state.seen.learn(found);
                    }
                    found.and_then(|found| self.judged(&state, found.ok_or(Unusable::Nothing)?))
                }
                Err(why) => Err(why),
            },
        );
    }

    fn judged(&self, state: &State, found: Found) -> Result<Content, Unusable> {
        let here = Here {
            place: found.place,
            configuration: &state.configuration,
            changed_ms: found.changed_ms,
            boot_ms: self.clock.boot_ms(),
        };
        judge(&found.content, &here).map(|()| found.content)
    }

    /// The store does not answer: goes on with what was found. What was in force then.
    ///
    /// # Errors
    /// Why not; nothing of it is used then.
    pub(crate) fn start(&self) -> Result<Standing, Unusable> {
        let mut state = self.state();
        let found = state.found.take().unwrap_or(Err(Unusable::Superseded));
        let found = found.and_then(|content| match content.standing.clone() {
            Some(standing) => Ok((content, standing)),
            None => Err(Unusable::Switching),
        });
        let (content, standing) = match found {
            Ok(found) => found,
            Err(why) => {
                self.clear(&mut state);
                return Err(why);
            }
        };
        let in_force = standing.standing().clone();
        let ranges = content.ranges.into_iter();
        state.ranges = ranges
            .filter(|range| standing.has(range))
            .map(|range| (key(&range.tag, range.residue), range))
            .collect();
        state.standing = Some(standing);
        state.until_boot_ms = content.until_boot_ms;
        state.written_until_boot_ms = content.until_boot_ms;
        self.is_in_use.store(true, Ordering::Relaxed);
        let left_s = content
            .until_boot_ms
            .saturating_sub(self.clock.boot_ms().unwrap_or(0))
            / 1_000;
        let tags: Vec<&str> = state
            .ranges
            .keys()
            .map(|(tag, _, _)| tag.as_str())
            .collect();
        warn!(
            file = %self.settings.path.display(), ?tags, left_s,
            "the store does not answer: going on with ranges that were kept, until it answers, or others need not wait for this program any more"
        );
        Ok(in_force)
    }

    /// The store has answered: what was found is worthless.
    pub(crate) fn anew(&self) {
        let mut state = self.state();
        state.found = None;
        self.clear(&mut state);
    }
}
