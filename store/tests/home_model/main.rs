//! A tag that is made in one of two stores and moves between them, checked exhaustively: two programs that make or move it, with any patterns, an old
//! program that knows one store only, a new one that takes of the other, and any order of their steps, crashes, lost answers. No id may be issued
//! twice. What is done to prevent it is left out, one at a time: each omission that repeats ids must be found. What is decided is the code itself
//! (`home::plan_…`).

#![allow(unreachable_pub, reason = "modules of one test binary")]

#[path = "../common/checked.rs"]
mod checked;
mod protocol;
mod world;

use std::time::Instant;

use checked::{look, try_without};
use protocol::{Action, Flaw};
use stateright::{Model, Property};
use world::{Budget, World};

/// No id is issued twice.
const TWICE: &str = "no id is issued twice";
/// The tag was in one store, in the other, and in the first again, and ids were issued each time.
const AROUND: &str = "it is issued from one, from the other, and from the first again";

#[derive(Debug, Clone)]
struct Homes {
    flaw: Option<Flaw>,
    /// Whether the tag is in the first store at the beginning, made before there was another.
    is_there: bool,
    budget: Budget,
}

impl Model for Homes {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.budget, self.is_there)]
    }

    fn actions(&self, _: &World, actions: &mut Vec<Action>) {
        protocol::actions(actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        protocol::next(world, action, self.flaw)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(TWICE, |_, world: &World| !world.twice),
            Property::sometimes(AROUND, |_, world: &World| world.stage >= 3),
        ]
    }
}

const BUDGET: Budget = Budget {
    issues: 3,
    makes: 0,
    moves: 4,
    losses: 1,
};

/// Nobody has made the tag yet.
const MAKING: Budget = Budget {
    makes: 3,
    moves: 1,
    ..BUDGET
};

#[test]
fn every_order_of_moves_and_inits_keeps_ids_apart() {
    for (is_there, budget) in [(true, BUDGET), (false, MAKING)] {
        let begun = Instant::now();
        let model = Homes {
            flaw: None,
            is_there,
            budget,
        };
        let (states, around, path) = look(model, TWICE, AROUND);
        println!("{states} states, {:?}", begun.elapsed());
        assert!(path.is_none(), "{path:#?}");
        // A model in which nothing happens proves nothing.
        assert!(states > 10_000, "{states}");
        assert!(around || !is_there, "it never came back");
    }
}

#[test]
fn every_omission_that_repeats_ids_is_found() {
    for flaw in [
        Flaw::OpenBeforeCommit,
        Flaw::BoundNotRecorded,
        Flaw::KeySpaceKept,
        Flaw::KeySpaceNotCompared,
        Flaw::ReserveOfAnyRow,
        Flaw::NothingClosedElsewhere,
        Flaw::OneThatWaitsIsClosed,
    ] {
        let is_there = match flaw {
            Flaw::NothingClosedElsewhere | Flaw::OneThatWaitsIsClosed => false,
            Flaw::OpenBeforeCommit
            | Flaw::BoundNotRecorded
            | Flaw::KeySpaceKept
            | Flaw::KeySpaceNotCompared
            | Flaw::ReserveOfAnyRow => true,
        };
        let model = Homes {
            flaw: Some(flaw),
            is_there,
            budget: if is_there { BUDGET } else { MAKING },
        };
        try_without(model, (TWICE, AROUND), &flaw, true);
    }
}
