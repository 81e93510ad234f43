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

    fn of_space(
        &self,
        keys: &KeySpace,
        of_tag: impl Fn(&SegmentSupply),
        of_leases: impl Fn(&TimeSupply),
    ) {
        let sources = self.sources();
        match keys {
            KeySpace::Tag(tag) => {
                let segments = sources.segments.iter();
                let its = segments.filter(|((name, _), _)| name == tag);
                its.for_each(|(_, supply)| of_tag(supply));
            }
            KeySpace::Snowflake => {
                let times = sources.times.iter();
                let its = times.filter(|supply| supply.space == Space::Snowflake);
                its.for_each(|supply| of_leases(supply));
            }
        }
    }

    /// The store says which key space a tag is: where that is another one than before, what was reserved is dropped.
    pub fn meet(&self, tag: &Tag, key_space_id: &str) {
        let sources = self.sources();
        let of_tag = sources.segments.iter().filter(|((name, _), _)| name == tag);
        of_tag.for_each(|(_, supply)| supply.meet(key_space_id));
    }
}
