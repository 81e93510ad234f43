//! How far the bounds of tags had come, by what a file of kept ranges says: also one of which no range may be used. A store that says less of the same
//! key space has gone back.

use std::collections::BTreeMap;

use super::content::{KeptRange, SeenBound};
use super::disk::Found;

/// Tags of which it is told at most, kept ones among them, so that names that came once do not fill the file.
const TAGS_MAX: usize = 1_000;

/// How far tags had come.
#[derive(Debug, Default)]
pub(crate) struct SeenBounds {
    /// Key space and bound of each.
    all: BTreeMap<String, (String, u64)>,
    /// The file may not say all of it.
    is_unsaid: bool,
}

impl SeenBounds {
    /// Adds what a file says, where that was written. Of a tag that was made anew this program knows the later key space: its predecessor began earlier.
    pub(crate) fn learn(&mut self, found: &Found) {
        let Found { content, place, .. } = found;
        if place.difference(&content.place).is_some() {
            return;
        }
        let known = std::mem::take(&mut self.all);
        for range in &content.ranges {
            self.note_range(range);
        }
        for seen in &content.seen {
            self.note(&seen.tag, &seen.key_space, seen.bound);
        }
        for (tag, (key_space, bound)) in &known {
            self.note(tag, key_space, *bound);
        }
    }

    /// What a range tells of its tag.
    pub(crate) fn note_range(&mut self, range: &KeptRange) {
        self.note(range.tag.as_str(), &range.key_space, range.bound);
    }

    /// A tag's bound.
    pub(crate) fn note(&mut self, tag: &str, key_space: &str, bound: u64) {
        // Of a tag that was made by hand it is not known whether it was made anew since.
        if key_space.is_empty() {
            return;
        }
        let Some((known, highest)) = self.all.get_mut(tag) else {
            if self.all.len() < TAGS_MAX {
                let its = (key_space.to_owned(), bound);
                self.all.insert(tag.to_owned(), its);
                self.is_unsaid = true;
            }
            return;
        };
        let is_same = *known == *key_space;
        if is_same && bound <= *highest {
            return;
        }
        if !is_same {
            key_space.clone_into(known);
        }
        *highest = bound;
        self.is_unsaid = true;
    }

    /// Whether the file may not say all of it.
    pub(crate) fn is_unsaid(&self) -> bool {
        self.is_unsaid
    }

    /// The file says all of it.
    pub(crate) fn said(&mut self) {
        self.is_unsaid = false;
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = SeenBound> {
        self.all.iter().map(|(tag, (key_space, bound))| SeenBound {
            tag: tag.clone(),
            key_space: key_space.clone(),
            bound: *bound,
        })
    }

    /// Those that these ranges do not tell.
    pub(crate) fn beside<'a>(&self, ranges: impl Iterator<Item = &'a KeptRange>) -> Vec<SeenBound> {
        let mut told: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for range in ranges {
            let its = (range.tag.as_str(), &*range.key_space);
            let bound = told.entry(its).or_default();
            *bound = range.bound.max(*bound);
        }
        let is_told = |seen: &SeenBound| {
            let bound = told.get(&(seen.tag.as_str(), seen.key_space.as_str()));
            bound.is_some_and(|bound| *bound >= seen.bound)
        };
        self.all().filter(|seen| !is_told(seen)).collect()
    }
}
