//! Checked exhaustively: no bucket is leased in two stores. Any step of who divides may be late, and each of them begins again once; one or two stores
//! come back from a backup, the giver too, and the owner gives his word where it is true. What is done to prevent it is left out, one
//! at a time, and each omission must be found.

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::super::*;
use super::range;
use super::world::{At, Backup, Division, Flaw, GIVER, STORES, World};

const TWICE: &str = "no bucket is leased in two stores";
const CHANGED: &str = "a division is changed while programs lease";
const WENT_ON: &str = "buckets are divided by the owner's word, and programs lease";

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Step(usize),
    /// The owner gives his word, and it is divided by that.
    Word(usize),
    Again(usize),
    Lease(usize, u32),
    ComeBack(usize),
}

struct Stores {
    flaw: Option<Flaw>,
    divisions: [Division; 2],
    lost: &'static [(usize, Backup)],
    /// Whether the owner gives his word.
    has_word: bool,
    /// How often each of who divides begins again.
    tries: u8,
}

impl Stores {
    /// Whether it can be at all: a state is copied for those only.
    fn may(&self, world: &World, action: &Action) -> bool {
        match action {
            Action::Step(who) => world.dividers[*who].at != At::Done,
            // Before a store was lost nobody needs it.
            Action::Word(who) => {
                self.has_word
                    && world.dividers[*who].at == At::Begins
                    && world.lost.len() < self.lost.len()
                    && (self.flaw == Some(Flaw::SaysWhatIsNot) || world.is_so(*who))
            }
            Action::Again(who) => {
                let divider = &world.dividers[*who];
                divider.tries > 0 && divider.is_under_way()
            }
            Action::Lease(store, bucket) => {
                let leases = match &world.rows[*store].own {
                    Some(own) => own.is_open && is_among(*bucket, own.buckets),
                    // What was leased before anything was divided is checked elsewhere.
                    None => {
                        let mut lost = self.lost.iter().filter(|its| !world.lost.contains(its));
                        lost.any(|(came_back, _)| came_back == store)
                    }
                };
                // One in each store is enough, and a second one after the first.
                leases && world.ever[*store].len() < 2 && !world.known[*store].contains(bucket)
            }
            Action::ComeBack(which) => {
                // Whoever gave his word restores nothing before it is divided.
                let mut dividers = world.dividers.iter();
                let by_word = dividers.any(|its| its.is_under_way() && its.rest == Rest::HasNone);
                let store = world.lost.get(*which).map(|(store, _)| *store);
                !by_word && store.is_some_and(|store| world.rows[store].own.is_some())
            }
        }
    }
}

impl Model for Stores {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.divisions, self.lost, self.tries)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let of_each = |who| [Action::Step(who), Action::Word(who), Action::Again(who)];
        actions.extend((0..2).flat_map(of_each));
        for store in 0..STORES {
            actions.extend((0..4).map(|bucket| Action::Lease(store, bucket)));
        }
        actions.extend((0..world.lost.len()).map(Action::ComeBack));
        actions.retain(|action| self.may(world, action));
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Step(who) => world.step(who, self.flaw)?,
            Action::Word(who) => {
                world.dividers[who].rest = Rest::HasNone;
                world.step(who, self.flaw)?;
            }
            Action::Again(who) => {
                let divider = &mut world.dividers[who];
                divider.tries -= 1;
                divider.at = At::Begins;
                divider.rest = Rest::AsRecorded;
            }
            Action::Lease(store, bucket) => {
                world.known[store].insert(bucket);
                world.ever[store].insert(bucket);
                let done = world.dividers.iter().filter(|its| its.at == At::Done);
                world.changed = world.changed.max(done.count());
            }
            Action::ComeBack(which) => {
                let (store, backup) = world.lost.remove(which);
                world.come_back(store, backup, self.flaw);
            }
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        fn is_once(_: &Stores, world: &World) -> bool {
            let [one, two, three] = &world.ever;
            one.is_disjoint(two) && one.is_disjoint(three) && two.is_disjoint(three)
        }
        vec![
            Property::always(TWICE, is_once),
            Property::sometimes(CHANGED, |_, world: &World| world.changed == 2),
            Property::sometimes(WENT_ON, |_, world: &World| {
                world.went_on && world.changed > 0
            }),
        ]
    }
}

/// Divisions that overlap, each pair with what is lost in it, so that it is soon done.
fn pairs(flaw: Option<Flaw>) -> Vec<Stores> {
    // The first is the giver.
    let one = [range(0, 0), range(1, 1), range(2, 3)];
    let two = [range(0, 0), range(1, 2), range(3, 3)];
    let three = [range(3, 3), range(1, 2), range(0, 0)];
    // The third store has left the configuration.
    let without = [range(0, 0), range(1, 3), None];
    let pair = |divisions, lost| Stores {
        flaw,
        divisions,
        lost,
        has_word: false,
        tries: 1,
    };
    let by_word = |divisions, lost| Stores {
        has_word: true,
        ..pair(divisions, lost)
    };
    vec![
        pair([one, two], &[(1, Backup::BeforeItsRow)]),
        pair([one, three], &[(1, Backup::Newest)]),
        pair([two, three], &[(1, Backup::Newest)]),
        pair([two, one], &[(1, Backup::First)]),
        by_word([one, without], &[(GIVER, Backup::BeforeItsRow)]),
        by_word([one, three], &[(GIVER, Backup::First)]),
        by_word([one, without], &[(GIVER, Backup::Newest)]),
        by_word([without, one], &[(GIVER, Backup::First)]),
        Stores {
            tries: 0,
            ..by_word([one, two], &[(1, Backup::BeforeItsRow)])
        },
        Stores {
            tries: 0,
            ..by_word([one, two], &[(GIVER, Backup::First), (1, Backup::First)])
        },
    ]
}

/// What leads to a bucket in two stores, which of the rest was seen, and how many states there are.
fn look(stores: Stores) -> (Option<Vec<Action>>, [bool; 2], usize) {
    let checker = stores.checker();
    let wanted = HasDiscoveries::AnyOf([TWICE].into());
    let checker = checker.finish_when(wanted).spawn_bfs().join();
    (
        checker.discovery(TWICE).map(|path| path.into_actions()),
        [CHANGED, WENT_ON].map(|seen| checker.discovery(seen).is_some()),
        checker.unique_state_count(),
    )
}

#[test]
fn no_bucket_is_leased_in_two_stores() {
    let mut seen = [false; 2];
    for stores in pairs(None) {
        let (twice, its, states) = look(stores);
        assert_eq!(twice, None);
        assert!(states > 1_000, "{states} states");
        seen = [seen[0] || its[0], seen[1] || its[1]];
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn each_omission_is_found() {
    for flaw in [
        Flaw::GivesUnlooked,
        Flaw::OpensUnlooked,
        Flaw::ClosesUnlooked,
        Flaw::LeavesOpen,
        Flaw::GivesShared,
        Flaw::ForgetsRestore,
        Flaw::CountsUp,
        Flaw::LeavesNoRow,
        Flaw::GivesForgotten,
        Flaw::SaysWhatIsNot,
        Flaw::WordOverLeases,
    ] {
        let mut pairs = pairs(Some(flaw)).into_iter();
        assert!(pairs.any(|stores| look(stores).0.is_some()), "{flaw:?}");
    }
}
