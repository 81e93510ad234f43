//! A call of `snowflake_id` or `snowflake_ids`, one atomic step at a time.

use keywright_core::{
    BoundRefusal, BoundRequest, ClockDecision, Note, Readings, WorkerId, decide, plan_bound,
};

use crate::checker::Source;
use crate::job::{Figures, Job, Publication, SlotRef, leave};
use crate::rules::Rules;
use crate::server::TimeSlot;
use crate::store::Register;
use crate::time_takeover::take_over;
use crate::world::{Phase, World};

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct TimeCall {
    /// The worker id, counted from the server's first: read when the call began, so it may be stale.
    pub worker: usize,
    pub n: u64,
    /// Whether all ids must be of one tick.
    pub in_tick: bool,
    spare: bool,
    now_ms: i64,
}

/// What the call does next.
#[derive(Debug, Clone, Copy)]
pub enum TimeStep {
    ReadClock,
    Choose,
    Load,
    Swap { next: u64 },
    Sleep { until_ms: i64 },
    Enter { is_early: bool },
    Plan { is_early: bool },
}

impl TimeCall {
    pub fn new(worker: usize, n: u64, in_tick: bool) -> Self {
        Self {
            worker,
            n,
            in_tick,
            spare: false,
            now_ms: 0,
        }
    }

    pub fn then(self, step: TimeStep) -> Phase {
        Phase::Time(self, step)
    }
}

pub fn slot<'a>(world: &'a mut World, at: usize, call: &TimeCall) -> &'a mut TimeSlot {
    &mut world.server(at).memory.times[call.worker]
}

pub fn source(world: &mut World, at: usize, worker: usize, spare: bool) -> Source {
    let number = u32::try_from(worker).expect("few");
    Source::Worker {
        worker: world.server(at).worker_base + number,
        spare,
    }
}

/// Does the next step.
pub fn step(world: &mut World, at: usize, mut call: TimeCall, step: TimeStep) -> Phase {
    let true_ms = world.true_ms;
    match step {
        TimeStep::ReadClock => {
            let wall_ms = world.server(at).machine.readings(true_ms).wall_ms;
            call.now_ms = wall_ms - slot(world, at, &call).skew_ms;
            let owner = slot(world, at, &call).owner;
            let is_ours = owner == Some(world.backends[at].database);
            // A word that nobody has taken over is empty; that of another database must be taken over from it.
            let may_issue = is_ours || owner.is_some() && world.rules == Rules::NoTakeoverOnMove;
            call.then(if may_issue {
                TimeStep::Choose
            } else {
                TimeStep::Enter { is_early: false }
            })
        }
        TimeStep::Choose => choose(world, at, call),
        TimeStep::Load => {
            let next = slot(world, at, &call).track(call.spare).word.next();
            call.then(TimeStep::Swap { next })
        }
        TimeStep::Swap { next } => swap(world, at, call, next),
        TimeStep::Sleep { until_ms } if true_ms < until_ms => call.then(step),
        TimeStep::Sleep { .. } => call.then(TimeStep::ReadClock),
        TimeStep::Enter { is_early } => {
            let backend = world.backends[at].id;
            let gives_up = is_early || world.rng.u8(..) < 8;
            let slot = slot(world, at, &call);
            match slot.gate {
                None => {
                    slot.gate = Some(backend);
                    call.then(TimeStep::Plan { is_early })
                }
                Some(_) if gives_up => Phase::Idle,
                Some(_) => call.then(step),
            }
        }
        TimeStep::Plan { is_early } => plan(world, at, call, is_early),
    }
}

fn choose(world: &mut World, at: usize, mut call: TimeCall) -> Phase {
    let policy = world.backends[at].policy;
    let highest_ms = slot(world, at, &call).highest_ms;
    let spare = world.settings.layout.spare_state();
    match decide(
        policy,
        call.now_ms,
        highest_ms,
        world.settings.wait_ms_max,
        spare,
    ) {
        ClockDecision::Issue => call.spare = false,
        ClockDecision::IssueSpare => call.spare = true,
        ClockDecision::WaitMs(ms) => {
            let until_ms = world.true_ms + i64::try_from(ms).expect("short");
            return call.then(TimeStep::Sleep { until_ms });
        }
        ClockDecision::Refuse { .. } => return Phase::Idle,
    }
    call.then(TimeStep::Load)
}

/// The compare-and-swap of core's `take`: if the word is still as it was loaded, `take` succeeds or refuses as if it
/// had loaded it then; if not, it would load again.
fn swap(world: &mut World, at: usize, call: TimeCall, next: u64) -> Phase {
    let layout = world.settings.layout;
    let slot = slot(world, at, &call);
    let word = &slot.track(call.spare).word;
    if word.next() != next {
        return call.then(TimeStep::Load);
    }
    let now_state = layout.state_at(call.now_ms);
    let taken = if call.in_tick {
        word.take_in_tick(now_state, call.n, layout.sequence_bits())
            .ok()
    } else {
        word.take(now_state, call.n).ok()
    };
    let Some(first) = taken else {
        return call.then(TimeStep::Enter { is_early: false });
    };
    slot.highest_ms = slot.highest_ms.max(call.now_ms);
    let is_low = first + call.n > slot.track(call.spare).extend_at;
    let source = source(world, at, call.worker, call.spare);
    let Source::Worker { worker, .. } = source else {
        unreachable!("a worker's word")
    };
    let part = layout.worker_part(
        WorkerId::new(i64::from(worker), &layout).expect("fits"),
        call.spare,
    );
    let backend = world.backends[at].id;
    for state in first..first + call.n {
        world.checker.issue(
            source,
            state,
            layout.compose(state, part),
            backend,
            world.step,
        );
    }
    world.trace(|| {
        format!(
            "backend {backend}: took states {first}..{} of {source:?}",
            first + call.n
        )
    });
    if is_low {
        call.then(TimeStep::Enter { is_early: true })
    } else {
        Phase::Idle
    }
}

fn plan(world: &mut World, at: usize, call: TimeCall, is_early: bool) -> Phase {
    let slot_ref = SlotRef::Time {
        worker: call.worker,
    };
    let database = world.backends[at].database;
    let true_ms = world.true_ms;
    let server = world.server(at);
    let readings = server.machine.readings(true_ms);
    // The worker id may have been given to another database while the call waited.
    if server.worker_of(database) != call.worker {
        leave(world, at, slot_ref);
        return Phase::Idle;
    }
    let writer = world.writer(database);
    if world.is_locked(
        at,
        Register::Bound {
            worker: call.worker,
            spare: false,
            writer,
        },
    ) {
        leave(world, at, slot_ref);
        return Phase::Idle;
    }
    let owner = slot(world, at, &call).owner;
    if owner == Some(database) || owner.is_some() && world.rules == Rules::NoTakeoverOnMove {
        extend(world, at, call, is_early, readings)
    } else {
        take_over(world, at, call, readings)
    }
}

pub fn publication(world: &World, worker: usize, spare: bool, start: u64, hi: u64) -> Publication {
    let layout = &world.settings.layout;
    let window_states =
        (world.settings.window_ms / u64::from(layout.tick_ms())) << layout.sequence_bits();
    Publication::Time {
        worker,
        spare,
        start,
        hi,
        extend_at: hi.saturating_sub(window_states / 2),
    }
}

fn extend(
    world: &mut World,
    at: usize,
    call: TimeCall,
    is_early: bool,
    readings: Readings,
) -> Phase {
    let database = world.backends[at].database;
    let slot_ref = SlotRef::Time {
        worker: call.worker,
    };
    let writer = world.writer(database);
    let register = Register::Bound {
        worker: call.worker,
        spare: call.spare,
        writer,
    };
    let bound_ms = world.read(at, register);
    let settings = world.settings.clone();
    let slot = slot(world, at, &call);
    let observed = slot.clock.observe(readings, settings.jump_ms_max);
    slot.skew_ms = observed.skew_ms;
    let word = &slot.track(call.spare).word;
    let now_state = settings
        .layout
        .state_at(readings.wall_ms - observed.skew_ms);
    // A batch of one tick may have to skip up to a tick.
    let skipped = if call.in_tick { call.n } else { 0 };
    let need_state_end = word.next().max(now_state) + call.n + skipped;
    if need_state_end <= word.hi() && !is_early {
        leave(world, at, slot_ref);
        return call.then(TimeStep::ReadClock);
    }
    let planned = plan_bound(&BoundRequest {
        layout: settings.layout,
        need_state_end,
        now_ms: observed.now_ms,
        bound_ms,
        window_ms: settings.window_ms,
        lead_ms_max: settings.lead_ms_max,
    });
    let after = if is_early {
        Phase::Idle
    } else {
        call.then(TimeStep::ReadClock)
    };
    match planned {
        Ok(plan) => {
            let identity = world.server(at).writer(database);
            let note = Note::new(identity, observed.now_ms, 1, 1).pack();
            let writes = vec![
                (register, plan.bound_ms),
                (
                    Register::TimeNote {
                        worker: call.worker,
                        writer,
                    },
                    note,
                ),
            ];
            let publications = [publication(
                world,
                call.worker,
                call.spare,
                0,
                plan.hi_state,
            )];
            let figures = Figures::Time {
                worker: call.worker,
            };
            Phase::Job(Job::new(
                world.rules,
                slot_ref,
                writes,
                &publications,
                figures,
                after,
            ))
        }
        Err(BoundRefusal::TooFarAhead { retry_after_ms, .. }) if !is_early && world.rng.bool() => {
            leave(world, at, slot_ref);
            call.then(TimeStep::Sleep {
                until_ms: world.true_ms + i64::try_from(retry_after_ms).expect("short"),
            })
        }
        Err(
            BoundRefusal::TooFarAhead { .. }
            | BoundRefusal::LayoutRanOut
            | BoundRefusal::BeforeEpoch(_),
        ) => {
            leave(world, at, slot_ref);
            Phase::Idle
        }
    }
}
