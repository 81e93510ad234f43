//! What may happen, and how often.

use std::fmt;

/// What happens next. The number of a server or program is taken modulo how many there are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A program ends, and another begins in its place.
    Program(usize, ProgramEnd),
    /// A program stands still for longer than its lease.
    PauseProgram(usize),
    /// The clock of a program or a server reads so many seconds more than it should, or less, until it is stepped again.
    StepClock(usize, i64),
    /// A PostgreSQL server is killed, and started.
    KillServer(usize),
    /// It is stopped in order, and started.
    RestartServer(usize),
    /// One backend is killed, and with it the memory of all.
    KillBackend(usize),
    /// It stands still.
    PauseServer(usize),
    /// It is stopped, its data directory copied, and both go on.
    CopyServer(usize),
    /// A backup is made of it.
    BackUpServer(usize),
    /// It is lost, and its backup takes its place.
    RestoreServer(usize),
    /// It has an asynchronous standby, which is promoted: in its place, or beside it.
    Promote(usize, Original),
    /// A server of MySQL tables is killed, and started.
    KillShard(usize),
    /// A part of the store is killed, and started.
    KillStore(usize),
    /// A part of the store stands still.
    PauseStore(usize),
    /// The store is backed up.
    BackUpStore,
    /// The store is lost, and its backup takes its place; an operator does what the documentation says.
    RestoreStore,
}

/// How a program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramEnd {
    /// `kill -9`.
    Killed,
    /// It is asked to.
    Stopped,
    /// The next one takes its sockets over.
    TakenOver,
}

/// What becomes of a server whose standby is promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Original {
    Lost,
    GoesOn,
}

/// How far a clock may be off, seconds.
const CLOCKS_S: [i64; 5] = [-20, -2, 0, 2, 20];

impl Event {
    pub(super) fn draw(random: &mut fastrand::Rng) -> Event {
        let which = random.usize(..64);
        match random.u32(0..100) {
            0..=15 => Event::Program(which, ProgramEnd::draw(random)),
            16..=19 => Event::PauseProgram(which),
            20..=22 => Event::StepClock(which, CLOCKS_S[random.usize(..CLOCKS_S.len())]),
            23..=32 => Event::KillServer(which),
            33..=37 => Event::RestartServer(which),
            38..=45 => Event::KillBackend(which),
            46..=49 => Event::PauseServer(which),
            50..=55 => Event::CopyServer(which),
            56..=61 => Event::BackUpServer(which),
            62..=67 => Event::RestoreServer(which),
            68..=72 => Event::Promote(which, Original::Lost),
            73..=77 => Event::Promote(which, Original::GoesOn),
            78..=80 => Event::KillShard(which),
            81..=87 => Event::KillStore(which),
            88..=91 => Event::PauseStore(which),
            92..=95 => Event::BackUpStore,
            _ => Event::RestoreStore,
        }
    }

    /// What it is called where events are counted.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Event::Program(_, ProgramEnd::Killed) => "programs killed",
            Event::Program(_, ProgramEnd::Stopped) => "programs stopped",
            Event::Program(_, ProgramEnd::TakenOver) => "programs taken over",
            Event::PauseProgram(_) => "programs paused",
            Event::StepClock(..) => "clocks stepped",
            Event::KillServer(_) | Event::KillBackend(_) => "servers killed",
            Event::RestartServer(_) => "servers restarted",
            Event::PauseServer(_) => "servers paused",
            Event::CopyServer(_) => "servers copied",
            Event::BackUpServer(_) => "servers backed up",
            Event::RestoreServer(_) => "servers restored",
            Event::Promote(..) => "standbys promoted",
            Event::KillShard(_) => "shards killed",
            Event::KillStore(_) => "stores killed",
            Event::PauseStore(_) => "stores paused",
            Event::BackUpStore => "stores backed up",
            Event::RestoreStore => "stores restored",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

impl ProgramEnd {
    fn draw(random: &mut fastrand::Rng) -> ProgramEnd {
        match random.u8(0..4) {
            0 | 1 => ProgramEnd::Killed,
            2 => ProgramEnd::Stopped,
            _ => ProgramEnd::TakenOver,
        }
    }
}
