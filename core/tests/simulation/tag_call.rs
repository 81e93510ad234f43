//! A call of `next_biz_id` or `next_biz_ids`, one atomic step at a time.

use keywright_core::{
    Note, RefillPlan, RefillRequest, Step, StepPolicy, plan_refill, rate_per_s, refill_at,
};

use crate::checker::Source;
use crate::evidence;
use crate::job::{Figures, Job, Publication, SlotRef, leave, tag_slot};
use crate::rules::Rules;
use crate::schedule::START_MS;
use crate::server::TagWord;
use crate::store::Register;
use crate::world::{Phase, Reservation, World};

/// The first id of every tag.
pub const TAG_START: u64 = 1;

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct TagCall {
    pub tag: usize,
    pub n: u64,
    /// Only under [`Rules::FetchAdd`]: what the addition returned.
    added: u64,
}

/// What the call does next.
#[derive(Debug, Clone, Copy)]
pub enum TagStep {
    Load,
    Swap { cursor: u64 },
    Enter { is_early: bool },
    Plan { is_early: bool },
}

impl TagCall {
    pub fn new(tag: usize, n: u64) -> Self {
        Self { tag, n, added: 0 }
    }

    fn then(self, step: TagStep) -> Phase {
        Phase::Tag(self, step)
    }
}

pub fn source(world: &mut World, at: usize, tag: usize) -> Source {
    let database = world.backends[at].database;
    Source::Tag {
        store: world.server(at).tag_store,
        database,
        tag,
    }
}

/// Does the next step.
pub fn step(world: &mut World, at: usize, mut call: TagCall, step: TagStep) -> Phase {
    match step {
        TagStep::Load => {
            let rules = world.rules;
            let word = &mut tag_slot(world, at, call.tag).word;
            let loaded = word.cursor();
            if let TagWord::Mutant { cursor, .. } = word
                && rules == Rules::FetchAdd
            {
                call.added = loaded;
                *cursor += call.n;
            }
            call.then(TagStep::Swap { cursor: loaded })
        }
        TagStep::Swap { cursor } => swap(world, at, call, cursor),
        TagStep::Enter { is_early } => {
            let backend = world.backends[at].id;
            let gives_up = is_early || world.rng.u8(..) < 8;
            let slot = tag_slot(world, at, call.tag);
            match slot.gate {
                None => {
                    slot.gate = Some(backend);
                    call.then(TagStep::Plan { is_early })
                }
                Some(_) if gives_up => Phase::Idle,
                Some(_) => call.then(step),
            }
        }
        TagStep::Plan { is_early } => plan(world, at, call, is_early),
    }
}

/// The compare-and-swap of core's `take`, as for snowflake states; or what a faulty word does instead.
fn swap(world: &mut World, at: usize, call: TagCall, loaded: u64) -> Phase {
    let rules = world.rules;
    let slot = tag_slot(world, at, call.tag);
    let taken = match &mut slot.word {
        TagWord::Core(word) if word.cursor() != loaded => return call.then(TagStep::Load),
        TagWord::Core(word) => word.take(call.n).ok(),
        TagWord::Mutant { hi, .. } if rules == Rules::FetchAdd => {
            (call.added + call.n <= *hi).then_some(call.added)
        }
        TagWord::Mutant { cursor, .. } if *cursor != loaded => return call.then(TagStep::Load),
        TagWord::Mutant { cursor, hi } => (loaded + call.n <= *hi).then(|| {
            *cursor += call.n;
            loaded
        }),
    };
    let Some(first) = taken else {
        return call.then(TagStep::Enter { is_early: false });
    };
    let is_low = first + call.n > slot.refill_at;
    let source = source(world, at, call.tag);
    let backend = world.backends[at].id;
    for number in first..first + call.n {
        let id = i64::try_from(number).expect("in the tag's range");
        world.checker.issue(source, number, id, backend, world.step);
    }
    world.trace(|| {
        format!(
            "backend {backend}: took ids {first}..{} of {source:?}",
            first + call.n
        )
    });
    if is_low {
        call.then(TagStep::Enter { is_early: true })
    } else {
        Phase::Idle
    }
}

fn plan(world: &mut World, at: usize, call: TagCall, is_early: bool) -> Phase {
    let slot_ref = SlotRef::Tag { tag: call.tag };
    let database = world.backends[at].database;
    let register = Register::TagBound {
        database,
        tag: call.tag,
    };
    let note_register = Register::TagNote {
        database,
        tag: call.tag,
    };
    let after = if is_early {
        Phase::Idle
    } else {
        call.then(TagStep::Load)
    };
    let slot = tag_slot(world, at, call.tag);
    let is_enough = if is_early {
        slot.word.cursor() <= slot.refill_at
    } else {
        slot.word.remaining() >= call.n
    };
    if is_enough {
        leave(world, at, slot_ref);
        return after;
    }
    if world.is_locked(at, register) {
        leave(world, at, slot_ref);
        return Phase::Idle;
    }
    let true_ms = world.true_ms;
    let readings = world.server(at).machine.readings(true_ms);
    let note = world.read(at, note_register).and_then(Note::unpack);
    let bound_end = world
        .read(at, register)
        .map(|end| u64::try_from(end).expect("not negative"));
    let (step, want, gap) = sizes(world, at, &call, note, readings.wall_ms, readings.boot_ms);
    let source = source(world, at, call.tag);
    let before = note.and_then(|note| world.reservations.get(&(source, note.pack())).copied());
    let slot = tag_slot(world, at, call.tag);
    let (window, recent_per_s) = slot.rate.add(slot.last_size, readings.boot_ms);
    slot.rate = window;
    let rate_per_s = recent_per_s.max(before.map_or(0, |before| before.rate_per_s));
    let request = RefillRequest {
        bound_end,
        start: TAG_START,
        end_max: 0,
        word_hi: slot.word.hi(),
        remaining: slot.word.remaining(),
        need: if is_early { 0 } else { call.n },
        want,
        gap,
    };
    let request = RefillRequest {
        end_max: world.settings.tag_end_max[call.tag],
        ..request
    };
    let Ok(plan) = plan_refill(&request) else {
        leave(world, at, slot_ref);
        return Phase::Idle;
    };
    if !tag_slot(world, at, call.tag).taken_over {
        check_start(world, at, &call, note, &request, &plan);
    }
    let reservation = Reservation {
        size: step.max(want),
        rate_per_s,
        wall_ms: readings.wall_ms,
        is_confirmed: world.settings.is_synchronous,
    };
    let noted_per_s = match world.rules {
        Rules::AverageRate => rate_per_s_of_life(true_ms, plan.end),
        _ => recent_per_s,
    };
    let written = Note::new(
        world.server(at).writer(database),
        readings.wall_ms,
        reservation.size,
        noted_per_s,
    );
    let note = match world.rules {
        Rules::AverageRate => written,
        _ => written.at_peak_since(note.as_ref()),
    };
    world
        .reservations
        .insert((source, note.pack()), reservation);
    let writes = vec![
        (register, i64::try_from(plan.end).expect("in range")),
        (note_register, note.pack()),
    ];
    let refill_at = refill_at(plan.start, plan.end, world.settings.threshold_percent);
    let publications = [Publication::Tag {
        tag: call.tag,
        start: plan.start,
        end: plan.end,
        refill_at,
    }];
    let figures = Figures::Tag {
        tag: call.tag,
        step,
        size: plan.end - plan.start,
        boot_ms: readings.boot_ms,
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

/// The rate that hides a burst behind idleness.
fn rate_per_s_of_life(true_ms: i64, ids: u64) -> u64 {
    rate_per_s(ids, u64::try_from(true_ms - START_MS).ok())
}

/// The step in force, the ids to reserve now, and the ids to skip first.
fn sizes(
    world: &mut World,
    at: usize,
    call: &TagCall,
    note: Option<Note>,
    wall_ms: i64,
    boot_ms: u64,
) -> (u64, u64, u64) {
    let settings = world.settings.clone();
    let writer = {
        let database = world.backends[at].database;
        world.server(at).writer(database)
    };
    let slot = tag_slot(world, at, call.tag);
    if slot.taken_over {
        let previous = i64::try_from(slot.step)
            .ok()
            .and_then(|step| Step::new(step).ok())
            .unwrap_or(settings.step);
        let lasted_ms = slot
            .last_refill_boot_ms
            .map(|last_ms| boot_ms.saturating_sub(last_ms));
        let step = settings.step_policy.next(previous, lasted_ms).get();
        return (step, step, 0);
    }
    let gap = match note {
        None => settings.step.get(),
        Some(note) if note.is_of(&writer) => 0,
        Some(note) => evidence::tag_gap(world, at, call.tag, note, wall_ms),
    };
    (
        settings.step.get(),
        StepPolicy::first_load(settings.step),
        gap,
    )
}

/// What is promised about the first id after a takeover, asserted exactly.
///
/// - Our own record, or nothing lost (synchronous promotion): it lies above everything ever issued.
/// - Another's record: above everything issued, if what was issued past the bound that reached us is at most the
///   recorded reservation, or at most twice the highest rate for the time that [`evidence::alone_ms`] has.
///
/// Otherwise no promise is made, and the tag is no longer judged.
///
/// And only the note of a tag's creation comes without a bound: so the server may refuse any other.
fn check_start(
    world: &mut World,
    at: usize,
    call: &TagCall,
    note: Option<Note>,
    request: &RefillRequest,
    plan: &RefillPlan,
) {
    let source = source(world, at, call.tag);
    let is_bound_lost = request.bound_end.is_none() && note.is_some_and(|note| !note.is_first);
    if is_bound_lost && world.rules == Rules::Sound {
        world.checker.fail(format!(
            "the bound of {source:?} was lost, and {note:?} is there"
        ));
    }
    let issued_end = world.checker.end_of(source);
    if world.checker.is_void(source) {
        return;
    }
    let bound_end = request.bound_end.unwrap_or(TAG_START);
    if plan.start >= issued_end {
        world.checker.saved_by_gap += usize::from(bound_end < issued_end);
        return;
    }
    let database = world.backends[at].database;
    let server = world.server(at);
    let is_ours = note.is_some_and(|note| note.is_of(&server.writer(database)));
    let is_lossless = server.is_lossless;
    let issued_past = u128::from(issued_end - bound_end);
    let recorded = note.and_then(|note| world.reservations.get(&(source, note.pack())));
    let is_covered = recorded.copied().is_some_and(|recorded| {
        let alone_ms = note.map_or(0, |note| evidence::alone_ms(world, at, &note, &recorded));
        let elapsed_ms = u128::try_from(alone_ms).unwrap_or(0);
        issued_past <= u128::from(recorded.size)
            || issued_past * 1000 <= 2 * u128::from(recorded.rate_per_s) * elapsed_ms
    });
    if is_ours || is_covered || is_lossless {
        // Faulty rules must be found by their duplicates, not by this.
        if world.rules == Rules::Sound {
            world.checker.fail(format!(
                "{source:?} starts at {} again, {issued_end} was reached: {plan:?}",
                plan.start
            ));
        }
    } else {
        world.trace(|| {
            format!("{source:?}: {issued_past} ids past the bound were lost: no promise")
        });
        world.checker.give_up(source);
    }
}
