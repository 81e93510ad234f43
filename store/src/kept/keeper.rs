//! Who writes the file, and what it says now.

mod found;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keywright_core::Tag;
use keywright_core::hiding::Hiding;
use keywright_core::residue::Residue;
use tracing::{error, info, warn};

use super::content::{Content, KeptRange, KeptStanding, SeenBound, fingerprint};
use super::disk::{KeptFile, look};
use super::judge::Unusable;
use super::seen::SeenBounds;
use crate::clock::Clock;
use crate::switch::state::Standing;

/// Where ranges are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptSettings {
    /// Absolute.
    pub(crate) path: PathBuf,
    pub(crate) any_file_system: bool,
}

/// Keeps a part of what is reserved in a file.
#[derive(Debug)]
pub(crate) struct Keeper {
    settings: KeptSettings,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// The store was not heard of since the program has started on what was found. Changes under the lock of the state, under which the file is written: whoever
    /// only asks waits for neither.
    is_in_use: AtomicBool,
}

/// How much earlier than others go on nothing is given any more, milliseconds: what is published then is taken back within half of it.
const EARLIER_MS: u64 = 1_000;

type Key = (Tag, u64, u64);

#[derive(Debug, Default)]
struct State {
    configuration: String,
    /// How long others wait for this program, milliseconds.
    peer_wait_ms: u64,
    /// Nothing: it is not this program's, or not any more.
    file: Option<KeptFile>,
    /// It was given up, after a failure, or at the end.
    is_over: bool,
    /// After a failure it could not be erased, or it was left to the next start: it may say what it said before.
    is_left: bool,
    /// What was found in it, until it is known whether that is used.
    found: Option<Result<Content, Unusable>>,
    /// What was last said of why nothing is kept.
    told: Option<Unusable>,
    until_boot_ms: u64,
    /// As the file says it.
    written_until_boot_ms: u64,
    standing: Option<KeptStanding>,
    /// What the file may say.
    ranges: BTreeMap<Key, KeptRange>,
    /// How far tags had come, whatever became of their ranges.
    seen: SeenBounds,
}

fn key(tag: &Tag, residue: Residue) -> Key {
    (tag.clone(), residue.modulus(), residue.remainder())
}

impl Keeper {
    pub(crate) fn new(settings: KeptSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings,
            clock,
            state: Mutex::default(),
            is_in_use: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing could be kept, as far as that is seen without having the file.
    pub(crate) fn problem(&self) -> Option<String> {
        let KeptSettings {
            path,
            any_file_system,
        } = &self.settings;
        let why = look(path, *any_file_system).err()?;
        Some(format!(
            "no ranges can be kept in {}: {why}",
            path.display()
        ))
    }

    /// How far tags had come, by what was found and by what this program has seen.
    pub(crate) fn seen(&self) -> Vec<SeenBound> {
        self.state().seen.all().collect()
    }

    fn clear(&self, state: &mut State) {
        state.ranges.clear();
        state.standing = None;
        if state.file.is_some() {
            self.write(state);
        }
    }

    /// A range that was found, if ids are sent through the same permutation as then.
    pub(crate) fn range(
        &self,
        tag: &Tag,
        residue: Residue,
        hiding: Option<&Hiding>,
    ) -> Option<KeptRange> {
        let state = self.state();
        let range = state.ranges.get(&key(tag, residue)).cloned();
        let range = range.filter(|_| self.is_in_use())?;
        (range.hidden == fingerprint(hiding)).then_some(range)
    }

    /// Whether a part of what is reserved is kept.
    pub(crate) fn is_keeping(&self) -> bool {
        let state = self.state();
        state.file.is_some() && !state.is_over
    }

    /// Whether the program has started on what was kept, and the store was not heard of since. Waits for no file.
    pub(crate) fn is_in_use(&self) -> bool {
        self.is_in_use.load(Ordering::Relaxed)
    }

    /// Whether it is too late for what was kept: others need not wait for this program any more.
    pub(crate) fn is_late(&self) -> bool {
        let state = self.state();
        let now = self.clock.boot_ms();
        self.is_in_use() && now.is_none_or(|now| now >= state.until_boot_ms)
    }

    /// From now on the file says this of the range's tag, and nothing else of it. False: it may say this, or what it said before, and what
    /// either says is given to nobody.
    pub(crate) fn keep(&self, range: &KeptRange) -> bool {
        let mut state = self.state();
        state.seen.note_range(range);
        if state.file.is_none() || state.is_over {
            return false;
        }
        let key = key(&range.tag, range.residue);
        state.ranges.insert(key, range.clone());
        self.write(&mut state)
    }

    /// A tag has come so far, and the commit is known. The next write says it, whatever that is for; also one of a file that is taken later.
    pub(crate) fn saw(&self, tag: &Tag, key_space: &str, bound: u64) {
        self.state().seen.note(tag.as_str(), key_space, bound);
    }

    /// Writes how far tags have come, unless the file says it.
    pub(crate) fn say(&self) {
        let mut state = self.state();
        if state.seen.is_unsaid() && state.file.is_some() && !state.is_over {
            self.write(&mut state);
        }
    }

    /// From now on it says nothing of this tag. False: it may.
    pub(crate) fn forget(&self, tag: &Tag, residue: Residue) -> bool {
        let mut state = self.state();
        let key = key(tag, residue);
        if state.is_left {
            return false;
        }
        match state.ranges.remove(&key) {
            Some(_) => self.write(&mut state) || !state.is_left,
            None => true,
        }
    }

    /// From now on it says that this is in force; nothing: so that it is not used. False: it may say what it said before.
    pub(crate) fn stand(&self, standing: Option<&Standing>) -> bool {
        let standing = standing.and_then(KeptStanding::of);
        let mut state = self.state();
        if state.is_left {
            return false;
        }
        if state.standing == standing {
            return true;
        }
        state.standing = standing;
        // Whoever takes the file later says so in it at once.
        state.file.is_none() || self.write(&mut state) || !state.is_left
    }

    /// Another configuration is in force from now on.
    pub(crate) fn configure(&self, configuration: &str, peer_wait_ms: u64) {
        let mut state = self.state();
        state.peer_wait_ms = peer_wait_ms;
        if state.configuration != configuration {
            state.configuration = configuration.to_owned();
            if state.file.is_some() && !state.is_over {
                self.write(&mut state);
            }
        }
    }

    /// The store has heard of this program at that moment of `CLOCK_BOOTTIME` or later: for so long nobody goes on without it.
    pub(crate) fn heard(&self, boot_ms: u64) {
        let mut state = self.state();
        if self.is_in_use.swap(false, Ordering::Relaxed) {
            info!("the store answers again: what it gives comes behind what was kept");
        }
        let wait_ms = state.peer_wait_ms.saturating_sub(EARLIER_MS);
        state.until_boot_ms = boot_ms.saturating_add(wait_ms);
        // Not at each beat: a file that says a little less is used a little shorter.
        let gained = state.until_boot_ms.abs_diff(state.written_until_boot_ms);
        if gained >= state.peer_wait_ms / 8
            && state.file.is_some()
            && !state.is_over
            && !state.ranges.is_empty()
        {
            self.write(&mut state);
        }
    }

    /// Takes the file, where another program had it. What that one has kept it will not need any more; how far tags had come by it stays.
    /// True: this has taken it.
    pub(crate) fn look_again(&self) -> bool {
        let mut state = self.state();
        if state.file.is_some() || state.is_over || state.found.is_some() {
            return false;
        }
        let path = self.settings.path.display();
        match KeptFile::open(&self.settings.path, self.settings.any_file_system) {
            Ok(file) => {
                match file.read() {
                    Ok(Some(found)) => state.seen.learn(&found),
                    Ok(None) => {}
                    Err(why) => {
                        warn!(file = %path, "what the file said of how far tags had come is lost: {why}");
                    }
                }
                state.file = Some(file);
                state.told = None;
                info!(file = %path, "ranges are kept");
                self.write(&mut state);
                true
            }
            Err(why) => {
                if state.told.as_ref() != Some(&why) {
                    warn!(file = %path, "no ranges are kept: {why}");
                    state.told = Some(why);
                }
                false
            }
        }
    }

    /// The program ends: erases the ranges that the file says. False: they may be there.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.state();
        state.is_over = true;
        state.found = None;
        if state.file.is_some() {
            self.clear(&mut state);
            // Whoever starts next may have it.
            state.file = None;
        }
        !state.is_left
    }

    /// The program ends, and whoever starts next may go on with what the file says: that is not changed any more. True: it says nothing.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.state();
        state.is_over = true;
        state.found = None;
        if state.file.take().is_some() && !state.ranges.is_empty() {
            // Nobody is given any of it here.
            state.is_left = true;
            info!(file = %self.settings.path.display(), "the store does not answer: what is kept stays in the file, for the next start");
        }
        !state.is_left
    }

    /// Writes all of it. After a failure it is erased, and nothing is kept any more.
    fn write(&self, state: &mut State) -> bool {
        let Some(mut file) = state.file.take() else {
            return false;
        };
        let written = file.write(
            || self.clock.wall_ms(),
            |place, written_ms| Content {
                place,
                configuration: state.configuration.clone(),
                written_ms,
                until_boot_ms: state.until_boot_ms,
                standing: state.standing.clone(),
                ranges: state.ranges.values().cloned().collect(),
                seen: state.seen.beside(state.ranges.values()),
            },
        );
        match written {
            Ok(()) => {
                state.written_until_boot_ms = state.until_boot_ms;
                state.seen.said();
                state.file = Some(file);
                true
            }
            Err(why) => {
                let path = self.settings.path.display();
                state.is_over = true;
                state.ranges.clear();
                state.standing = None;
                match file.erase() {
                    Ok(()) => {
                        error!(file = %path, "no ranges are kept any more, until the next start: {why}");
                    }
                    Err(error) => {
                        state.is_left = true;
                        error!(
                            file = %path,
                            "no ranges are kept any more, until the next start: {why}; and it cannot be erased, so what it says is lost: {error}"
                        );
                    }
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use super::{Keeper, KeptSettings};
    use crate::clock::SystemClock;

    /// Threads that serve clients ask for it, and the disk may stall.
    #[test]
    fn whether_what_was_kept_is_in_use_is_told_while_the_file_is_written() {
        let settings = KeptSettings {
            path: PathBuf::from("/nowhere/ranges"),
            any_file_system: true,
        };
        let keeper = Keeper::new(settings, Arc::new(SystemClock));
        let keeper = &keeper;
        let writing = keeper.state();
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || tell.send(keeper.is_in_use()));
            let is_in_use = told.recv_timeout(Duration::from_secs(30));
            drop(writing);
            assert_eq!(is_in_use, Ok(false));
        });
    }
}
