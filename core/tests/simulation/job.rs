//! Making a bound durable, then publishing it: one operation per step, inside the slot's refill flag.

use std::collections::VecDeque;

use keywright_core::SegmentWord;

use crate::rules::Rules;
use crate::server::{TagSlot, TagWord};
use crate::store::Register;
use crate::world::{Phase, World};

/// The slot whose refill flag is held.
#[derive(Debug, Clone, Copy)]
pub enum SlotRef {
    Time { worker: usize },
    Tag { tag: usize },
}

/// What will be published.
#[derive(Debug, Clone, Copy)]
pub enum Publication {
    Time {
        worker: usize,
        spare: bool,
        start: u64,
        hi: u64,
        extend_at: u64,
    },
    Tag {
        tag: usize,
        start: u64,
        end: u64,
        refill_at: u64,
    },
}

/// How the slot's figures change at the end.
#[derive(Debug, Clone, Copy)]
pub enum Figures {
    Time {
        worker: usize,
    },
    Tag {
        tag: usize,
        step: u64,
        size: u64,
        boot_ms: u64,
    },
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub enum Op {
    Write(Register, i64),
    Flush,
    /// Wait for the standby, if one is demanded.
    Await {
        position: usize,
    },
    /// First half of a publication: the cursor.
    Move(Publication),
    /// Second half: the bound.
    Raise(Publication),
    /// Set the figures and open the refill flag.
    Finish(Figures),
}

/// What is left to do, and what comes after.
#[derive(Debug)]
pub struct Job {
    slot: SlotRef,
    ops: VecDeque<Op>,
    after: Box<Phase>,
}

impl Job {
    /// The operations in the order that the rules give them.
    pub fn new(
        rules: Rules,
        slot: SlotRef,
        mut writes: Vec<(Register, i64)>,
        publications: &[Publication],
        figures: Figures,
        after: Phase,
    ) -> Self {
        if rules == Rules::NoteBeforeBound {
            writes.reverse();
        }
        let writes = writes
            .into_iter()
            .map(|(register, value)| Op::Write(register, value));
        let durable = [Op::Flush, Op::Await { position: 0 }];
        let publish = publications.iter().flat_map(|publication| {
            if rules == Rules::HiFirst {
                [Op::Raise(*publication), Op::Move(*publication)]
            } else {
                [Op::Move(*publication), Op::Raise(*publication)]
            }
        });
        let mut ops: VecDeque<Op> = if rules == Rules::SavedAfterIssuing {
            publish.chain(writes).chain(durable).collect()
        } else if rules == Rules::InCallersTransaction {
            writes.chain(publish).collect()
        } else {
            writes.chain(durable).chain(publish).collect()
        };
        ops.push_back(Op::Finish(figures));
        Self {
            slot,
            ops,
            after: Box::new(after),
        }
    }
}

/// Opens a slot's refill flag.
pub fn leave(world: &mut World, at: usize, slot: SlotRef) {
    let database = usize::from(world.backends[at].database);
    let memory = &mut world.server(at).memory;
    match slot {
        SlotRef::Time { worker } => memory.times[worker].gate = None,
        SlotRef::Tag { tag } => memory.tags[database][tag].gate = None,
    }
}

/// Does the next operation.
pub fn step(world: &mut World, at: usize, mut job: Job) -> Phase {
    let Some(op) = job.ops.pop_front() else {
        return *job.after;
    };
    let backend = world.backends[at].id;
    world.trace(|| format!("backend {backend}: {op:?}"));
    match op {
        Op::Write(register, value) => {
            if world.rules == Rules::InCallersTransaction {
                world.backends[at].uncommitted.push((register, value));
            } else {
                world.server(at).store.write(register, value);
            }
        }
        Op::Flush => {
            let store = &mut world.server(at).store;
            let position = store.end();
            store.flush(position);
            if let Some(Op::Await { position: awaited }) = job.ops.front_mut() {
                *awaited = position;
            }
        }
        Op::Await { position } => return await_standby(world, at, job, position),
        Op::Move(publication) => move_cursor(world, at, publication),
        Op::Raise(publication) => raise_bound(world, at, publication),
        Op::Finish(figures) => {
            finish(world, at, figures);
            leave(world, at, job.slot);
            return *job.after;
        }
    }
    Phase::Job(job)
}

/// Waits for the standby, unless the statement is cancelled: then the outcome is unknown and nothing is published.
fn await_standby(world: &mut World, at: usize, mut job: Job, position: usize) -> Phase {
    let is_there = !world.settings.is_synchronous || world.server(at).store.standby_has(position);
    if is_there && world.rng.u8(..) >= 8 {
        return Phase::Job(job);
    }
    if world.rng.u8(..) < 64 {
        let backend = world.backends[at].id;
        world.trace(|| format!("backend {backend}: cancelled while waiting for the standby"));
        if world.rules == Rules::PublishedAfterCancel {
            return Phase::Job(job);
        }
        leave(world, at, job.slot);
        return Phase::Idle;
    }
    job.ops.push_front(Op::Await { position });
    Phase::Job(job)
}

/// The first half of core's `publish`, done by core: a publication that does not raise the bound.
fn move_cursor(world: &mut World, at: usize, publication: Publication) {
    let rules = world.rules;
    match publication {
        Publication::Time {
            worker,
            spare,
            start,
            ..
        } => {
            let word = &world.server(at).memory.times[worker].track(spare).word;
            word.publish(start, word.hi());
        }
        Publication::Tag { tag, start, .. } => match &mut tag_slot(world, at, tag).word {
            TagWord::Core(word) => word.publish(start, word.hi()),
            TagWord::Mutant { cursor, .. } if rules == Rules::HiFirst => {
                *cursor = start.max(*cursor)
            }
            // Adding overshoots, so the cursor has to be set back to the start of a range that continues.
            TagWord::Mutant { cursor, hi } if start > *hi || *cursor > *hi => *cursor = start,
            TagWord::Mutant { .. } => {}
        },
    }
}

/// The second half: the whole of it once more, of which only the bound is left to do.
fn raise_bound(world: &mut World, at: usize, publication: Publication) {
    match publication {
        Publication::Time {
            worker,
            spare,
            start,
            hi,
            extend_at,
        } => {
            let track = world.server(at).memory.times[worker].track(spare);
            track.word.publish(start, hi);
            track.extend_at = extend_at;
        }
        Publication::Tag {
            tag,
            start,
            end,
            refill_at,
        } => {
            let slot = tag_slot(world, at, tag);
            match &mut slot.word {
                TagWord::Core(word) => SegmentWord::publish(word, start, end),
                TagWord::Mutant { hi, .. } => *hi = end,
            }
            slot.refill_at = refill_at;
        }
    }
}

fn finish(world: &mut World, at: usize, figures: Figures) {
    let database = world.backends[at].database;
    match figures {
        Figures::Time { worker } => world.server(at).memory.times[worker].owner = Some(database),
        Figures::Tag {
            tag,
            step,
            size,
            boot_ms,
        } => {
            let slot = tag_slot(world, at, tag);
            slot.taken_over = true;
            slot.step = step;
            slot.last_size = size;
            slot.last_refill_boot_ms = Some(boot_ms);
        }
    }
}

/// The slot of a tag of the backend's database.
pub fn tag_slot(world: &mut World, at: usize, tag: usize) -> &mut TagSlot {
    let database = usize::from(world.backends[at].database);
    &mut world.server(at).memory.tags[database][tag]
}
