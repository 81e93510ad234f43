//! What may happen next, and what comes of it.

use crate::leading;
use crate::world::{
    Alter, Attempt, Id, Lead, PROGRAMS, Phase, Program, RANGE_IDS, Range, Rule, Session, TAGS,
    World,
};

/// What is done otherwise than it should be. Each was proposed at some time, and repeats ids or refuses inserts for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flaw {
    None,
    /// The counter is read before the table is locked.
    CounterBeforeLock,
    /// The commit does not ask whether the attempt still stands.
    CommitWithoutAttempt,
    /// The fence is lifted, and then the attempt is ended in the store.
    LiftBeforeEnding,
    /// Who has the lock lifts the fence without asking the store again.
    LiftWithoutAsking,
    /// Two tags share a generation: only the new one's is raised, and the old one is not closed.
    OneGeneration,
    /// The old tag's bound is read before the transaction that closes it.
    BoundBeforeClosing,
    /// Rests are handed back, and taken, whatever their generation.
    HandBackWithoutGeneration,
    /// A late answer is believed, whatever its generation.
    LateReplyBelieved,
    /// A counter is set although the fence was lifted before.
    LiftTwice,
    /// An attempt to switch off is given up after the tag was closed, which is opened again.
    ReopenAfterOff,
    /// How far snowflake ids came is counted from leases alone: where nobody has had one, they came nowhere.
    BoundFromLeases,
    /// The switch is repeated, and what was reserved before goes on.
    RepeatWithoutGeneration,
    /// Keys go to whatever server there is, also to one on which they are not in force.
    KeysOnAnyServer,
    /// Keys come into force on the server that there is at the commit, and not on the one whose counter was read.
    ServerAtCommit,
}

/// One step of anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A native insert by itself, or as the first of a transaction that stays open.
    Insert {
        program: usize,
        opens: bool,
    },
    EndTransaction(usize),
    Reserve(usize, usize),
    /// The answer to a reservation comes.
    Reply(usize),
    Take(usize),
    /// A statement with a key reaches the server.
    Arrive(usize),
    /// A clean stop; the rest is on its way to the store.
    Stop(usize),
    HandedBack(usize),
    Crash(usize),
    /// It asks the store first, or cannot.
    Start {
        program: usize,
        asks: bool,
    },
    Poll(usize),
    Acknowledge(usize),
    /// It has been silent for too long.
    Silent(usize),
    Begin(usize, Rule),
    /// The attempt takes too long.
    End(usize),
    /// Somebody else's attempt is finished.
    Finish(usize),
    Lead(usize),
    /// The server carries out an ALTER.
    Carry(usize),
    /// The server notices that a connection is gone.
    Notice(usize),
    RestartServer,
    /// Another server takes over, which has no fence and an id of its own that nobody has reserved.
    FailOver,
    /// A table comes without a fence, in the place of the one that there was, with an id of its own that nobody has reserved.
    Bring,
}

/// All that may happen, whether or not anything comes of it. `is_patient`: nobody is ever taken to be silent.
pub fn actions(goals: &[Rule], is_patient: bool, out: &mut Vec<Action>) {
    for program in 0..PROGRAMS {
        out.extend([false, true].map(|opens| Action::Insert { program, opens }));
        out.extend([false, true].map(|asks| Action::Start { program, asks }));
        out.extend((0..TAGS).map(|tag| Action::Reserve(program, tag)));
        out.extend(goals.iter().map(|goal| Action::Begin(program, *goal)));
        out.extend([
            Action::EndTransaction(program),
            Action::Reply(program),
            Action::Take(program),
            Action::Arrive(program),
            Action::Stop(program),
            Action::HandedBack(program),
            Action::Crash(program),
            Action::Poll(program),
            Action::Acknowledge(program),
            Action::End(program),
            Action::Finish(program),
            Action::Lead(program),
            Action::Carry(program),
            Action::Notice(program),
        ]);
        if !is_patient {
            out.push(Action::Silent(program));
        }
    }
    out.extend([Action::RestartServer, Action::FailOver, Action::Bring]);
}

/// What comes of it; `None` if it cannot happen now.
pub fn next(world: &World, action: Action, flaw: Flaw) -> Option<World> {
    let mut to = *world;
    match action {
        Action::Insert { program, opens } => insert(&mut to, program, opens)?,
        Action::EndTransaction(program) => {
            let its = &mut to.programs[program];
            its.transaction.then_some(())?;
            its.transaction = false;
        }
        Action::Reserve(program, tag) => reserve(&mut to, program, tag, flaw)?,
        Action::Reply(program) => reply(&mut to.programs[program], flaw)?,
        Action::Take(program) => take(&mut to, program, flaw)?,
        Action::Arrive(program) => {
            let id = to.programs[program].sent.take()?;
            (!to.server.is_locked()).then_some(())?;
            if !to.server.fenced {
                to.server.counter = to.server.counter.max(id + 1);
            }
        }
        Action::Stop(program) => {
            let its = to.programs[program];
            let rest = its.range.filter(|_| its.up && !its.transaction)?;
            (its.lead == Lead::No && its.handing_back.is_none()).then_some(())?;
            crash(&mut to, program)?;
            to.programs[program].handing_back = Some(rest);
        }
        Action::HandedBack(program) => {
            let rest = to.programs[program].handing_back.take()?;
            let is_current = rest.generation == to.store.tags[rest.tag].generation;
            if is_current || flaw == Flaw::HandBackWithoutGeneration {
                to.store.returned = Some(rest);
            }
        }
        Action::Crash(program) => crash(&mut to, program)?,
        Action::Start { program, asks } => start(&mut to, program, asks)?,
        Action::Poll(program) => poll(&mut to, program)?,
        Action::Acknowledge(program) => acknowledge(&mut to, program)?,
        Action::Silent(program) => {
            let attempt = to.store.attempt.as_mut()?;
            (attempt.phase == Phase::Holding && !attempt.held[program]).then_some(())?;
            attempt.held[program] = true;
        }
        Action::Begin(program, goal) => begin(&mut to, program, goal)?,
        Action::End(program) => leading::end(&mut to, program, flaw)?,
        Action::Finish(program) => leading::finish(&mut to, program)?,
        Action::Lead(program) => leading::lead(&mut to, program, flaw)?,
        Action::Carry(program) => carry(&mut to, program)?,
        Action::Notice(program) => {
            let its = &to.programs[program];
            let session = &mut to.server.sessions[program];
            (*session != Session::None && (!its.up || its.lead == Lead::No)).then_some(())?;
            *session = Session::None;
        }
        Action::Bring => bring(&mut to)?,
        Action::FailOver => fail_over(&mut to)?,
        Action::RestartServer => {
            to.left.faults = to.left.faults.checked_sub(1)?;
            cut(&mut to);
        }
    }
    (to != *world).then_some(to)
}

/// A native insert. A transaction that touched the table goes on while others wait.
fn insert(to: &mut World, program: usize, opens: bool) -> Option<()> {
    let its = &mut to.programs[program];
    let may = its.up && its.rule == Rule::Native && (its.hold.is_none() || its.transaction);
    let is_refused = to.server.fenced || to.server.is_locked();
    (may && !is_refused && !(opens && its.transaction)).then_some(())?;
    to.left.natives = to.left.natives.checked_sub(1)?;
    its.transaction |= opens;
    let id = to.server.counter;
    to.server.counter += 1;
    to.issue(id);
    Some(())
}

/// The store reserves; the answer is on its way.
fn reserve(to: &mut World, program: usize, tag: usize, flaw: Flaw) -> Option<()> {
    let its = to.programs[program];
    (its.up && its.reply.is_none()).then_some(())?;
    to.left.reservations = to.left.reservations.checked_sub(1)?;
    let row = &mut to.store.tags[tag];
    (row.open && its.known[tag] == row.generation).then_some(())?;
    let is_good = |rest: &Range| {
        rest.tag == tag
            && (rest.generation == row.generation || flaw == Flaw::HandBackWithoutGeneration)
    };
    let range = match to.store.returned.filter(is_good) {
        Some(rest) => {
            to.store.returned = None;
            Range {
                generation: row.generation,
                ..rest
            }
        }
        None => {
            let start = row.bound();
            row.hi = start + RANGE_IDS;
            Range {
                tag,
                generation: row.generation,
                start,
                end: row.hi,
            }
        }
    };
    to.programs[program].reply = Some(range);
    Some(())
}

fn reply(its: &mut Program, flaw: Flaw) -> Option<()> {
    let reply = its.reply.take()?;
    if reply.generation == its.known[reply.tag] || flaw == Flaw::LateReplyBelieved {
        its.range = Some(reply);
    }
    Some(())
}

/// A key is taken for a statement.
fn take(to: &mut World, program: usize, flaw: Flaw) -> Option<()> {
    let its = &mut to.programs[program];
    // Who connects asks which server it is.
    let is_in_force = its.server == to.server.identity || flaw == Flaw::KeysOnAnyServer;
    is_in_force.then_some(())?;
    let mut range = its
        .range
        .filter(|range| its.rule == Rule::Keys(range.tag))?;
    (its.up && its.hold.is_none() && its.sent.is_none()).then_some(())?;
    to.left.keys = to.left.keys.checked_sub(1)?;
    let id = range.start;
    range.start += 1;
    its.range = (range.start < range.end).then_some(range);
    its.sent = Some(id);
    to.issue(id);
    Some(())
}

/// What it had sent may still arrive, and what its connection to the server was told may still be carried out.
fn crash(to: &mut World, program: usize) -> Option<()> {
    to.left.faults = to.left.faults.checked_sub(1)?;
    let its = &mut to.programs[program];
    its.up.then_some(())?;
    *its = Program {
        up: false,
        rule: Rule::Native,
        server: 0,
        known: [0; TAGS],
        hold: None,
        transaction: false,
        range: None,
        reply: None,
        lead: Lead::No,
        handing_back: its.handing_back,
        sent: its.sent,
    };
    Some(())
}

fn start(to: &mut World, program: usize, asks: bool) -> Option<()> {
    // Who comes instead would be another program: what an old connection may still do is seen with the other one.
    let is_gone = to.server.sessions[program] == Session::None;
    let its = &mut to.programs[program];
    (is_gone && !its.up).then_some(())?;
    its.up = true;
    if asks {
        poll(to, program)?;
    }
    Some(())
}

/// A program asks the store: it follows what is in force, and waits while an attempt is under way.
fn poll(to: &mut World, program: usize) -> Option<()> {
    let its = &mut to.programs[program];
    its.up.then_some(())?;
    its.rule = to.store.rule;
    its.server = to.store.server;
    its.known = to.store.tags.map(|tag| tag.generation);
    let known = its.known;
    its.range = its
        .range
        .filter(|range| range.generation == known[range.tag]);
    its.hold = to.store.attempt.map(|attempt| attempt.number);
    Some(())
}

fn acknowledge(to: &mut World, program: usize) -> Option<()> {
    let its = &to.programs[program];
    let attempt = to.store.attempt.as_mut()?;
    let is_quiet = !its.transaction && its.sent.is_none();
    let holds = its.up && its.hold == Some(attempt.number) && attempt.phase == Phase::Holding;
    (holds && is_quiet && !attempt.held[program]).then_some(())?;
    attempt.held[program] = true;
    Some(())
}

fn begin(to: &mut World, program: usize, goal: Rule) -> Option<()> {
    let is_elsewhere = to.is_elsewhere();
    let its = &mut to.programs[program];
    // Programs are alike, so let it be the first one that begins.
    let is_first = to.store.next_attempt > 1 || program == 0;
    let is_free = is_first && to.store.attempt.is_none() && its.up && its.lead == Lead::No;
    // What is in force is repeated where a table came, or a server.
    let is_news = goal != to.store.rule || to.brought.is_some() || is_elsewhere;
    (is_free && is_news).then_some(())?;
    to.left.attempts = to.left.attempts.checked_sub(1)?;
    let number = to.store.next_attempt;
    to.store.next_attempt += 1;
    to.store.attempt = Some(Attempt {
        number,
        to: goal,
        phase: Phase::Holding,
        held: [false; PROGRAMS],
        counter: None,
        was_fenced: false,
        server: 0,
        above: 0,
    });
    its.lead = Lead::Leading(number);
    Some(())
}

fn bring(to: &mut World) -> Option<()> {
    to.left.brought = to.left.brought.checked_sub(1)?;
    let Rule::Keys(tag) = to.store.rule else {
        return None;
    };
    // One that comes while the tables are fenced is found by a look at them before the commit.
    let is_free = to.store.attempt.is_none() && !to.server.is_locked();
    (to.server.fenced && is_free).then_some(())?;
    let id = to.store.tags[tag].bound();
    to.server.fenced = false;
    to.server.counter = id + 1;
    to.brought = Some(id);
    Some(())
}

fn carry(to: &mut World, program: usize) -> Option<()> {
    let Session::Sent(alter) = to.server.sessions[program] else {
        return None;
    };
    match alter {
        Alter::Fence => {
            to.server.fenced = true;
            to.server.counter = 0;
        }
        Alter::Lift(counter) => {
            to.server.fenced = false;
            to.server.counter = counter.max(1);
        }
    }
    to.server.sessions[program] = Session::Done;
    Some(())
}

/// Its connections end.
fn cut(to: &mut World) {
    to.server.sessions = [Session::None; PROGRAMS];
    for program in &mut to.programs {
        program.transaction = false;
    }
}

/// What a statement had that was under way is used all the same. Of the ids of its own that it has the first counts that is above all that was
/// reserved: others may have been given to rows elsewhere before.
fn fail_over(to: &mut World) -> Option<()> {
    to.left.failovers = to.left.failovers.checked_sub(1)?;
    let Rule::Keys(tag) = to.store.rule else {
        return None;
    };
    cut(to);
    for program in &mut to.programs {
        program.sent = None;
    }
    let unheard_of = u64::BITS - to.issued.leading_zeros();
    let id = to.store.tags[tag]
        .bound()
        .max(Id::try_from(unheard_of).ok()?);
    to.server.identity += 1;
    to.server.fenced = false;
    to.server.counter = id + 1;
    to.issue(id);
    Some(())
}
