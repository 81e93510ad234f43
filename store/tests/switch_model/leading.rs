//! What the program does that leads an attempt, or finishes somebody else's.

use crate::protocol::Flaw;
use crate::world::{Alter, Attempt, Id, Lead, Phase, Rule, Session, Tag, World};

/// The attempt takes too long: it is ended in the store, before anything else.
pub fn end(to: &mut World, program: usize, flaw: Flaw) -> Option<()> {
    let attempt = to.store.attempt?;
    let its = &mut to.programs[program];
    its.up.then_some(())?;
    let number = attempt.number;
    if attempt.phase == Phase::Closed && flaw == Flaw::ReopenAfterOff {
        if let Rule::Keys(tag) = to.store.rule {
            to.store.tags[tag].open = true;
            to.store.tags[tag].generation += 1;
        }
        to.store.attempt = None;
        return Some(());
    }
    (attempt.phase == Phase::Holding && !to.server.sessions[program].has_lock()).then_some(())?;
    if flaw == Flaw::LiftBeforeEnding {
        its.lead = Lead::LiftLock(number);
        return Some(());
    }
    to.store.attempt = Some(Attempt {
        phase: Phase::Ending,
        ..attempt
    });
    its.lead = Lead::Kill(number);
    Some(())
}

/// Somebody else's attempt is finished: ended to its end, or off carried on.
pub fn finish(to: &mut World, program: usize) -> Option<()> {
    let attempt = to.store.attempt?;
    let its = &mut to.programs[program];
    (its.up && its.lead == Lead::No).then_some(())?;
    its.lead = match attempt.phase {
        Phase::Holding => return None,
        Phase::Ending => Lead::Kill(attempt.number),
        Phase::Closed => Lead::Forward(attempt.number),
    };
    Some(())
}

/// The next step of whoever leads.
pub fn lead(to: &mut World, program: usize, flaw: Flaw) -> Option<()> {
    to.programs[program].up.then_some(())?;
    let next = match to.programs[program].lead {
        Lead::No => return None,
        Lead::Leading(number) => leading(to, program, number, flaw)?,
        Lead::CountedEarly(number, counter) => {
            lock(to, program)?;
            Lead::Counted(number, counter)
        }
        Lead::BoundEarly(number, bound) => commit_keys(to, number, bound, flaw),
        Lead::Counted(number, counter) => record(to, program, number, counter),
        Lead::Recorded(number, counter) => {
            send(to, program, Alter::Fence, Lead::Fencing(number, counter))
        }
        Lead::Fencing(number, counter) => carried(to, program, Lead::Commit(number, counter))?,
        Lead::Commit(number, counter) => commit(to, number, counter, flaw),
        Lead::Kill(number) => kill(to, number),
        Lead::LiftLock(number) => lift_lock(to, program, number, flaw)?,
        Lead::LiftBlind(number, counter) => {
            lock(to, program)?;
            lift(to, program, number, counter)
        }
        Lead::LiftAsk(number) => lift_ask(to, program, number, flaw),
        Lead::Lifting(number) => carried(to, program, Lead::Release(number))?,
        Lead::Release(number) => {
            let is_mine = |attempt: &Attempt| {
                attempt.number == number
                    && (attempt.phase == Phase::Ending || flaw == Flaw::LiftBeforeEnding)
            };
            if to.store.attempt.as_ref().is_some_and(is_mine) {
                to.store.attempt = None;
            }
            Lead::No
        }
        Lead::Forward(number) => match to.attempt(number, Phase::Closed) {
            Some(_) => {
                lock(to, program)?;
                Lead::ForwardAsk(number)
            }
            None => Lead::No,
        },
        Lead::ForwardAsk(number) => match to.attempt(number, Phase::Closed) {
            // Again it would bring the counter down to the rows that are there.
            Some(_) if !to.server.fenced && flaw != Flaw::LiftTwice => {
                unlock(to, program);
                Lead::ForwardDone(number)
            }
            Some(attempt) => {
                let lift = Alter::Lift(attempt.above);
                send(to, program, lift, Lead::ForwardLifting(number))
            }
            None => unlock(to, program),
        },
        Lead::ForwardLifting(number) => carried(to, program, Lead::ForwardDone(number))?,
        Lead::ForwardDone(number) => {
            if to.attempt(number, Phase::Closed).is_some() {
                to.store.rule = Rule::Native;
                to.store.attempt = None;
            }
            Lead::No
        }
    };
    to.programs[program].lead = next;
    Some(())
}

fn leading(to: &mut World, program: usize, number: u8, flaw: Flaw) -> Option<Lead> {
    let Some(attempt) = to.attempt(number, Phase::Holding) else {
        return Some(Lead::No);
    };
    attempt.held.iter().all(|held| *held).then_some(())?;
    let early = flaw == Flaw::BoundBeforeClosing;
    Some(match (to.store.rule, attempt.to) {
        (Rule::Native, _) if flaw == Flaw::CounterBeforeLock => {
            Lead::CountedEarly(number, to.server.counter)
        }
        (Rule::Native, _) => {
            lock(to, program)?;
            Lead::Counted(number, to.server.counter)
        }
        (now, next) if now == next => {
            lock(to, program)?;
            Lead::Counted(number, to.server.counter)
        }
        (Rule::Keys(tag), _) if early => Lead::BoundEarly(number, bound(&to.store.tags[tag], flaw)),
        (Rule::Keys(tag), _) => commit_keys(to, number, bound(&to.store.tags[tag], flaw), flaw),
    })
}

fn bound(tag: &Tag, flaw: Flaw) -> Id {
    match flaw == Flaw::BoundFromLeases {
        true => tag.hi,
        false => tag.bound(),
    }
}

/// One transaction of the store that closes the old tag at `bound`.
fn commit_keys(to: &mut World, number: u8, bound: Id, flaw: Flaw) -> Lead {
    let (Some(attempt), Rule::Keys(old)) = (to.attempt(number, Phase::Holding), to.store.rule)
    else {
        return Lead::No;
    };
    if flaw != Flaw::OneGeneration {
        to.store.tags[old].generation += 1;
        to.store.tags[old].open = false;
    }
    match attempt.to {
        Rule::Native => {
            to.store.attempt = Some(Attempt {
                phase: Phase::Closed,
                above: bound,
                ..attempt
            });
            Lead::Forward(number)
        }
        Rule::Keys(new) => {
            let server = to.server.identity;
            open(to, (new, bound), server, flaw);
            to.store.attempt = None;
            Lead::No
        }
    }
}

/// One transaction of the store: the tag is in force, above all that is known.
fn open(to: &mut World, (tag, bound): (usize, Id), server: u8, flaw: Flaw) {
    let is_repeated = to.store.rule == Rule::Keys(tag);
    let row = &mut to.store.tags[tag];
    row.raise(bound);
    if !(is_repeated && flaw == Flaw::RepeatWithoutGeneration) {
        row.generation += 1;
    }
    row.open = true;
    to.store.rule = Rule::Keys(tag);
    to.store.server = server;
    // What was given before may be among the table's own; from now on nothing is.
    if let Some(id) = to.brought.take() {
        to.issued |= 1 << id;
    }
}

fn record(to: &mut World, program: usize, number: u8, counter: Id) -> Lead {
    match to.attempt(number, Phase::Holding) {
        Some(attempt) => {
            to.store.attempt = Some(Attempt {
                counter: Some((counter, program)),
                was_fenced: to.server.fenced,
                server: to.server.identity,
                ..attempt
            });
            Lead::Recorded(number, counter)
        }
        None => unlock(to, program),
    }
}

fn commit(to: &mut World, number: u8, counter: Id, flaw: Flaw) -> Lead {
    let attempt = to.attempt(number, Phase::Holding);
    let is_blind = flaw == Flaw::CommitWithoutAttempt && to.store.rule == Rule::Native;
    if attempt.is_some() || is_blind {
        let tag = attempt.map_or(0, |attempt| tag_of(attempt.to));
        let server = match attempt {
            Some(attempt) if flaw != Flaw::ServerAtCommit => attempt.server,
            Some(_) | None => to.server.identity,
        };
        open(to, (tag, counter), server, flaw);
    }
    if attempt.is_some() {
        to.store.attempt = None;
    }
    Lead::No
}

fn tag_of(rule: Rule) -> usize {
    match rule {
        Rule::Keys(tag) => tag,
        Rule::Native => 0,
    }
}

fn kill(to: &mut World, number: u8) -> Lead {
    let Some(attempt) = to.attempt(number, Phase::Ending) else {
        return Lead::No;
    };
    if let Some((_, of)) = attempt.counter {
        to.server.sessions[of] = Session::None;
    }
    Lead::LiftLock(number)
}

fn lift_lock(to: &mut World, program: usize, number: u8, flaw: Flaw) -> Option<Lead> {
    let its = to.store.attempt.filter(|its| its.number == number);
    let Some(attempt) = its else {
        return Some(Lead::No);
    };
    // No counter, no fence.
    let Some((counter, _)) = attempt.counter else {
        return Some(Lead::Release(number));
    };
    if attempt.was_fenced {
        return Some(Lead::Release(number));
    }
    if flaw == Flaw::LiftWithoutAsking {
        return Some(Lead::LiftBlind(number, counter));
    }
    lock(to, program)?;
    Some(Lead::LiftAsk(number))
}

fn lift_ask(to: &mut World, program: usize, number: u8, flaw: Flaw) -> Lead {
    let is_mine = |attempt: &Attempt| {
        attempt.number == number
            && (attempt.phase == Phase::Ending || flaw == Flaw::LiftBeforeEnding)
    };
    match to.store.attempt.filter(is_mine) {
        Some(attempt) => {
            let counter = attempt.counter.map_or(0, |(counter, _)| counter);
            lift(to, program, number, counter)
        }
        None => unlock(to, program),
    }
}

fn lift(to: &mut World, program: usize, number: u8, counter: Id) -> Lead {
    if to.server.fenced {
        return send(to, program, Alter::Lift(counter), Lead::Lifting(number));
    }
    unlock(to, program);
    Lead::Release(number)
}

fn lock(to: &mut World, program: usize) -> Option<()> {
    to.can_lock().then_some(())?;
    to.server.sessions[program] = Session::Locked;
    Some(())
}

fn unlock(to: &mut World, program: usize) -> Lead {
    if to.server.sessions[program] == Session::Locked {
        to.server.sessions[program] = Session::None;
    }
    Lead::No
}

/// Sends an ALTER, if the session is still there.
fn send(to: &mut World, program: usize, alter: Alter, then: Lead) -> Lead {
    let session = &mut to.server.sessions[program];
    if *session != Session::Locked {
        return Lead::No;
    }
    *session = Session::Sent(alter);
    then
}

/// The answer to an ALTER.
fn carried(to: &mut World, program: usize, then: Lead) -> Option<Lead> {
    let session = &mut to.server.sessions[program];
    match *session {
        Session::Done => {
            *session = Session::None;
            Some(then)
        }
        Session::Sent(_) => None,
        Session::None | Session::Locked => Some(Lead::No),
    }
}
