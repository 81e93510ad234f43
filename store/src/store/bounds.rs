//! How far tags of a key space had come, by what was seen.

use std::collections::{BTreeSet, HashMap};

use keywright_core::{Tag, written_key_space_mark};

/// So many key spaces of one tag are kept of what fed servers tell: one for each store that was lost or made anew, and what a server tells is not to fill the memory.
const FED_KEY_SPACES_MAX: usize = 64;

/// The largest bound of each tag that was seen, as the first id that was not reserved.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    /// By this program, or one before it on this machine, with the key space of which it is.
    own: HashMap<Tag, (String, u64)>,
    /// By servers that are fed, of each key space that one knows, by its mark.
    fed: HashMap<Tag, HashMap<u64, u64>>,
}

impl Bounds {
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.fed.is_empty()
    }

    /// All tags of which something was seen, in the order of their names.
    pub(super) fn tags(&self) -> BTreeSet<&Tag> {
        self.own.keys().chain(self.fed.keys()).collect()
    }

    /// The largest that was seen of a tag of this key space; 0: none was.
    pub(super) fn of(&self, tag: &Tag, key_space: &str) -> u64 {
        let own = self.own.get(tag).filter(|(its, _)| its == key_space);
        let fed = self.fed.get(tag).and_then(|fed| {
            let mark = written_key_space_mark(key_space)?;
            fed.get(&mark)
        });
        let fed = fed.copied().unwrap_or(0);
        own.map_or(fed, |(_, bound)| fed.max(*bound))
    }

    /// What was seen of another key space is forgotten.
    pub(super) fn note(&mut self, tag: &Tag, (key_space, bound): (String, u64)) {
        match self.own.get_mut(tag) {
            Some((its, known)) if *its == key_space => *known = bound.max(*known),
            Some(_) | None => {
                self.own.insert(tag.clone(), (key_space, bound));
            }
        }
    }

    pub(super) fn note_fed(&mut self, tag: &Tag, (mark, bound): (u64, u64)) {
        let fed = self.fed.entry(tag.clone()).or_default();
        if fed.len() >= FED_KEY_SPACES_MAX && !fed.contains_key(&mark) {
            return;
        }
        let known = fed.entry(mark).or_default();
        *known = bound.max(*known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_were_handed_counts_for_its_key_space_alone() {
        let (tag, other) = (Tag::parse("orders").unwrap(), Tag::parse("bills").unwrap());
        let [before, now] = ["0", "f"].map(|digit| digit.repeat(32));
        let mark = |key_space: &str| written_key_space_mark(key_space).unwrap();
        let mut bounds = Bounds::default();
        bounds.note_fed(&tag, (mark(&before), 4_001));
        bounds.note_fed(&tag, (mark(&before), 3_001));
        assert_eq!(bounds.of(&tag, &before), 4_001);
        assert_eq!(bounds.of(&tag, &now), 0, "of another store");
        bounds.note_fed(&tag, (mark(&now), 11));
        bounds.note(&tag, (now.clone(), 21));
        assert_eq!(bounds.of(&tag, &now), 21);
        bounds.note_fed(&tag, (mark(&now), 31));
        assert_eq!(bounds.of(&tag, &now), 31);
        assert_eq!(bounds.of(&tag, &before), 4_001);
        assert_eq!(bounds.of(&other, &now), 0);
        bounds.note(&other, (String::new(), 5));
        assert_eq!(bounds.of(&other, ""), 5, "made by hand");
        let tags: Vec<&Tag> = bounds.tags().into_iter().collect();
        assert_eq!(tags, [&other, &tag]);
    }

    #[test]
    fn what_servers_tell_does_not_fill_the_memory() {
        let tag = Tag::parse("orders").unwrap();
        let mut bounds = Bounds::default();
        for mark in 1..10_000 {
            bounds.note_fed(&tag, (mark, 1));
        }
        bounds.note_fed(&tag, (1, 7));
        let kept = &bounds.fed[&tag];
        assert_eq!((kept.len(), kept[&1]), (FED_KEY_SPACES_MAX, 7));
    }
}
