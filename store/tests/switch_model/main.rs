//! The switch of a tag's tables, on, over to another tag or to snowflake ids, off, and repeated, checked exhaustively: two programs,
//! one table, a store, and any order of statements, late answers, pauses (who does nothing for a while), crashes, restarts and failovers. Two
//! things must hold: no id comes twice, whoever makes it; and wherever nothing can happen any more nobody waits, and native inserts
//! are refused if and only if keys are issued. Each other order of steps that was proposed must be found out.
//!
//! `KEYWRIGHT_MODEL=large` allows more of everything, which takes long and much memory.

#![allow(unreachable_pub, reason = "modules of one test binary")]

#[path = "../common/checked.rs"]
mod checked;
mod leading;
mod protocol;
mod world;

use std::time::Instant;

use checked::{is_large, threads};
use protocol::{Action, Flaw};
use stateright::{Checker, HasDiscoveries, Model, Property};
use world::{Budget, Lead, PROGRAMS, Program, Rule, Server, Session, Store, TAGS, Tag, World};

/// What is switched, by which rules.
#[derive(Debug, Clone)]
struct Switch {
    from: Rule,
    /// What programs may want.
    goals: Vec<Rule>,
    /// The second of the tags stands for snowflake ids.
    has_snowflake: bool,
    /// Nobody is ever taken to be silent.
    is_patient: bool,
    flaw: Flaw,
    budget: Budget,
}

impl Switch {
    fn new(from: Rule, goals: &[Rule], budget: Budget) -> Self {
        Self {
            from,
            goals: goals.to_vec(),
            has_snowflake: false,
            is_patient: false,
            flaw: Flaw::None,
            budget,
        }
    }

    fn with(&self, flaw: Flaw) -> Self {
        Self {
            flaw,
            ..self.clone()
        }
    }

    /// Whether something can still happen.
    fn is_at_end(&self, world: &World) -> bool {
        let mut actions = Vec::new();
        protocol::actions(&self.goals, self.is_patient, &mut actions);
        let mut nexts = actions.into_iter();
        nexts.all(|action| protocol::next(world, action, self.flaw).is_none())
    }

    /// Looks at all states, until one of these properties does not hold.
    fn look(&self, properties: &[&'static str]) -> Looked {
        let wanted = HasDiscoveries::AnyOf(properties.iter().copied().collect());
        let checker = self.clone().checker().threads(threads());
        let checker = checker.finish_when(wanted).spawn_bfs().join();
        let mut found = checker.discoveries();
        Looked {
            states: checker.unique_state_count(),
            path: properties
                .iter()
                .find_map(|property| Some((*property, found.remove(property)?.into_actions()))),
        }
    }
}

/// What was found.
struct Looked {
    states: usize,
    /// The property that does not hold, and the steps that lead there.
    path: Option<(&'static str, Vec<Action>)>,
}

impl Model for Switch {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let (counter, hi) = match self.from {
            Rule::Native => (1, 1),
            // Where natives are to meet its ids soon.
            Rule::Keys(_) if self.has_snowflake => (0, 1),
            // What was issued before needs no ids of its own.
            Rule::Keys(_) => (0, 3),
        };
        let program = Program {
            up: true,
            rule: self.from,
            server: 0,
            known: [0; TAGS],
            hold: None,
            transaction: false,
            range: None,
            reply: None,
            handing_back: None,
            sent: None,
            lead: Lead::No,
        };
        let tag = |hi, is_snowflake| Tag {
            hi,
            first: 0,
            is_snowflake,
            generation: 0,
            open: true,
        };
        vec![World {
            store: Store {
                rule: self.from,
                server: 0,
                tags: [
                    tag(hi, false),
                    tag(u8::from(!self.has_snowflake), self.has_snowflake),
                ],
                returned: None,
                attempt: None,
                next_attempt: 1,
            },
            server: Server {
                identity: 0,
                counter,
                fenced: self.from != Rule::Native,
                sessions: [Session::None; PROGRAMS],
            },
            programs: [program; PROGRAMS],
            left: self.budget,
            brought: None,
            issued: 0,
            twice: false,
        }]
    }

    fn actions(&self, _: &World, actions: &mut Vec<Action>) {
        protocol::actions(&self.goals, self.is_patient, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        protocol::next(world, action, self.flaw)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(TWICE, |_, world: &World| !world.twice),
            Property::always(WAITS, |model: &Switch, world: &World| {
                world.is_settled() || !model.is_at_end(world)
            }),
        ]
    }
}

/// No id comes twice.
const TWICE: &str = "no id comes twice";
/// Where nothing can happen any more nobody waits, and native inserts are refused if and only if keys are issued.
const WAITS: &str = "nobody waits for ever";

/// What may happen by default, and in the large model.
fn budget(small: [u8; 5], large: [u8; 5]) -> Budget {
    let [natives, keys, reservations, attempts, faults] = if is_large() { large } else { small };
    Budget {
        natives,
        keys,
        reservations,
        attempts,
        faults,
        brought: 0,
        failovers: 0,
    }
}

const A: Rule = Rule::Keys(0);
const B: Rule = Rule::Keys(1);

fn on() -> Switch {
    let budget = budget([2, 1, 1, 2, 0], [4, 2, 2, 3, 2]);
    Switch::new(Rule::Native, &[A], budget)
}

fn on_with_crashes() -> Switch {
    let budget = budget([2, 1, 2, 1, 1], [3, 2, 3, 2, 3]);
    Switch::new(Rule::Native, &[A], budget)
}

fn over() -> Switch {
    Switch::new(A, &[B], budget([0, 2, 2, 1, 1], [2, 3, 3, 3, 2]))
}

fn off() -> Switch {
    Switch::new(A, &[Rule::Native], budget([2, 1, 1, 1, 1], [3, 3, 3, 3, 2]))
}

fn on_and_off() -> Switch {
    Switch::new(
        Rule::Native,
        &[A, Rule::Native],
        budget([2, 1, 1, 2, 0], [3, 2, 2, 4, 2]),
    )
}

/// To snowflake ids and on, perhaps before anybody had a lease.
fn through_snowflake() -> Switch {
    let budget = budget([1, 1, 1, 2, 0], [2, 2, 2, 3, 1]);
    Switch {
        has_snowflake: true,
        ..Switch::new(A, &[B, Rule::Native], budget)
    }
}

/// A table comes that has no fence: what is in force is repeated.
fn again() -> Switch {
    let budget = Budget {
        brought: 1,
        ..budget([0, 2, 2, 2, 0], [0, 3, 3, 3, 1])
    };
    Switch {
        is_patient: true,
        ..Switch::new(A, &[A], budget)
    }
}

/// Another server takes over, perhaps in the middle of an attempt: what is in force is repeated.
fn elsewhere() -> Switch {
    let budget = Budget {
        failovers: 2,
        ..budget([0, 2, 2, 2, 0], [0, 3, 3, 3, 1])
    };
    Switch {
        is_patient: true,
        ..Switch::new(A, &[A], budget)
    }
}

#[test]
fn every_order_of_the_switch_keeps_ids_apart() {
    for (name, switch) in [
        ("on", on()),
        ("on with crashes", on_with_crashes()),
        ("over", over()),
        ("off", off()),
        ("on and off", on_and_off()),
        ("through snowflake", through_snowflake()),
        ("again", again()),
        ("elsewhere", elsewhere()),
    ] {
        let begun = Instant::now();
        let looked = switch.look(&[TWICE, WAITS]);
        println!("{name}: {} states, {:?}", looked.states, begun.elapsed());
        assert!(looked.path.is_none(), "{name}: {:#?}", looked.path);
        // A model in which nothing happens proves nothing.
        assert!(looked.states > 50_000, "{name}: {}", looked.states);
    }
}

#[test]
fn every_refuted_order_is_found() {
    for (switch, flaw, harm) in [
        (on(), Flaw::CounterBeforeLock, TWICE),
        (on(), Flaw::CommitWithoutAttempt, TWICE),
        (on(), Flaw::LiftBeforeEnding, TWICE),
        (on(), Flaw::LiftWithoutAsking, TWICE),
        (on_with_crashes(), Flaw::HandBackWithoutGeneration, TWICE),
        (on(), Flaw::LateReplyBelieved, TWICE),
        (over(), Flaw::OneGeneration, TWICE),
        (over(), Flaw::BoundBeforeClosing, TWICE),
        (off(), Flaw::BoundBeforeClosing, TWICE),
        (off(), Flaw::LiftTwice, TWICE),
        (off(), Flaw::ReopenAfterOff, TWICE),
        (through_snowflake(), Flaw::BoundFromLeases, TWICE),
        (again(), Flaw::RepeatWithoutGeneration, TWICE),
        (elsewhere(), Flaw::KeysOnAnyServer, TWICE),
        (elsewhere(), Flaw::RepeatWithoutGeneration, TWICE),
        (elsewhere(), Flaw::ServerAtCommit, TWICE),
    ] {
        let begun = Instant::now();
        let looked = switch.with(flaw).look(&[harm]);
        let steps = looked.path.map(|(_, actions)| actions.len());
        println!(
            "{flaw:?}: {steps:?} steps, {} states, {:?}",
            looked.states,
            begun.elapsed()
        );
        assert!(steps.is_some(), "{flaw:?} was not found");
    }
}
