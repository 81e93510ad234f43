//! Taking a worker's word over, and what is promised about the first state afterwards.

use keywright_core::{
    Note, Readings, Recorded, Takeover, TakeoverPlan, TakeoverReason, plan_takeover,
};

use crate::checker::Source;
use crate::job::{Figures, Job, SlotRef};
use crate::rules::Rules;
use crate::store::Register;
use crate::time_call::{TimeCall, TimeStep, publication, slot, source};
use crate::world::{Phase, World};

/// First use of the word by this database since shared memory was zeroed, or since another database used it.
pub fn take_over(world: &mut World, at: usize, call: TimeCall, readings: Readings) -> Phase {
    let database = world.backends[at].database;
    let writer = world.writer(database);
    let identity = world.server(at).writer(database);
    let note_register = Register::TimeNote {
        worker: call.worker,
        writer,
    };
    let note = world.read(at, note_register).and_then(Note::unpack);
    let mut writes = Vec::new();
    let mut publications = Vec::new();
    let mut floor_ms = readings.wall_ms;
    for spare in [false, true] {
        if spare && !world.settings.layout.has_spare() {
            continue;
        }
        let register = Register::Bound {
            worker: call.worker,
            spare,
            writer,
        };
        let recorded = world
            .read(at, register)
            .map(|bound_ms| Recorded { bound_ms, note });
        let word = &slot(world, at, &call).track(spare).word;
        word.drain();
        let word_next_state = word.next();
        let settings = &world.settings;
        let plan = plan_takeover(&Takeover {
            layout: settings.layout,
            recorded,
            is_vouched: false,
            writer: identity,
            now_ms: readings.wall_ms,
            lead_ms_max: settings.lead_ms_max,
            skew_ms_max: settings.skew_ms_max,
            window_ms: settings.window_ms,
            word_next_state,
        })
        .expect("the epoch is past");
        let bound_ms = recorded.map(|recorded| recorded.bound_ms);
        check_start(
            world,
            at,
            (call.worker, spare),
            &plan,
            bound_ms,
            readings.wall_ms,
        );
        floor_ms = floor_ms.max(plan.start_ms);
        writes.push((register, plan.bound_ms));
        publications.push(publication(
            world,
            call.worker,
            spare,
            plan.start_state,
            plan.hi_state,
        ));
    }
    writes.push((
        note_register,
        Note::new(identity, readings.wall_ms, 1, 1).pack(),
    ));
    let slot = slot(world, at, &call);
    slot.clock.start_at(readings, floor_ms);
    slot.skew_ms = 0;
    let figures = Figures::Time {
        worker: call.worker,
    };
    let slot_ref = SlotRef::Time {
        worker: call.worker,
    };
    Phase::Job(Job::new(
        world.rules,
        slot_ref,
        writes,
        &publications,
        figures,
        call.then(TimeStep::ReadClock),
    ))
}

/// What is promised about the first state after a takeover, asserted exactly.
///
/// - Our own record, or nothing lost (synchronous promotion): it lies above everything ever issued.
/// - Another's record: above everything issued, if no server that ended had a virtual clock more than `skew_ms_max`
///   ahead of our wall clock now. No record at all: the same without the skew.
///
/// Otherwise no promise is made, and the word is no longer judged.
fn check_start(
    world: &mut World,
    at: usize,
    (worker, spare): (usize, bool),
    plan: &TakeoverPlan,
    bound_ms: Option<i64>,
    wall_ms: i64,
) {
    let source = source(world, at, worker, spare);
    if world.checker.is_void(source) {
        return;
    }
    let issued_end = world.checker.end_of(source);
    if plan.start_state >= issued_end {
        let bound_state = bound_ms.map_or(0, |bound_ms| world.settings.layout.state_at(bound_ms));
        world.checker.saved_by_gap += usize::from(bound_state < issued_end);
        return;
    }
    let Source::Worker { worker, .. } = source else {
        unreachable!("a worker's word")
    };
    let ahead_ms = world
        .virtual_at_end
        .get(&worker)
        .map_or(0, |virtual_ms| virtual_ms - wall_ms);
    let skew_ms_max = i64::try_from(world.settings.skew_ms_max).expect("short");
    let is_lossless = world.server(at).is_lossless;
    let is_promised = match plan.reason {
        TakeoverReason::SameWriter => true,
        TakeoverReason::ChangedWriter => is_lossless || ahead_ms <= skew_ms_max,
        TakeoverReason::Vouched => true,
        TakeoverReason::Fresh => is_lossless || ahead_ms <= 0,
    };
    if is_promised {
        // Faulty rules must be found by their duplicates, not by this.
        if world.rules == Rules::Sound {
            world.checker.fail(format!(
                "{source:?} starts at {} again: {plan:?}",
                plan.start_state
            ));
        }
    } else {
        world.trace(|| {
            format!("{source:?}: the lost server's clock was {ahead_ms} ms ahead: no promise")
        });
        world.checker.give_up(source);
    }
}
