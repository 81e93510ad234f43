//! Generations of keys, and key spaces: what was had before is dropped when another one is followed.

use keywright_core::Tag;

use super::Keys;
use crate::lease::space::Space;
use crate::sources::segment::SegmentSupply;
use crate::sources::time::supply::TimeSupply;
use crate::switch::space::KeySpace;

impl Keys {
    /// Follows another generation of keys, after tables went over to them or left them: ranges and leases that were had before are
    /// dropped, and answers that come late are not believed.
    pub fn follow(&self, keys: &KeySpace, generation: u64) {
        self.of_space(
            keys,
            |supply| supply.follow(generation),
            |supply| supply.follow(generation),
        );
    }

    /// Tables have left these keys, and something that may still take some is under way: none are given until a generation is followed. What was
    /// had before is dropped.
    pub fn leave(&self, keys: &KeySpace) {
        self.of_space(keys, SegmentSupply::leave, TimeSupply::leave);
    }

    /// Of those that there are when it begins, each by itself: it may write the file of kept ranges, and whoever needs a source, or figures, does not wait for
    /// that. One that is made meanwhile is as one that is made right behind it: it has what the store says then, of this generation or a later one.
    fn of_space(
        &self,
        keys: &KeySpace,
        of_tag: impl Fn(&SegmentSupply),
        of_leases: impl Fn(&TimeSupply),
    ) {
        match keys {
            KeySpace::Tag(tag) => {
                let its = self.sources().of_tag(tag);
                its.iter().for_each(|supply| of_tag(supply));
            }
            KeySpace::Snowflake => {
                let times = self.sources().times.clone();
                let its = times.iter();
                let its = its.filter(|supply| supply.space == Space::Snowflake);
                its.for_each(|supply| of_leases(supply));
            }
        }
    }

    /// The store says which key space a tag is: where that is another one than before, what was reserved is dropped.
    pub fn meet(&self, tag: &Tag, key_space_id: &str) {
        let of_tag = self.sources().of_tag(tag);
        of_tag.iter().for_each(|supply| supply.meet(key_space_id));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use keywright_core::Tag;

    use super::Keys;
    use crate::settings::{RawSnowflakeSettings, RawStoreSettings, StoreSettings};
    use crate::spec::KeySpec;
    use crate::switch::space::KeySpace;

    /// Whatever is done to a source may last as long as the write of a file.
    #[test]
    fn whoever_asks_for_a_source_or_figures_does_not_wait_for_those_that_follow() {
        let raw = RawStoreSettings {
            url: "mysql://k@127.0.0.1:1/k".to_owned(),
            ..RawStoreSettings::default()
        };
        let settings = StoreSettings::new(&raw, &RawSnowflakeSettings::default()).unwrap();
        let keys = Keys::open(settings).unwrap();
        let tag = Tag::parse("orders").unwrap();
        for (space, spec) in [
            (KeySpace::Snowflake, KeySpec::Snowflake),
            (KeySpace::Tag(tag.clone()), KeySpec::Segment(tag)),
        ] {
            keys.source(&spec).unwrap();
            let were_asked = Cell::new(0);
            let ask = || {
                let is_free = keys.0.sources.try_lock().is_ok();
                assert!(is_free, "{spec} waits");
                were_asked.set(were_asked.get() + 1);
            };
            keys.of_space(&space, |_| ask(), |_| ask());
            assert_eq!(were_asked.get(), 1, "{spec}");
        }
    }
}
