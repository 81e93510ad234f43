//! The hand-over of ranges to PostgreSQL servers, checked exhaustively: two programs, two servers, a store, and any order of requests,
//! answers that are lost, hand-overs that arrive late, crashes, copies, restores and a store that is made anew. No id may be issued twice. What
//! is done to prevent it is left out, alone and together with something else: each omission that repeats ids must be found, and where one
//! alone does not, because two things prevent the same, that is shown, too.
//!
//! `KEYWRIGHT_MODEL=large` allows more of everything, which takes long and much memory.

#![allow(unreachable_pub, reason = "modules of one test binary")]

#[path = "../common/checked.rs"]
mod checked;
mod protocol;
mod world;

use std::time::Instant;

use checked::is_large;
use protocol::{Action, Flaw};
use stateright::{Model, Property};
use world::{Budget, World};

/// No id is issued twice.
const TWICE: &str = "no id is issued twice";
/// Both servers issue ids after they have started again.
const LATER: &str = "both issue in a later life";

#[derive(Debug, Clone)]
struct HandOver {
    flaws: &'static [Flaw],
    budget: Budget,
}

impl Model for HandOver {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.budget)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        protocol::actions(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        protocol::next(world, action, self.flaws)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(TWICE, |_, world: &World| !world.twice),
            Property::sometimes(LATER, |_, world: &World| world.later_lives == 0b11),
        ]
    }
}

impl HandOver {
    /// How many states there are, and how an id comes twice in as few steps as possible.
    fn look(self) -> (usize, bool, Option<Vec<Action>>) {
        checked::look(self, TWICE, LATER)
    }
}

/// Databases are restored from backups, their own and the other's.
const RESTORED: Budget = Budget {
    reservations: 2,
    crashes: 1,
    backups: 1,
    restores: 1,
    new_stores: 0,
    restarts: 1,
    losses: 1,
};

/// The store is made anew.
const ANEW: Budget = Budget {
    backups: 0,
    restores: 0,
    new_stores: 1,
    ..RESTORED
};

/// So that all of it is seen in a moment.
const FEW: Budget = Budget {
    restarts: 0,
    losses: 1,
    backups: 0,
    restores: 0,
    ..RESTORED
};

fn larger(budget: Budget) -> Budget {
    Budget {
        reservations: 3,
        crashes: 2,
        losses: 2,
        ..budget
    }
}

#[test]
fn every_order_of_hand_overs_keeps_ids_apart() {
    for budget in [RESTORED, ANEW] {
        let begun = Instant::now();
        let budget = if is_large() { larger(budget) } else { budget };
        let (states, later, path) = HandOver { flaws: &[], budget }.look();
        println!("{states} states, {:?}", begun.elapsed());
        assert!(path.is_none(), "{path:#?}");
        // A model in which nothing happens proves nothing.
        assert!(states > 100_000, "{states}");
        assert!(later || budget == ANEW, "nobody issues after a start");
    }
}

/// Finds out whether something that is left out repeats ids.
fn try_without(budget: Budget, flaws: &'static [Flaw], repeats: bool) {
    let model = HandOver { flaws, budget };
    checked::try_without(model, (TWICE, LATER), &flaws, repeats);
}

#[test]
fn every_omission_that_repeats_ids_is_found() {
    for (budget, flaws) in [
        (RESTORED, &[Flaw::HandOverBeforeCommit][..]),
        (RESTORED, &[Flaw::HandBack]),
        (RESTORED, &[Flaw::RestOnDisk]),
        (ANEW, &[Flaw::AnyKeySpace]),
        (ANEW, &[Flaw::KeySpaceUnflushed]),
        (RESTORED, &[Flaw::NotCleared, Flaw::NoLast]),
        (RESTORED, &[Flaw::SendAgain, Flaw::AnyIncarnation]),
        (RESTORED, &[Flaw::SendAgain, Flaw::IncarnationOnDisk]),
        (RESTORED, &[Flaw::SendAgain, Flaw::NoFloor, Flaw::NoLast]),
    ] {
        try_without(budget, flaws, true);
    }
}

/// A hand-over is sent once, so it does not matter who takes it; where it is sent again, the one who took it refuses it, and others do.
#[test]
fn what_is_prevented_twice_may_be_left_out_once() {
    let once: [&[Flaw]; 6] = [
        &[Flaw::NotCleared],
        &[Flaw::SendAgain],
        &[Flaw::AnyIncarnation],
        &[Flaw::IncarnationOnDisk],
        &[Flaw::NoLast],
        &[Flaw::SendAgain, Flaw::NoFloor],
    ];
    let budget = if is_large() { RESTORED } else { FEW };
    for flaws in once {
        try_without(budget, flaws, false);
    }
}
