//! The slot of a name: clusters say by it which of them serves the name. And the groups into which a store divides the slots: who gives ids of
//! ordered tags is one program for each group.

use std::fmt;

/// How many there are.
pub const SLOTS: u16 = 16_384;

/// Groups of them at most.
pub const SLOT_GROUPS_MAX: u8 = 16;

/// The slot of a name: of what stands between the first `{` and the next `}`, if that is anything, else of all.
#[must_use]
pub fn of(name: &[u8]) -> u16 {
    let begin = name.iter().position(|byte| *byte == b'{');
    let inside = begin.and_then(|begin| name.get(begin.saturating_add(1)..));
    let tag = inside.and_then(|inside| {
        let end = inside.iter().position(|byte| *byte == b'}')?;
        inside.get(..end)
    });
    checksum(tag.filter(|tag| !tag.is_empty()).unwrap_or(name)) % SLOTS
}

/// Into how many groups the slots are divided: each has slots that lie together, and about as many as the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotGroups(u8);

impl SlotGroups {
    /// All slots are one group.
    pub const ONE: Self = Self(1);

    /// So many groups; nothing where there cannot be so many.
    #[must_use]
    pub fn new(count: u64) -> Option<Self> {
        let count = u8::try_from(count).ok()?;
        (1..=SLOT_GROUPS_MAX)
            .contains(&count)
            .then_some(Self(count))
    }

    /// How many there are.
    #[must_use]
    pub fn count(self) -> u8 {
        self.0
    }

    /// All of them, in the order of their slots.
    pub fn all(self) -> impl Iterator<Item = SlotGroup> {
        (1..=self.0).map(move |number| SlotGroup {
            groups: self,
            number,
        })
    }

    /// The group of that number; nothing where there are not so many.
    #[must_use]
    pub fn group(self, number: u64) -> Option<SlotGroup> {
        self.all().find(|group| u64::from(group.number) == number)
    }

    /// The group of a name, by its slot.
    #[must_use]
    pub fn of(self, name: &[u8]) -> SlotGroup {
        let slot = of(name);
        let found = self.all().find(|group| slot <= group.last());
        // The last one has the last slot.
        found.unwrap_or(SlotGroup {
            groups: self,
            number: self.0,
        })
    }

    /// The first slot of a group, or of one behind the last.
    fn begin_of(self, number: u8) -> u16 {
        let before = u32::from(number.saturating_sub(1)).saturating_mul(u32::from(SLOTS));
        let begin = before.checked_div(u32::from(self.0)).unwrap_or(0);
        u16::try_from(begin).unwrap_or(SLOTS)
    }
}

impl fmt::Display for SlotGroups {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// One of the groups, of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotGroup {
    groups: SlotGroups,
    number: u8,
}

impl SlotGroup {
    /// Of how many it is one.
    #[must_use]
    pub fn groups(self) -> SlotGroups {
        self.groups
    }

    /// Its number, from 1.
    #[must_use]
    pub fn number(self) -> u8 {
        self.number
    }

    /// Its first slot.
    #[must_use]
    pub fn first(self) -> u16 {
        self.groups.begin_of(self.number)
    }

    /// Its last slot.
    #[must_use]
    pub fn last(self) -> u16 {
        let next = self.groups.begin_of(self.number.saturating_add(1));
        next.saturating_sub(1)
    }
}

/// CRC-16/XMODEM.
fn checksum(bytes: &[u8]) -> u16 {
    const POLYNOMIAL: u16 = 0x1021;
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
            let shifted = sum << 1;
            if sum & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ POLYNOMIAL
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{SLOT_GROUPS_MAX, SLOTS, SlotGroup, SlotGroups, checksum, of};

    #[test]
    fn slots_are_those_of_redis() {
        assert_eq!(checksum(b"123456789"), 0x31C3);
        for (name, slot) in [("foo", 12_182), ("bar", 5_061), ("", 0)] {
            assert_eq!(of(name.as_bytes()), slot, "{name}");
        }
        assert_eq!(of(b"{foo}.orders"), of(b"foo"));
        assert_eq!(of(b"a{foo}{bar}"), of(b"foo"));
        assert_eq!(of(b"foo{}{bar}"), checksum(b"foo{}{bar}") % SLOTS);
        assert_eq!(of(b"foo{bar"), checksum(b"foo{bar") % SLOTS);
    }

    #[test]
    fn groups_are_all_slots_once() {
        for count in 1..=u64::from(SLOT_GROUPS_MAX) {
            let groups = SlotGroups::new(count).unwrap();
            let all: Vec<SlotGroup> = groups.all().collect();
            assert_eq!(all.len(), usize::try_from(count).unwrap());
            assert_eq!(all[0].first(), 0);
            assert_eq!(all[all.len() - 1].last(), SLOTS - 1);
            for pair in all.windows(2) {
                assert_eq!(pair[0].last() + 1, pair[1].first());
            }
            let sizes = all.iter().map(|group| group.last() - group.first() + 1);
            let (least, most) = (sizes.clone().min(), sizes.max());
            assert!(most.unwrap() - least.unwrap() <= 1, "{count}");
        }
        assert_eq!(SlotGroups::new(0), None);
        assert_eq!(SlotGroups::new(u64::from(SLOT_GROUPS_MAX) + 1), None);
    }

    #[test]
    fn a_name_is_in_the_group_of_its_slot() {
        for count in 1..=u64::from(SLOT_GROUPS_MAX) {
            let groups = SlotGroups::new(count).unwrap();
            for name in ["foo", "bar", "orders", ""] {
                let (group, slot) = (groups.of(name.as_bytes()), of(name.as_bytes()));
                assert!(group.first() <= slot && slot <= group.last());
                assert_eq!(groups.group(group.number().into()), Some(group));
            }
        }
        assert_eq!(SlotGroups::ONE.group(2), None);
    }
}
