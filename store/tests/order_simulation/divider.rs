//! Whoever changes the number of slot groups while programs run: the decisions are those of `keywright init`.

use fastrand::Rng;
use keywright_store::order::dividing::{Dividing, Step};
use keywright_store::order::{LeaseRow, Renewal};

use crate::node::Flaw;
use crate::store::Store;

/// What is on its way, and when it arrives.
enum Doing {
    /// Nothing, until then.
    Rests(u64),
    /// What was read.
    Read(u64, [LeaseRow; 2]),
    /// The change.
    Changes(u64, Vec<Renewal>),
}

pub struct Divider {
    dividing: Dividing,
    doing: Doing,
    ttl_ms: u64,
    /// Of its clock, per thousand.
    rate: u64,
    pub changes: u64,
}

impl Divider {
    pub fn new(ttl_ms: u64, is_strict: bool, rng: &mut Rng) -> Divider {
        Divider {
            dividing: Dividing::new(ttl_ms),
            doing: Doing::Rests(rng.u64(0..1_000)),
            ttl_ms,
            rate: match is_strict {
                true => rng.u64(50..=5_000),
                false => rng.u64(970..=1_030),
            },
            changes: 0,
        }
    }

    pub fn step(&mut self, now: u64, store: &mut Store, rng: &mut Rng, flaws: &[Flaw]) {
        let (Doing::Rests(at) | Doing::Read(at, _) | Doing::Changes(at, _)) = &self.doing;
        if now < *at {
            return;
        }
        let way = match rng.u64(0..10) {
            0 => rng.u64(0..250),
            _ => rng.u64(0..5),
        };
        self.doing = match &self.doing {
            Doing::Rests(_) => Doing::Read(now + way, store.rows()),
            Doing::Read(_, rows) => match self.dividing.has_read(rows, now * self.rate / 1_000) {
                Step::Change(seen) => Doing::Changes(now + way, seen),
                _ if flaws.contains(&Flaw::DivideWithoutWaiting) => {
                    let seen = rows.iter().map(|row| row.renewal.clone());
                    Doing::Changes(now + way, seen.collect())
                }
                Step::Wait => Doing::Rests(now + way),
                Step::IsActive(_) => self.begin_anew(now, rng),
            },
            Doing::Changes(_, seen) => {
                let other = 3 - store.groups;
                self.changes += u64::from(store.divide(other, seen, flaws));
                self.begin_anew(now, rng)
            }
        };
    }

    fn begin_anew(&mut self, now: u64, rng: &mut Rng) -> Doing {
        self.dividing = Dividing::new(self.ttl_ms);
        Doing::Rests(now + rng.u64(0..300))
    }
}
