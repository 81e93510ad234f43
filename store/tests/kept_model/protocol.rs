//! What may happen next, and what comes of it.

use crate::world::{Content, File, PROGRAMS, Program, RANGE_IDS, Range, World};

/// What is done otherwise than it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// What is written is not waited for until it is on the disk.
    MarkNotDurable,
    /// Ids are published and the file is not written.
    MarkNotWritten,
    /// The file keeps all of a range, also what is published of it.
    KeepsPublished,
    /// Which run of the machine it is of is not asked.
    AnyBoot,
    /// Whether it is the file that was written is not asked.
    AnyInode,
    /// Whether somebody else has changed it is not asked.
    AnyChange,
    /// It is not erased before what is left is handed back.
    NotErased,
    /// Nobody locks it.
    NoLock,
    /// It is not erased before a program lets tables be switched.
    HoldsAndKeeps,
    /// What was in force is not asked for, and may be used without end.
    NoLimit,
}

/// One step of anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Start(usize),
    Kill(usize),
    Stop(usize),
    Issue(usize),
    /// The next range comes from the store.
    Refill(usize),
    /// A part of what is kept is published, since the store is away.
    Part(usize),
    StoreAway,
    StoreBack,
    /// Others need not wait any more for a program that was silent.
    TimeOver,
    /// The tag's reserved ids are dropped by all, and tables have some of their own among them.
    Switch,
    /// The kernel writes to the disk what was not written yet.
    WrittenBack,
    /// What was not written to the disk is read as it was before.
    Forgotten,
    /// All programs end.
    MachineRestarts,
    Backup,
    /// The file's name leads to a copy.
    PutCopy,
    /// The copy is written into the file.
    CopyBack,
    /// The machine starts with the disk as it was.
    RestoreDisk,
}

pub fn actions(actions: &mut Vec<Action>) {
    for program in 0..PROGRAMS {
        actions.extend([
            Action::Start(program),
            Action::Kill(program),
            Action::Stop(program),
            Action::Issue(program),
            Action::Refill(program),
            Action::Part(program),
        ]);
    }
    actions.extend([
        Action::StoreAway,
        Action::StoreBack,
        Action::TimeOver,
        Action::Switch,
        Action::WrittenBack,
        Action::Forgotten,
        Action::MachineRestarts,
        Action::Backup,
        Action::PutCopy,
        Action::CopyBack,
        Action::RestoreDisk,
    ]);
}

/// `None`: it cannot happen now, or changes nothing.
pub fn next(world: &World, action: Action, flaws: &[Flaw]) -> Option<World> {
    let mut next = world.clone();
    match action {
        Action::Start(program) => start(&mut next, program, flaws)?,
        Action::Kill(program) => {
            let its = next.programs[program].take()?;
            lose(&mut next, its);
        }
        Action::Stop(program) => stop(&mut next, program, flaws)?,
        Action::Issue(program) => issue(&mut next, program)?,
        Action::Refill(program) => refill(&mut next, program, flaws)?,
        Action::Part(program) => part(&mut next, program, flaws)?,
        Action::StoreAway => next.is_store_up = false,
        Action::StoreBack => next.is_store_up = true,
        Action::TimeOver => time_over(&mut next, flaws)?,
        Action::Switch => switch(&mut next, flaws)?,
        Action::WrittenBack => next.file.disk = next.file.says,
        Action::Forgotten => next.file.says = next.file.disk,
        Action::MachineRestarts => restart(&mut next)?,
        Action::Backup => {
            spend(&mut next.left.copies)?;
            next.backup = Some(next.file);
        }
        Action::PutCopy => {
            let backup = next.backup?;
            next.file = File {
                inode: next.file.inode + 1,
                was_changed: false,
                ..backup
            };
            next.backup = None;
        }
        Action::CopyBack => {
            let backup = next.backup.take()?;
            next.file = File {
                inode: next.file.inode,
                was_changed: true,
                ..backup
            };
        }
        Action::RestoreDisk => {
            let backup = next.backup.take()?;
            restart(&mut next)?;
            next.file = backup;
        }
    }
    (next != *world).then_some(next)
}

fn spend(left: &mut u8) -> Option<()> {
    *left = left.checked_sub(1)?;
    Some(())
}

fn restart(world: &mut World) -> Option<()> {
    spend(&mut world.left.restarts_of_machine)?;
    for at in 0..PROGRAMS {
        if let Some(its) = world.programs[at].take() {
            lose(world, its);
        }
    }
    world.boot += 1;
    world.file.says = world.file.disk;
    Some(())
}

/// A program ends, and the store does not hear that.
fn lose(world: &mut World, its: Program) {
    if its.is_heard {
        world.lost_in = Some(world.era);
    }
}

/// What a program writes into its file.
fn write(
    world: &mut World,
    (standing, tail): (Option<u8>, Option<Range>),
    is_heard: bool,
    flaws: &[Flaw],
) {
    let era = match is_heard {
        true => world.era,
        false => world.file.says.era,
    };
    world.file.says = Content {
        boot: world.boot,
        inode: world.file.inode,
        era,
        standing,
        tail: tail.filter(|tail| !tail.is_empty()),
    };
    world.file.was_changed = false;
    if !flaws.contains(&Flaw::MarkNotDurable) {
        world.file.disk = world.file.says;
    }
}

fn start(world: &mut World, program: usize, flaws: &[Flaw]) -> Option<()> {
    if world.programs[program].is_some() {
        return None;
    }
    spend(&mut world.left.starts)?;
    let is_locked = world.programs.iter().flatten().any(|other| other.has_file);
    let has_file = !is_locked || flaws.contains(&Flaw::NoLock);
    let mut its = Program {
        has_file,
        is_heard: world.is_store_up,
        published: None,
        tail: None,
    };
    let (file, says) = (world.file, world.file.says);
    let may = (says.boot == world.boot || flaws.contains(&Flaw::AnyBoot))
        && (says.inode == file.inode || flaws.contains(&Flaw::AnyInode))
        && (!file.was_changed || flaws.contains(&Flaw::AnyChange))
        && (says.era == world.era || flaws.contains(&Flaw::NoLimit));
    if has_file && world.is_store_up {
        write(world, (None, None), true, flaws);
    } else if has_file && may && says.standing.is_some() {
        let is_followed = |tail: &Range| says.standing == Some(tail.generation);
        its.tail = says.tail.filter(is_followed);
    }
    world.programs[program] = Some(its);
    Some(())
}

fn stop(world: &mut World, program: usize, flaws: &[Flaw]) -> Option<()> {
    let its = world.programs[program].take()?;
    if its.has_file && !flaws.contains(&Flaw::NotErased) {
        write(world, (None, None), false, flaws);
    }
    if !world.is_store_up {
        lose(world, its);
    } else if its.is_heard {
        // The rest is handed back as one range.
        let rest = its.published.into_iter().chain(its.tail);
        let rest = rest.filter(|range| range.generation == world.generation);
        world.returned = rest.reduce(|one, other| Range {
            end: other.end,
            ..one
        });
    }
    Some(())
}

fn issue(world: &mut World, program: usize) -> Option<()> {
    let its = world.programs[program].as_mut()?;
    let range = its.published.as_mut().filter(|range| !range.is_empty())?;
    let id = range.start;
    range.start += 1;
    world.went_on |= !its.is_heard;
    world.issue(id);
    Some(())
}

fn refill(world: &mut World, program: usize, flaws: &[Flaw]) -> Option<()> {
    let mut its = world.programs[program]?;
    let is_empty = its.published.is_none_or(|range| range.is_empty());
    if !world.is_store_up || !is_empty {
        return None;
    }
    its.is_heard = true;
    // What is of an older generation is dropped.
    its.tail = its.tail.filter(|tail| tail.generation == world.generation);
    let granted = match world.returned.take() {
        Some(range) => range,
        None => {
            spend(&mut world.left.reservations)?;
            let start = world.next;
            world.next += RANGE_IDS;
            Range {
                start,
                end: world.next,
                generation: world.generation,
            }
        }
    };
    // What was kept before first: the next range is asked for when that is used up.
    if let Some(before) = its.tail {
        its.tail = None;
        its.published = Some(before);
        world.returned = Some(granted);
        if its.has_file {
            write(world, (Some(world.generation), None), true, flaws);
        }
    } else {
        let mark = match its.has_file {
            true => granted.start + (granted.end - granted.start).div_ceil(2),
            false => granted.end,
        };
        let tail = Range {
            start: mark,
            ..granted
        };
        let kept = match flaws.contains(&Flaw::KeepsPublished) {
            true => granted,
            false => tail,
        };
        if its.has_file {
            write(world, (Some(world.generation), Some(kept)), true, flaws);
        }
        its.tail = Some(tail).filter(|tail| !tail.is_empty());
        its.published = Some(Range {
            end: mark,
            ..granted
        });
    }
    world.programs[program] = Some(its);
    Some(())
}

fn part(world: &mut World, program: usize, flaws: &[Flaw]) -> Option<()> {
    let mut its = world.programs[program]?;
    let is_empty = its.published.is_none_or(|range| range.is_empty());
    let tail = its.tail.filter(|_| !world.is_store_up && is_empty)?;
    let mark = tail.start + 1;
    let rest = Range {
        start: mark,
        ..tail
    };
    if !flaws.contains(&Flaw::MarkNotWritten) {
        let standing = world.file.says.standing;
        write(world, (standing, Some(rest)), false, flaws);
    }
    its.tail = Some(rest).filter(|rest| !rest.is_empty());
    its.published = Some(Range { end: mark, ..tail });
    world.programs[program] = Some(its);
    Some(())
}

/// Nobody waits any more for whoever ended without a word. Those that live are heard of meanwhile.
fn time_over(world: &mut World, flaws: &[Flaw]) -> Option<()> {
    let mut programs = world.programs.iter().flatten();
    let is_unheard = !world.is_store_up && programs.any(|its| its.is_heard);
    if world.lost_in != Some(world.era) || is_unheard {
        return None;
    }
    world.era += 1;
    for at in 0..PROGRAMS {
        let Some(its) = &mut world.programs[at] else {
            continue;
        };
        if its.is_heard && its.has_file {
            world.file.says.era = world.era;
            world.file.disk.era = world.era;
        } else if !its.is_heard && !flaws.contains(&Flaw::NoLimit) {
            (its.published, its.tail) = (None, None);
        }
    }
    Some(())
}

fn switch(world: &mut World, flaws: &[Flaw]) -> Option<()> {
    if !world.is_store_up || world.lost_in == Some(world.era) {
        return None;
    }
    spend(&mut world.left.switches)?;
    for at in 0..PROGRAMS {
        let Some(mut its) = world.programs[at].filter(|its| its.is_heard) else {
            continue;
        };
        if its.has_file && !flaws.contains(&Flaw::HoldsAndKeeps) {
            write(world, (None, None), true, flaws);
        }
        (its.published, its.tail) = (None, None);
        world.programs[at] = Some(its);
    }
    world.generation += 1;
    world.returned = None;
    // Tables have whatever was not issued of what was reserved.
    let below = (1_u32 << world.next) - 2;
    world.issued |= below;
    Some(())
}
