//! A tag that moves to the store and back, checked exhaustively: a database, another server that runs whatever backup of it there is (a standby that
//! was promoted, a copy, a restored backup), the store, another program that reserves of it, two programs that move the tag, and any order of their
//! steps, crashes, lost answers. No id may be issued twice. What is done to prevent it is left out, one at a time: each omission that repeats ids
//! must be found. What the store decides is the code itself (`moving::plan_open`, `moving::plan_close`).

#![allow(unreachable_pub, reason = "modules of one test binary")]

#[path = "../common/checked.rs"]
mod checked;
mod protocol;
mod world;

use std::time::Instant;

use checked::{is_large, look, try_without};
use protocol::{Action, Flaw};
use stateright::{Model, Property};
use world::{Budget, World};

/// No id is issued twice.
const TWICE: &str = "no id is issued twice";
/// The tag was moved there, back, and there again, and ids were issued each time.
const AROUND: &str = "it is issued natively, fed, and natively again";

#[derive(Debug, Clone)]
struct Move {
    flaw: Option<Flaw>,
    budget: Budget,
}

impl Model for Move {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.budget)]
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
            Property::sometimes(AROUND, |_, world: &World| world.went_around),
        ]
    }
}

const BUDGET: Budget = Budget {
    issues: 3,
    reservations: 0,
    crashes: 0,
    backups: 1,
    restores: 1,
    losses: 0,
    moves: 1,
};

#[test]
fn every_order_of_a_move_keeps_ids_apart() {
    let begun = Instant::now();
    let budget = match is_large() {
        true => Budget {
            crashes: 1,
            losses: 1,
            moves: 2,
            ..BUDGET
        },
        false => BUDGET,
    };
    let (states, around, path) = look(Move { flaw: None, budget }, TWICE, AROUND);
    println!("{states} states, {:?}", begun.elapsed());
    assert!(path.is_none(), "{path:#?}");
    // A model in which nothing happens proves nothing.
    assert!(around && states > 10_000, "{states}");
}

/// What it takes to show it.
fn budget_of(flaw: Flaw) -> Budget {
    match flaw {
        // Others have reserved before the database came.
        Flaw::OpenWithoutLooking => Budget {
            reservations: 1,
            ..BUDGET
        },
        // An old catalogue of the move before.
        Flaw::NumberNotCounted => Budget { moves: 2, ..BUDGET },
        Flaw::OpenBeforeCommit
        | Flaw::NoSetting
        | Flaw::SettingOnOneServer
        | Flaw::ReturnBeforeClose
        | Flaw::AnyHeir
        | Flaw::HeirOfTheLineage
        | Flaw::AnyCatalogueComesBack => BUDGET,
    }
}

#[test]
fn every_omission_that_repeats_ids_is_found() {
    for flaw in [
        Flaw::OpenBeforeCommit,
        Flaw::OpenWithoutLooking,
        Flaw::NoSetting,
        Flaw::SettingOnOneServer,
        Flaw::NumberNotCounted,
        Flaw::ReturnBeforeClose,
        Flaw::AnyHeir,
        Flaw::HeirOfTheLineage,
        Flaw::AnyCatalogueComesBack,
    ] {
        let model = Move {
            flaw: Some(flaw),
            budget: budget_of(flaw),
        };
        try_without(model, (TWICE, AROUND), &flaw, true);
    }
}
