//! What may happen, and how often.

use std::time::Duration;

use super::world::Role;

/// What happens next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// All processes of the server at once.
    KillServer(Option<i64>),
    /// One backend, and with it the memory of all.
    KillBackend,
    /// Stopped without a checkpoint, started again, perhaps with another clock.
    StopImmediate(Option<i64>),
    /// Stopped in order.
    StopFast(Option<i64>),
    /// The clock is set while the server runs: so many seconds off.
    Clock(i64),
    /// The whole server stands still while the clock is set.
    Pause(i64),
    /// Statements of some sessions are cancelled.
    Cancel,
    /// Some sessions are terminated.
    Terminate,
    /// Who a database is changes, or does not.
    Identity(Change, Ending),
    /// A database is dropped while sessions issue, and its worker id given to another.
    DropDatabase(Drop),
    /// A database is copied with CREATE DATABASE … TEMPLATE.
    CopyTemplate,
    /// A database is dumped and restored beside itself.
    CopyDump,
    /// A synchronous standby is made, the primary lost, the standby promoted.
    Promote(Option<i64>),
}

/// What a transaction changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Another layout, whose epoch is that much earlier.
    Layout {
        /// Milliseconds.
        earlier_ms: i64,
    },
    /// Another worker id of those that databases give each other.
    Worker,
    /// The extension is dropped and created, and everything set anew.
    Rebirth,
    /// The tag is dropped and created.
    Tag,
    /// Readable ids are written in a zone further east; further west, which the server refuses for as long as moments could come
    /// again as they are written.
    Zone {
        /// Minutes.
        east: i16,
    },
}

/// How that transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Commit,
    Rollback,
    /// The change lies in a savepoint that is rolled back, and the transaction commits.
    Savepoint,
    /// Prepared, then committed or rolled back, perhaps after a crash.
    Prepared {
        commit: bool,
        crash: bool,
    },
    /// The server is killed before it.
    Crash,
    /// The session is terminated before it.
    Terminated,
}

/// How a database is dropped, and what happens before its worker id is used again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drop {
    /// With (FORCE), or sessions leave by themselves while it waits.
    pub(super) force: bool,
    /// When they do.
    pub(super) leave: Duration,
    /// Whether the server is killed then.
    pub(super) crash: bool,
    /// The clock is set back by so many seconds then.
    pub(super) back_s: Option<i64>,
}

impl Event {
    pub(super) fn draw(random: &mut fastrand::Rng) -> Event {
        match random.u32(0..100) {
            0..=12 => Event::KillServer(clock_at_start(random)),
            13..=30 => Event::KillBackend,
            31..=37 => Event::StopImmediate(clock_at_start(random)),
            38..=39 => Event::StopFast(clock_at_start(random)),
            40..=48 => Event::Clock(clock(random)),
            49 => Event::Pause(clock(random)),
            50..=53 => Event::Cancel,
            54..=57 => Event::Terminate,
            58..=86 => {
                let change = Change::draw(random);
                Event::Identity(change, Ending::draw(random))
            }
            87..=93 => Event::DropDatabase(Drop::draw(random)),
            94..=95 => Event::CopyTemplate,
            96..=97 => Event::CopyDump,
            _ => Event::Promote(clock_at_start(random)),
        }
    }
}

/// Within a day, so that the clock comes back to moments that it has seen.
fn clock(random: &mut fastrand::Rng) -> i64 {
    let offsets_s = [
        -86_400, -3_600, -60, -30, -5, -2, -1, 0, 0, 0, 1, 2, 5, 30, 60, 3_600, 86_400,
    ];
    random.choice(offsets_s).unwrap_or(0)
}

fn clock_at_start(random: &mut fastrand::Rng) -> Option<i64> {
    (random.u8(0..3) == 0).then(|| random.i64(-5..=5))
}

impl Change {
    fn draw(random: &mut fastrand::Rng) -> Change {
        match random.u8(0..12) {
            0..=2 => Change::Layout {
                earlier_ms: random.i64(1_000..12_000),
            },
            3..=5 => Change::Worker,
            6..=8 => Change::Rebirth,
            9 => Change::Tag,
            _ => Change::Zone {
                east: random.i16(-60..=180),
            },
        }
    }

    /// Whether a database of that role keeps its promise when the change is for good.
    pub(super) fn may_commit(self, role: Role) -> bool {
        match (self, role) {
            (Change::Layout { .. }, Role::Lasting | Role::Reborn) => false,
            (Change::Rebirth, Role::Lasting | Role::Bent) => false,
            (Change::Layout { .. }, Role::Bent)
            | (Change::Rebirth, Role::Reborn)
            | (
                Change::Worker | Change::Tag | Change::Zone { .. },
                Role::Lasting | Role::Reborn | Role::Bent,
            ) => true,
        }
    }
}

impl Ending {
    fn draw(random: &mut fastrand::Rng) -> Ending {
        match random.u8(0..12) {
            0..=3 => Ending::Commit,
            4..=6 => Ending::Rollback,
            7 => Ending::Savepoint,
            8 | 9 => Ending::Prepared {
                commit: random.bool(),
                crash: random.bool(),
            },
            10 => Ending::Crash,
            _ => Ending::Terminated,
        }
    }

    /// Whether what was changed stays.
    pub(super) fn commits(self) -> bool {
        match self {
            Ending::Commit | Ending::Prepared { commit: true, .. } => true,
            Ending::Rollback
            | Ending::Savepoint
            | Ending::Prepared { commit: false, .. }
            | Ending::Crash
            | Ending::Terminated => false,
        }
    }
}

impl Drop {
    fn draw(random: &mut fastrand::Rng) -> Drop {
        Drop {
            force: random.u8(0..4) == 0,
            leave: Duration::from_millis(random.u64(500..4_000)),
            crash: random.bool(),
            back_s: random.bool().then(|| random.i64(1..10)),
        }
    }
}
