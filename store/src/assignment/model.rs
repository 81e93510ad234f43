//! Asks in any order, broken off anywhere, with answers that are lost and writes that arrive late, of databases that are copied at any moment.
//! No number comes to a database while another one issues with it; and a database that was never copied is never taken for a copy.

use keywright_core::Mark;

use super::tests::{database, row as row_of};
use super::*;

const SEEDS: u64 = 3_000;
const EVENTS: u32 = 400;

#[derive(Debug, Clone, Default)]
struct Label {
    worker: Option<u32>,
    mark: Option<Mark>,
    next: Option<Mark>,
    is_suspended: bool,
}

#[derive(Debug, Clone)]
struct Db {
    label: Label,
    /// Of its server's shared memory.
    life: u32,
    next_life: u32,
    /// It is a copy, or was copied.
    is_copied: bool,
}

#[derive(Debug, Clone)]
enum Write {
    Commit(Asker, Ask, Mark),
    Confirm(u32, Mark),
    Release(u32, Mark),
}

#[derive(Debug, Clone)]
enum Step {
    Plan(Asker),
    Commit(Asker, Ask),
    Mark(Asker, u32, Mark),
    Confirm(Asker, u32, Mark),
    Give(u32, Mark, bool),
    Release(u32, Mark),
}

struct World {
    random: fastrand::Rng,
    rows: Vec<AssignedRow>,
    next_id: u32,
    dbs: Vec<Db>,
    asks: Vec<(usize, Step)>,
    late: Vec<Write>,
    given: Vec<u32>,
    drawn: u128,
    lives: u32,
    gives: u32,
    suspended: u32,
}

/// What becomes of a write to the store.
#[derive(PartialEq)]
enum Outcome {
    Answered,
    Lost,
    Late,
    Never,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            rows: Vec::new(),
            next_id: 0,
            dbs: Vec::new(),
            asks: Vec::new(),
            late: Vec::new(),
            given: Vec::new(),
            drawn: 0,
            lives: 0,
            gives: 0,
            suspended: 0,
        }
    }

    fn draw(&mut self, asks: u32) -> Mark {
        self.drawn += 1;
        Mark {
            asks,
            random: self.drawn,
        }
    }

    fn numbers(&self) -> Numbers<'_> {
        Numbers {
            rows: &self.rows,
            range: IdRange {
                first: 0,
                last: 999,
            },
            next_id: self.next_id,
            is_restored: false,
        }
    }

    fn fate(&mut self) -> Outcome {
        match self.random.u32(0..20) {
            0 => Outcome::Lost,
            1 => Outcome::Late,
            2 => Outcome::Never,
            _ => Outcome::Answered,
        }
    }

    fn event(&mut self) {
        match self.random.u32(0..20) {
            0 if self.dbs.len() < 6 => {
                self.lives += 1;
                self.dbs.push(Db {
                    label: Label::default(),
                    life: self.lives,
                    next_life: 0,
                    is_copied: false,
                });
            }
            1 if self.dbs.len() < 6 && !self.dbs.is_empty() => self.copy(),
            2 if !self.late.is_empty() => {
                let at = self.random.usize(0..self.late.len());
                let write = self.late.swap_remove(at);
                self.write(&write);
            }
            // The session ends, and with it the ask.
            3 if !self.asks.is_empty() => {
                let at = self.random.usize(0..self.asks.len());
                self.asks.swap_remove(at);
            }
            // The database's server crashes.
            4 if !self.dbs.is_empty() => {
                let at = self.random.usize(0..self.dbs.len());
                self.lives += 1;
                self.dbs[at].life = self.lives;
                self.asks.retain(|(db, _)| *db != at);
            }
            5..9 if !self.dbs.is_empty() => self.begin(),
            _ if !self.asks.is_empty() => {
                let at = self.random.usize(0..self.asks.len());
                let (db, step) = self.asks.swap_remove(at);
                if let Some(next) = self.step(db, step) {
                    self.asks.push((db, next));
                }
            }
            _ => {}
        }
    }

    fn copy(&mut self) {
        let of = self.random.usize(0..self.dbs.len());
        self.dbs[of].is_copied = true;
        self.lives += 1;
        self.dbs.push(Db {
            life: self.lives,
            ..self.dbs[of].clone()
        });
    }

    /// One ask at a time has a database's lock.
    fn begin(&mut self) {
        let db = self.random.usize(0..self.dbs.len());
        if self.asks.iter().any(|(of, _)| *of == db) {
            return;
        }
        let Db {
            label,
            is_copied,
            life,
            next_life,
        } = self.dbs[db].clone();
        let under = |mark, worker_id| Asker {
            mark,
            worker_id,
            is_same_life: life == next_life,
            database: database(7),
        };
        let is_new = self.random.u32(0..12) == 0;
        let step = match (label.worker, label.mark, label.next) {
            // Nobody releases the number of a copy.
            (Some(worker), Some(mark), None) if !is_copied && self.random.u32(0..9) == 0 => {
                Step::Release(worker, mark)
            }
            (None, Some(mark), None) if !is_copied && self.random.bool() => {
                let row = self.rows.iter().find(|row| knows(row, mark));
                let Some(row) = row else { return };
                Step::Release(row.worker_id, mark)
            }
            (_, _, Some(next)) if !is_new => Step::Plan(under(next, None)),
            (Some(worker), Some(mark), None) if !is_new => {
                if label.is_suspended {
                    return;
                }
                Step::Plan(under(mark, Some(worker)))
            }
            (Some(_) | None, _, _) => Step::Plan(self.intend(db)),
        };
        self.asks.push((db, step));
    }

    fn intend(&mut self, db: usize) -> Asker {
        let mark = self.draw(0);
        let its = &mut self.dbs[db];
        (its.label.next, its.next_life) = (Some(mark), its.life);
        Asker {
            mark,
            worker_id: None,
            is_same_life: true,
            database: database(7),
        }
    }

    fn step(&mut self, db: usize, step: Step) -> Option<Step> {
        match step {
            Step::Plan(asker) => match plan_ask(&self.numbers(), &asker) {
                Ok(ask) => Some(Step::Commit(asker, ask)),
                Err(Refused::Stale { .. }) => {
                    assert!(self.dbs[db].is_copied, "it was never copied");
                    self.dbs[db].label.is_suspended = true;
                    self.suspended += 1;
                    None
                }
                Err(Refused::MayBeAnothers { .. }) => Some(Step::Plan(self.intend(db))),
                Err(other) => panic!("{other}"),
            },
            Step::Commit(asker, ask) => {
                let next = self.draw(ask.asks);
                match self.send(Write::Commit(asker.clone(), ask, next))? {
                    true => Some(Step::Mark(asker, ask.worker_id, next)),
                    false => Some(Step::Plan(asker)),
                }
            }
            Step::Mark(asker, worker_id, next) => {
                let its = &mut self.dbs[db];
                match asker.worker_id {
                    Some(_) => its.label.mark = Some(next),
                    None => (its.label.next, its.next_life) = (Some(next), its.life),
                }
                Some(Step::Confirm(asker, worker_id, next))
            }
            Step::Confirm(asker, worker_id, next) => {
                let row = self.rows.iter().find(|row| row.worker_id == worker_id);
                let is_unused = row.is_some_and(|row| !row.is_used);
                let is_confirmed = self.send(Write::Confirm(worker_id, next))?;
                let is_to_give = is_confirmed && asker.worker_id.is_none();
                is_to_give.then_some(Step::Give(worker_id, next, is_unused))
            }
            Step::Give(worker_id, mark, is_unused) => {
                self.give(db, worker_id, mark, is_unused);
                None
            }
            Step::Release(worker_id, mark) => {
                self.dbs[db].label.worker = None;
                self.send(Write::Release(worker_id, mark));
                None
            }
        }
    }

    fn give(&mut self, db: usize, worker_id: u32, mark: Mark, is_unused: bool) {
        let others = self.dbs.iter().enumerate().filter(|(at, other)| {
            *at != db && other.label.worker == Some(worker_id) && !other.label.is_suspended
        });
        assert_eq!(others.count(), 0, "{worker_id} is another's");
        assert!(
            !(is_unused && self.given.contains(&worker_id)),
            "{worker_id} was used"
        );
        self.given.push(worker_id);
        self.gives += 1;
        self.dbs[db].label = Label {
            worker: Some(worker_id),
            mark: Some(mark),
            ..Label::default()
        };
    }

    /// `None`: nobody hears what became of it, and the ask ends.
    fn send(&mut self, write: Write) -> Option<bool> {
        match self.fate() {
            Outcome::Answered => Some(self.write(&write)),
            Outcome::Lost => {
                self.write(&write);
                None
            }
            Outcome::Late => {
                self.late.push(write);
                None
            }
            Outcome::Never => None,
        }
    }

    /// As the transactions do.
    fn write(&mut self, write: &Write) -> bool {
        match write {
            Write::Commit(asker, ask, next) => {
                if plan_ask(&self.numbers(), asker).as_ref() != Ok(ask) {
                    return false;
                }
                self.rows.retain(|row| match ask.from {
                    Found::Own { .. } => true,
                    Found::New | Found::Lost | Found::Released { .. } => {
                        row.worker_id != ask.worker_id
                    }
                });
                match ask.from {
                    Found::New => self.next_id = ask.worker_id + 1,
                    Found::Own { .. } | Found::Lost | Found::Released { .. } => {}
                }
                let is_used = self.given.contains(&ask.worker_id);
                let row = self
                    .rows
                    .iter()
                    .position(|row| row.worker_id == ask.worker_id);
                let at = row.unwrap_or_else(|| {
                    let new = AssignedRow {
                        is_used,
                        ..row_of(ask.worker_id, asker.mark)
                    };
                    self.rows.push(new);
                    self.rows.len() - 1
                });
                let row = &mut self.rows[at];
                (row.mark, row.next, row.asks) = (asker.mark, Some(*next), ask.asks);
                true
            }
            Write::Confirm(worker_id, next) => {
                let row = self.rows.iter_mut().find(|row| {
                    row.worker_id == *worker_id
                        && row.state == AssignmentState::Assigned
                        && row.next == Some(*next)
                });
                let Some(row) = row else { return false };
                (row.mark, row.next, row.is_used) = (*next, None, true);
                true
            }
            Write::Release(worker_id, mark) => {
                let row = self
                    .rows
                    .iter_mut()
                    .find(|row| row.worker_id == *worker_id && knows(row, *mark));
                let Some(row) = row else { return false };
                row.state = AssignmentState::Released;
                row.released_at_ms = Some(0);
                row.asks += 1;
                true
            }
        }
    }
}

#[test]
fn no_number_is_two_databases_and_no_original_is_taken_for_a_copy() {
    let (mut gives, mut suspended) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..EVENTS {
            world.event();
        }
        gives += world.gives;
        suspended += world.suspended;
    }
    assert!(
        gives > 10_000 && suspended > 1_000,
        "{gives} given, {suspended} suspended"
    );
}
