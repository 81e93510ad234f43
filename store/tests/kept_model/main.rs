//! Ranges that are kept in a local file, checked exhaustively: two programs of a machine that are killed, stopped and started in any order,
//! while the store goes and comes, tables are switched, the machine starts again, and the file is copied, put back and restored. No id may be
//! issued twice. What is done to prevent it is left out, alone and together with something else: each omission that repeats ids must be
//! found, and where one alone does not, because two things prevent the same, that is shown, too.
//!
//! `KEYWRIGHT_MODEL=large` allows more of everything, which takes long and much memory.

#![allow(unreachable_pub, reason = "modules of one test binary")]

#[path = "../common/checked.rs"]
mod checked;
mod protocol;
mod world;

use std::time::Instant;

use protocol::{Action, Flaw};
use stateright::{Model, Property};
use world::{Budget, World};

/// No id is issued twice.
const TWICE: &str = "no id is issued twice";
/// Keys go on without the store.
const GO_ON: &str = "keys go on without the store";

#[derive(Debug, Clone)]
struct Kept {
    flaws: &'static [Flaw],
    budget: Budget,
}

impl Model for Kept {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.budget)]
    }

    fn actions(&self, _: &World, actions: &mut Vec<Action>) {
        protocol::actions(actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        protocol::next(world, action, self.flaws)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(TWICE, |_, world: &World| !world.twice),
            Property::sometimes(GO_ON, |_, world: &World| world.went_on),
        ]
    }
}

impl Kept {
    /// How many states there are, and how an id comes twice in as few steps as possible.
    fn look(self) -> (usize, bool, Option<Vec<Action>>) {
        checked::look(self, TWICE, GO_ON)
    }
}

/// Files are copied and put back.
const COPIED: Budget = Budget {
    reservations: 2,
    starts: 3,
    copies: 1,
    restarts_of_machine: 0,
    switches: 0,
};

/// The machine starts again, perhaps with an older disk.
const RESTARTED: Budget = Budget {
    reservations: 1,
    restarts_of_machine: 1,
    ..COPIED
};

/// Tables are switched.
const SWITCHED: Budget = Budget {
    copies: 0,
    switches: 1,
    ..COPIED
};

fn larger(budget: Budget) -> Budget {
    Budget {
        reservations: 2,
        starts: 4,
        ..budget
    }
}

#[test]
fn however_programs_end_and_files_come_back_ids_stay_apart() {
    for budget in [COPIED, RESTARTED, SWITCHED] {
        let begun = Instant::now();
        let budget = if checked::is_large() {
            larger(budget)
        } else {
            budget
        };
        let (states, goes_on, path) = Kept { flaws: &[], budget }.look();
        println!("{states} states, {:?}", begun.elapsed());
        assert!(path.is_none(), "{path:#?}");
        // A model in which nothing happens proves nothing.
        assert!(states > 10_000, "{states}");
        assert!(goes_on, "nobody goes on without the store");
    }
}

fn try_without(budget: Budget, flaws: &'static [Flaw], repeats: bool) {
    let model = Kept { flaws, budget };
    checked::try_without(model, (TWICE, GO_ON), &flaws, repeats);
}

#[test]
fn every_omission_that_repeats_ids_is_found() {
    for (budget, flaws) in [
        (COPIED, &[Flaw::MarkNotDurable][..]),
        (COPIED, &[Flaw::MarkNotWritten]),
        (COPIED, &[Flaw::KeepsPublished]),
        (RESTARTED, &[Flaw::AnyBoot]),
        (COPIED, &[Flaw::AnyInode]),
        (COPIED, &[Flaw::AnyChange]),
        (COPIED, &[Flaw::NotErased]),
        (COPIED, &[Flaw::NoLock]),
        (SWITCHED, &[Flaw::HoldsAndKeeps]),
        (SWITCHED, &[Flaw::NoLimit]),
    ] {
        try_without(budget, flaws, true);
    }
}
