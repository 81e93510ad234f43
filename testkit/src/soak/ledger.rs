//! Every id that a client saw, kept as runs: batches are mostly consecutive, so a hundred million ids are some ten thousand
//! runs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Consecutive ids of one draw; its first is the key it is kept under.
#[derive(Debug, Clone, Copy)]
struct Run {
    last: i64,
    /// Place in the list of draws.
    draw: usize,
}

/// One statement that returned ids.
#[derive(Debug, Clone)]
pub struct Draw {
    /// Which connection, counted from the soak's start.
    pub session: u32,
    /// What it asked for, and where.
    pub what: String,
    /// The events under way when it was sent and when the ids had come, by number.
    events: (usize, usize),
    /// When the ids had come, since the soak's start.
    at: Duration,
}

/// An id that two clients saw, or one client twice.
#[derive(Debug, Clone)]
pub struct Repeated {
    /// The key space.
    pub space: String,
    /// The smallest such id.
    pub id: i64,
    /// Who saw it first, and who again.
    pub draws: [Draw; 2],
    /// What happened from the first draw's start to the second's end.
    pub between: Vec<String>,
}

/// What was drawn, by key space.
#[derive(Debug)]
pub struct Ledger {
    started: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    spaces: BTreeMap<String, BTreeMap<i64, Run>>,
    draws: Vec<Draw>,
    events: Vec<String>,
    ids: u64,
    repeated: Option<Repeated>,
}

/// A draw that is under way.
#[derive(Debug, Clone, Copy)]
pub struct Began(usize);

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger {
            started: Instant::now(),
            inner: Mutex::default(),
        }
    }
}

impl Ledger {
    /// Notes what happens next.
    pub fn event(&self, what: String) {
        let mut inner = self.lock();
        inner.events.push(what);
    }

    /// To be called before a statement is sent.
    pub fn begin(&self) -> Began {
        Began(self.lock().events.len())
    }

    /// Adds what a statement returned, in any order.
    pub fn record(&self, space: &str, session: u32, what: &str, began: Began, ids: &[i64]) {
        if ids.is_empty() {
            return;
        }
        let runs = runs_of(ids);
        let mut inner = self.lock();
        let inner = &mut *inner;
        let draw = Draw {
            session,
            what: what.to_owned(),
            events: (began.0, inner.events.len()),
            at: self.started.elapsed(),
        };
        inner.draws.push(draw);
        inner.ids += ids.len() as u64;
        for (first, last) in runs {
            inner.insert(space, first, last);
        }
    }

    /// Lets a copy's key space begin with all that its original has.
    pub fn fork(&self, from: &str, to: &str) {
        let mut inner = self.lock();
        let copy = inner.spaces.get(from).cloned().unwrap_or_default();
        inner.spaces.insert(to.to_owned(), copy);
    }

    /// Who saw an id.
    pub fn draw_of(&self, space: &str, id: i64) -> Option<Draw> {
        let inner = self.lock();
        let (_, run) = inner.spaces.get(space)?.range(..=id).next_back()?;
        (run.last >= id).then(|| inner.draws.get(run.draw).cloned())?
    }

    /// The largest id of a key space.
    pub fn highest(&self, space: &str) -> Option<i64> {
        let inner = self.lock();
        inner.spaces.get(space)?.values().map(|run| run.last).max()
    }

    /// How many ids there are.
    pub fn ids(&self) -> u64 {
        self.lock().ids
    }

    /// The first id that was seen twice.
    pub fn repeated(&self) -> Option<Repeated> {
        self.lock().repeated.clone()
    }

    /// How many runs all ids are kept as.
    pub fn runs(&self) -> usize {
        self.lock().spaces.values().map(BTreeMap::len).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Adds a run of the latest draw.
    fn insert(&mut self, space: &str, first: i64, last: i64) {
        let draw = self.draws.len() - 1;
        if !self.spaces.contains_key(space) {
            self.spaces.insert(space.to_owned(), BTreeMap::new());
        }
        let Some(runs) = self.spaces.get_mut(space) else {
            return;
        };
        // Those that are there do not overlap, so the one that begins last at or below our end reaches furthest.
        let before = runs.range(..=last).next_back();
        if let Some((&begin, run)) = before
            && run.last >= first
        {
            let (id, earlier) = (first.max(begin), run.draw);
            self.repeat(space, id, [earlier, draw]);
            return;
        }
        runs.insert(first, Run { last, draw });
    }

    fn repeat(&mut self, space: &str, id: i64, draws: [usize; 2]) {
        if self.repeated.is_some() {
            return;
        }
        let [earlier, later] = draws.map(|draw| self.draws[draw].clone());
        // Its own event counts too: the one that was under way.
        let events = earlier.events.0.saturating_sub(1)..later.events.1;
        let between = self.events.get(events).unwrap_or_default().to_vec();
        self.repeated = Some(Repeated {
            space: space.to_owned(),
            id,
            draws: [earlier, later],
            between,
        });
    }
}

/// First and last of each stretch of consecutive ids. One that comes twice begins a run of its own, and is found then.
fn runs_of(ids: &[i64]) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for &id in ids {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            Some(_) | None => runs.push((id, id)),
        }
    }
    runs
}

impl fmt::Display for Draw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "session {} at {:.3} s, during events {} to {}: {}",
            self.session,
            self.at.as_secs_f64(),
            self.events.0,
            self.events.1,
            self.what
        )
    }
}

impl fmt::Display for Repeated {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 30;
        let [earlier, later] = &self.draws;
        writeln!(out, "{}: id {} was seen twice", self.space, self.id)?;
        writeln!(out, "  first by {earlier}")?;
        writeln!(out, "  again by {later}")?;
        writeln!(out, "  in between:")?;
        for event in self.between.iter().take(SHOWN) {
            writeln!(out, "    {event}")?;
        }
        if self.between.len() > SHOWN {
            writeln!(out, "    and {} more", self.between.len() - SHOWN)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(batches: &[&[i64]]) -> Ledger {
        let ledger = Ledger::default();
        for (number, ids) in batches.iter().enumerate() {
            ledger.event(format!("event {number}"));
            let began = ledger.begin();
            ledger.record("tag", u32::try_from(number).unwrap(), "ids", began, ids);
        }
        ledger
    }

    #[test]
    fn distinct_ids_are_kept_as_runs() {
        let ledger = recorded(&[&[1, 2, 3], &[7, 8], &[4, 5, 6], &[10, 9]]);
        assert!(ledger.repeated().is_none());
        assert_eq!((ledger.ids(), ledger.runs()), (10, 5));
    }

    #[test]
    fn every_kind_of_overlap_is_found() {
        let cases: [(&[i64], &[i64], i64); 6] = [
            (&[5, 6, 7], &[5, 6, 7], 5),
            (&[5, 6, 7], &[7, 8], 7),
            (&[5, 6, 7], &[4, 5], 5),
            (&[5, 6, 7], &[6], 6),
            (&[6], &[5, 6, 7], 6),
            (&[1], &[3, 3], 3),
        ];
        for (earlier, later, id) in cases {
            let repeated = recorded(&[earlier, later]).repeated();
            assert_eq!(repeated.map(|found| found.id), Some(id), "{later:?}");
        }
    }

    #[test]
    fn repeated_id_tells_both_draws_and_what_was_between() {
        let ledger = recorded(&[&[1, 2], &[8, 9], &[2]]);
        let found = ledger.repeated().unwrap();
        let sessions = found.draws.each_ref().map(|draw| draw.session);
        assert_eq!((found.id, sessions), (2, [0, 2]));
        assert_eq!(found.between, ["event 0", "event 1", "event 2"]);
    }

    #[test]
    fn key_spaces_are_apart_until_one_is_a_copy() {
        let ledger = recorded(&[&[1, 2]]);
        let began = ledger.begin();
        ledger.record("other", 1, "ids", began, &[1, 2]);
        assert!(ledger.repeated().is_none());
        ledger.fork("tag", "copy");
        ledger.record("copy", 1, "ids", began, &[2]);
        assert_eq!(ledger.repeated().map(|found| found.id), Some(2));
    }
}
