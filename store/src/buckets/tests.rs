//! Stores whose buckets two people divide at the same time, each with a configuration of his own and twice at most, while programs lease all that they
//! may, checked exhaustively: no bucket is leased in two stores. Any step may be late; a store may be restored from a backup. What is done to
//! prevent it is left out, one at a time, and each omission must be found.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::*;

const STORES: usize = 3;
/// The store that comes back from a backup.
const RESTORED: usize = 1;
/// Stands for a version that is drawn at random.
const DRAWN: u64 = 1_000;
const TWICE: &str = "no bucket is leased in two stores";
const CHANGED: &str = "a division is changed while programs lease";

type Division = [Option<IdRange>; STORES];

fn range(first: u32, last: u32) -> Option<IdRange> {
    Some(IdRange { first, last })
}

/// The first is the giver.
fn divisions() -> [Division; 3] {
    [
        [range(0, 0), range(1, 1), range(2, 3)],
        [range(0, 0), range(1, 2), range(3, 3)],
        [range(3, 3), range(1, 2), range(0, 0)],
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Flaw {
    GivesUnlooked,
    OpensUnlooked,
    ClosesUnlooked,
    LeavesOpen,
    GivesShared,
    ForgetsRestore,
    CountsUp,
    LeavesNoRow,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum At {
    Begins,
    Closes(usize),
    Gives,
    Opens(usize),
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Divider {
    division: Division,
    at: At,
    giver: Option<String>,
    version: u64,
    /// As closing left them.
    closed: Vec<OwnBuckets>,
    tries: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    rows: [BucketRows; STORES],
    /// What the stores know.
    known: [BTreeSet<u32>; STORES],
    /// What was ever leased.
    ever: [BTreeSet<u32>; STORES],
    dividers: [Divider; 2],
    restores: u8,
    /// After how many divisions something was leased.
    changed: u8,
}

/// What the second store comes back from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backup {
    BeforeItsRow,
    FirstClosed,
    Newest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Step(usize),
    Again(usize),
    Lease(usize, u32),
    Restore,
}

struct Stores {
    flaw: Option<Flaw>,
    divisions: [Division; 2],
    backup: Backup,
}

impl Divider {
    fn new(division: Division) -> Self {
        Self {
            division,
            at: At::Begins,
            giver: None,
            version: 0,
            closed: Vec::new(),
            tries: 1,
        }
    }
}

fn made(store: usize) -> OwnBuckets {
    OwnBuckets {
        store_id: format!("id {store}"),
        giver: String::new(),
        buckets: None,
        is_open: false,
        is_restored: false,
        version: 0,
    }
}

/// The row of a store that came back. Without the flaw it is there in any case.
fn restored(backup: Backup, newest: OwnBuckets, flaw: Option<Flaw>) -> Option<OwnBuckets> {
    let mut own = match backup {
        Backup::Newest => newest,
        Backup::FirstClosed => OwnBuckets {
            version: 1,
            ..made(RESTORED)
        },
        Backup::BeforeItsRow if flaw == Some(Flaw::LeavesNoRow) => return None,
        Backup::BeforeItsRow => OwnBuckets {
            store_id: format!("id {RESTORED} anew"),
            ..made(RESTORED)
        },
    };
    own.is_open = false;
    own.is_restored = flaw != Some(Flaw::ForgetsRestore);
    own.version = match flaw {
        Some(Flaw::CountsUp) => own.version + 1,
        _ => DRAWN,
    };
    Some(own)
}

/// One transaction; `None`: refused.
fn step(world: &mut World, who: usize, flaw: Option<Flaw>) -> Option<()> {
    let mut divider = world.dividers[who].clone();
    match divider.at.clone() {
        At::Begins => {
            let own = world.rows[0].own.as_ref();
            divider.giver = own.map(|own| own.store_id.clone());
            divider.version = own.map_or(0, |own| own.version);
            divider.closed.clear();
            divider.at = At::Closes(1);
        }
        At::Closes(store) => {
            let rows = &mut world.rows[store];
            let leased: Vec<u32> = match flaw {
                Some(Flaw::ClosesUnlooked) => Vec::new(),
                _ => world.known[store].iter().copied().collect(),
            };
            let wanted = divider.division[store];
            let used = (leased.as_slice(), None);
            plan_close(rows.own.as_ref(), used, wanted, divider.giver.as_deref()).ok()?;
            let mut own = rows.own.clone().unwrap_or_else(|| made(store));
            own.is_open &= flaw == Some(Flaw::LeavesOpen);
            own.version += 1;
            rows.own = Some(own.clone());
            divider.closed.push(own);
            divider.at = match store + 1 {
                STORES => At::Gives,
                next => At::Closes(next),
            };
        }
        At::Gives => {
            let rows = &mut world.rows[0];
            let leased: Vec<u32> = world.known[0].iter().copied().collect();
            let receivers: Vec<Receiver> = (1..STORES)
                .zip(&divider.closed)
                .map(|(store, own)| Receiver {
                    store_id: own.store_id.clone(),
                    name: store.to_string(),
                    buckets: divider.division[store],
                    is_restored: own.is_restored && flaw != Some(Flaw::ForgetsRestore),
                })
                .collect();
            let version = match flaw {
                Some(Flaw::GivesUnlooked) => rows.own.as_ref().map_or(0, |own| own.version),
                _ => divider.version,
            };
            let kept = divider.division[0];
            rows.given = match plan_give(rows, version, &leased, kept, &receivers) {
                Ok(given) => given,
                Err(_) if flaw == Some(Flaw::GivesShared) => rows.given.clone(),
                Err(_) => return None,
            };
            let mut own = rows.own.clone().unwrap_or_else(|| made(0));
            own.giver.clone_from(&own.store_id);
            own.buckets = kept;
            own.is_open = true;
            own.version += 1;
            rows.own = Some(own);
            divider.at = At::Opens(1);
        }
        At::Opens(store) => {
            let rows = &mut world.rows[store];
            let closed = divider.closed[store - 1].version;
            let version = match flaw {
                Some(Flaw::OpensUnlooked) => rows.own.as_ref().map_or(0, |own| own.version),
                _ => closed,
            };
            plan_open(rows.own.as_ref(), version).ok()?;
            let own = rows.own.as_mut()?;
            own.giver = "id 0".to_owned();
            own.buckets = divider.division[store];
            own.is_open = true;
            own.version += 1;
            divider.at = match store + 1 {
                STORES => At::Done,
                next => At::Opens(next),
            };
        }
        At::Done => return None,
    }
    world.dividers[who] = divider;
    Some(())
}

impl Model for Stores {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            rows: Default::default(),
            known: Default::default(),
            ever: Default::default(),
            dividers: self.divisions.map(Divider::new),
            restores: 1,
            changed: 0,
        }]
    }

    fn actions(&self, _: &World, actions: &mut Vec<Action>) {
        actions.extend((0..2).flat_map(|who| [Action::Step(who), Action::Again(who)]));
        for store in 0..STORES {
            actions.extend((0..4).map(|bucket| Action::Lease(store, bucket)));
        }
        actions.push(Action::Restore);
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Step(who) => step(&mut world, who, self.flaw)?,
            Action::Again(who) => {
                let divider = &mut world.dividers[who];
                let is_under_way = !matches!(divider.at, At::Begins | At::Done);
                divider.tries = divider.tries.checked_sub(1).filter(|_| is_under_way)?;
                divider.at = At::Begins;
            }
            Action::Lease(store, bucket) => {
                let may = match &world.rows[store].own {
                    Some(own) => own.is_open && is_among(bucket, own.buckets),
                    // What was leased before anything was divided is checked elsewhere.
                    None => store == RESTORED && world.restores == 0,
                };
                // One in each store is enough, and a second one after the first.
                if !may || world.ever[store].len() >= 2 || !world.known[store].insert(bucket) {
                    return None;
                }
                world.ever[store].insert(bucket);
                let done = world.dividers.iter().filter(|its| its.at == At::Done);
                world.changed = world.changed.max(u8::try_from(done.count()).ok()?);
            }
            Action::Restore => {
                world.restores = world.restores.checked_sub(1)?;
                world.known[RESTORED].clear();
                let newest = world.rows[RESTORED].own.take()?;
                world.rows[RESTORED].own = restored(self.backup, newest, self.flaw);
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
        ]
    }
}

/// Divisions that overlap, each pair with one kind of backup, so that it is soon done.
fn pairs(flaw: Option<Flaw>) -> [Stores; 4] {
    let [one, two, three] = divisions();
    let pair = |divisions, backup| Stores {
        flaw,
        divisions,
        backup,
    };
    [
        pair([one, two], Backup::BeforeItsRow),
        pair([one, three], Backup::Newest),
        pair([two, three], Backup::Newest),
        pair([two, one], Backup::FirstClosed),
    ]
}

/// What leads to a bucket in two stores, whether a division was changed while programs lease, and how many states there are.
fn look(stores: Stores) -> (Option<Vec<Action>>, bool, usize) {
    let checker = stores.checker();
    let wanted = HasDiscoveries::AnyOf([TWICE].into());
    let checker = checker.finish_when(wanted).spawn_bfs().join();
    (
        checker.discovery(TWICE).map(|path| path.into_actions()),
        checker.discovery(CHANGED).is_some(),
        checker.unique_state_count(),
    )
}

#[test]
fn no_bucket_is_leased_in_two_stores() {
    let mut changed = false;
    for stores in pairs(None) {
        let (twice, was_changed, states) = look(stores);
        assert_eq!(twice, None);
        assert!(states > 1_000, "{states} states");
        changed |= was_changed;
    }
    assert!(changed);
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
    ] {
        let mut pairs = pairs(Some(flaw)).into_iter();
        assert!(pairs.any(|stores| look(stores).0.is_some()), "{flaw:?}");
    }
}

#[test]
fn a_store_of_another_giver_is_refused() {
    let own = OwnBuckets {
        giver: "another".to_owned(),
        ..made(1)
    };
    for giver in [None, Some("id 0")] {
        let planned = plan_close(Some(&own), (&[], None), range(0, 1), giver);
        assert_eq!(planned, Err(Refused::AnothersBuckets));
    }
    let rows = BucketRows {
        own: Some(own),
        given: Vec::new(),
    };
    let planned = plan_give(&rows, 0, &[], range(0, 1), &[]);
    assert_eq!(planned, Err((String::new(), Refused::AnothersBuckets)));
}

#[test]
fn buckets_of_databases_stay_with_the_store_that_assigns_them() {
    let close = |assigned| plan_close(None, (&[], assigned), range(100, 199), None);
    for (first, last) in [(5, 9), (99, 100), (199, 300)] {
        let assigned = IdRange { first, last };
        let refused = Err(Refused::AssignedThere(assigned));
        assert_eq!(close(Some(assigned)), refused);
    }
    // Above the largest bucket there is none.
    for (first, last) in [(100, 199), (256, 900)] {
        assert_eq!(close(range(first, last)), Ok(()));
    }
}
