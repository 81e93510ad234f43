//! How far the bounds of tags had come, by what a file of kept ranges says: also one of which no range may be used. A store that says less of the same
//! key space has gone back.

use std::collections::BTreeMap;

use super::content::{Content, KeptRange, SeenBound};

/// Tags of which it is told at most, so that names that came once do not fill the file.
const TAGS_MAX: usize = 1_000;

/// Key space and bound of each tag.
#[derive(Debug, Default)]
pub(crate) struct SeenBounds(BTreeMap<String, (String, u64)>);

impl SeenBounds {
    /// What a file says.
    pub(crate) fn of(content: &Content) -> Self {
        let mut all = Self::default();
        for seen in &content.seen {
            all.note(&seen.tag, &seen.key_space, seen.bound);
        }
        for range in &content.ranges {
            all.note_range(range);
        }
        all
    }

    /// What a range tells of its tag.
    pub(crate) fn note_range(&mut self, range: &KeptRange) {
        self.note(range.tag.as_str(), &range.key_space, range.bound);
    }

    fn note(&mut self, tag: &str, key_space: &str, bound: u64) {
        // Of a tag that was made by hand it is not known whether it was made anew since.
        if key_space.is_empty() {
            return;
        }
        let Some((known, highest)) = self.0.get_mut(tag) else {
            if self.0.len() < TAGS_MAX {
                self.0.insert(tag.to_owned(), (key_space.to_owned(), bound));
            }
            return;
        };
        match *known == *key_space {
            true => *highest = bound.max(*highest),
            false => (*known, *highest) = (key_space.to_owned(), bound),
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = SeenBound> {
        self.0.iter().map(|(tag, (key_space, bound))| SeenBound {
            tag: tag.clone(),
            key_space: key_space.clone(),
            bound: *bound,
        })
    }

    /// Those that these ranges do not tell.
    pub(crate) fn beside<'a>(&self, ranges: impl Iterator<Item = &'a KeptRange>) -> Vec<SeenBound> {
        let mut told: BTreeMap<&str, u64> = BTreeMap::new();
        for range in ranges {
            let bound = told.entry(range.tag.as_str()).or_default();
            *bound = range.bound.max(*bound);
        }
        let is_told = |seen: &SeenBound| {
            let bound = told.get(seen.tag.as_str());
            bound.is_some_and(|bound| *bound >= seen.bound)
        };
        self.all().filter(|seen| !is_told(seen)).collect()
    }
}
