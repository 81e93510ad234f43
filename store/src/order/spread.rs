//! Which program takes the lease of which slot group, where several may. Pure.
//!
//! It decides only how long a program leaves a lease that is free to others, which is never unsafe: whoever takes it does so by what
//! [`super`] argues, and where programs see each other differently the first one has it. Nobody gives a lease up because another has fewer: each
//! hand-over has clients go elsewhere, and a program that looks idle may be one that cannot take any.

use keywright_core::slot::SlotGroup;

/// Programs that are let go first at most.
const FIRST_MAX: usize = 10;

/// A program that may take a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contender<'a> {
    /// Its run.
    pub program: &'a str,
    /// Slot groups that it has.
    pub groups: usize,
}

/// How long each program that goes first is waited for, milliseconds: it reads the lease several times meanwhile.
#[must_use]
pub fn step_ms(ttl_ms: u64) -> u64 {
    (ttl_ms / 20).max(1)
}

/// How long a program leaves the lease of a group, once that is free, to the others, milliseconds: as long as there are others who have fewer groups, or as
/// many and a better place among all. Whoever has stood for less than a time to live, and has a group, waits so long: programs that are started one after the
/// other share. `own`: this program, and how long it has stood.
#[must_use]
pub fn courtesy_ms(
    group: SlotGroup,
    (own, age_ms): (&Contender<'_>, u64),
    others: &[Contender<'_>],
    ttl_ms: u64,
) -> u64 {
    if group.groups().count() == 1 {
        return 0;
    }
    if own.groups > 0 && age_ms < ttl_ms {
        return ttl_ms;
    }
    let mut programs: Vec<&str> = others.iter().map(|its| its.program).collect();
    programs.push(own.program);
    programs.sort_unstable();
    programs.dedup();
    // Each is the first of all for other groups.
    let first = usize::from(group.number()).checked_rem(programs.len());
    let place = |program: &str| {
        let at = programs.iter().position(|its| *its == program).unwrap_or(0);
        let behind = at.saturating_add(programs.len());
        let behind = behind.saturating_sub(first.unwrap_or(0));
        behind.checked_rem(programs.len())
    };
    let own_place = (own.groups, place(own.program));
    let goes_first = |its: &&Contender<'_>| (its.groups, place(its.program)) < own_place;
    let before = others.iter().filter(goes_first).count().min(FIRST_MAX);
    let before = u64::try_from(before).unwrap_or(0);
    before.saturating_mul(step_ms(ttl_ms))
}

#[cfg(test)]
mod tests {
    use keywright_core::slot::{SlotGroup, SlotGroups};

    use super::{Contender, courtesy_ms, step_ms};

    const TTL_MS: u64 = 2_000;

    fn groups(count: u64) -> Vec<SlotGroup> {
        SlotGroups::new(count).unwrap().all().collect()
    }

    /// How long each of three waits that have so many groups.
    fn waits(group: SlotGroup, has: [usize; 3], age_ms: u64) -> [u64; 3] {
        let all = [("a", has[0]), ("b", has[1]), ("c", has[2])];
        let all = all.map(|(program, groups)| Contender { program, groups });
        all.each_ref().map(|own| {
            let others = all.iter().filter(|its| its.program != own.program);
            let others: Vec<Contender<'_>> = others.cloned().collect();
            courtesy_ms(group, (own, age_ms), &others, TTL_MS)
        })
    }

    #[test]
    fn one_group_is_taken_at_once() {
        assert_eq!(waits(groups(1)[0], [0, 0, 1], 0), [0, 0, 0]);
    }

    #[test]
    fn whoever_has_fewer_groups_goes_first() {
        for group in groups(4) {
            let step = step_ms(TTL_MS);
            assert_eq!(waits(group, [2, 0, 1], TTL_MS), [2 * step, 0, step]);
        }
    }

    #[test]
    fn who_is_alone_waits_for_nobody() {
        let own = Contender {
            program: "a",
            groups: 9,
        };
        assert_eq!(courtesy_ms(groups(16)[0], (&own, TTL_MS), &[], TTL_MS), 0);
    }

    #[test]
    fn programs_with_as_many_begin_with_other_groups() {
        let mut firsts = Vec::new();
        for group in groups(3) {
            let mut waits = waits(group, [0, 0, 0], 0);
            firsts.push(waits.iter().position(|ms| *ms == 0));
            waits.sort_unstable();
            assert_eq!(waits, [0, step_ms(TTL_MS), 2 * step_ms(TTL_MS)]);
        }
        firsts.sort_unstable();
        assert_eq!(firsts, [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn who_has_just_begun_takes_one_and_leaves_the_others() {
        let group = groups(4)[0];
        assert_eq!(waits(group, [1, 0, 2], TTL_MS - 1), [TTL_MS, 0, TTL_MS]);
    }
}
