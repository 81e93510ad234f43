//! The hand-over of snowflake time to PostgreSQL databases, checked exhaustively by the rules that programs go by: two programs, two databases,
//! a store, and any order of requests, answers that are lost, hand-overs that arrive late, crashes, time that passes, a standby of the store
//! that lacks commits, and a store that is made anew. What was handed over may all be issued at once, whatever clocks say. No moment of a worker
//! id may be issued twice. What is done to prevent it is left out, and each omission that repeats ids must be found.
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

/// No moment of a worker id is issued twice.
const TWICE: &str = "no moment is issued twice";
/// A database issues ids after it has started again.
const LATER: &str = "one issues in a later life";

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
            Property::sometimes(LATER, |_, world: &World| world.later_lives != 0),
        ]
    }
}

impl HandOver {
    /// How many states there are, and how a moment comes twice in as few steps as possible.
    fn look(self) -> (usize, bool, Option<Vec<Action>>) {
        checked::look(self, TWICE, LATER)
    }
}

/// Databases crash.
const CRASHES: Budget = Budget {
    reservations: 3,
    ticks: 1,
    crashes: 1,
    losses: 1,
    promotions: 0,
    new_stores: 0,
};

/// So that all of it is seen in a moment.
const FEW: Budget = Budget {
    reservations: 2,
    ..CRASHES
};

/// Hand-overs are lost, and nobody crashes.
const LOST: Budget = Budget {
    ticks: 0,
    crashes: 0,
    losses: 2,
    ..CRASHES
};

/// A standby of the store is promoted that lacks commits.
const PROMOTED: Budget = Budget {
    crashes: 0,
    promotions: 1,
    ..CRASHES
};

/// The store is made anew.
const ANEW: Budget = Budget {
    crashes: 0,
    new_stores: 1,
    ..CRASHES
};

fn larger(budget: Budget) -> Budget {
    Budget {
        reservations: 4,
        ticks: 3,
        losses: 2,
        crashes: 2,
        ..budget
    }
}

#[test]
fn every_order_of_hand_overs_keeps_moments_apart() {
    for budget in [CRASHES, PROMOTED, ANEW] {
        let begun = Instant::now();
        let budget = if is_large() { larger(budget) } else { budget };
        let (states, later, path) = HandOver { flaws: &[], budget }.look();
        println!("{states} states, {:?}", begun.elapsed());
        assert!(path.is_none(), "{path:#?}");
        // A model in which nothing happens proves nothing.
        assert!(states > 20_000, "{states}");
        assert!(later || budget != CRASHES, "nobody issues after a start");
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
        (CRASHES, &[Flaw::HandOverBeforeCommit][..]),
        (CRASHES, &[Flaw::HandBack]),
        (CRASHES, &[Flaw::RestOnDisk]),
        (CRASHES, &[Flaw::NoCompare]),
        (PROMOTED, &[Flaw::AnyServer]),
        (ANEW, &[Flaw::NothingForgotten]),
        (LOST, &[Flaw::SendAgain, Flaw::AnyAsk]),
        (CRASHES, &[Flaw::SendAgain, Flaw::AnyIncarnation]),
    ] {
        try_without(budget, flaws, true);
    }
}

/// A hand-over is sent once, so it does not matter who takes it; where it is sent again, the one who took it refuses it, and others do.
#[test]
fn what_is_prevented_twice_may_be_left_out_once() {
    for flaws in [
        &[Flaw::SendAgain][..],
        &[Flaw::FromWhatWasHad],
        &[Flaw::AnyIncarnation],
        &[Flaw::AnyAsk],
        &[Flaw::NoFloor],
        &[Flaw::SendAgain, Flaw::NoFloor],
    ] {
        try_without(if is_large() { CRASHES } else { FEW }, flaws, false);
    }
}
