//! The store: a row with each lease, one with the tag's bound, and into how many groups slots are divided. Of one group the first lease is the
//! tag's, of two the second.

use keywright_store::order::{Holder, LeaseRow, Renewal};

use crate::node::Flaw;

/// What a program asks of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    Read,
    TakeOver { seen: Renewal, epoch: u64 },
    Renew { epoch: u64 },
    Release { epoch: u64 },
    Reserve { epoch: u64, ids: u64 },
    Confirm { epoch: u64, server: String },
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The lease by the asker's number of groups, and the store's number.
    Row(LeaseRow, usize),
    Written(bool),
    Granted(u64, u64),
    Denied,
}

/// So far a promoted server begins above what it has, and above what it lacks.
const GAP: u64 = 1_000;

/// A lease.
#[derive(Debug, Clone)]
struct Lease {
    epoch: u64,
    number: u64,
    holder: Holder,
}

impl Lease {
    fn is_of(&self, owner: &str, epoch: u64) -> bool {
        let is_his = matches!(&self.holder, Holder::Program { owner: its, .. } if its == owner);
        is_his && self.epoch == epoch
    }
}

#[derive(Debug, Clone)]
pub struct Store {
    identity: String,
    /// 1 or 2.
    pub groups: usize,
    leases: [Lease; 2],
    hi: u64,
    pub takeovers: u64,
}

impl Store {
    pub fn new() -> Store {
        let lease = Lease {
            epoch: 0,
            number: 0,
            holder: Holder::Nobody,
        };
        Store {
            identity: "store".to_owned(),
            groups: 1,
            leases: [lease.clone(), lease],
            hi: 1,
            takeovers: 0,
        }
    }

    /// Another server takes its place, which has what this one had then.
    pub fn be_replaced_by(&mut self, then: Store, name: String) {
        *self = Store {
            identity: name,
            hi: self.hi + GAP,
            takeovers: self.takeovers,
            ..then
        };
    }

    /// Somebody who is no program takes the lease by hand.
    pub fn be_robbed(&mut self, ttl_ms: u64) {
        let lease = &mut self.leases[0];
        lease.epoch += 1;
        lease.number += 1;
        lease.holder = Holder::Program {
            owner: "nobody".to_owned(),
            address: String::new(),
            ttl_ms,
        };
    }

    /// Both leases, as whoever divides slots reads them.
    pub fn rows(&self) -> [LeaseRow; 2] {
        [0, 1].map(|at| self.row(at))
    }

    fn row(&self, at: usize) -> LeaseRow {
        let lease = &self.leases[at];
        LeaseRow {
            renewal: Renewal {
                server: self.identity.clone(),
                epoch: lease.epoch,
                number: lease.number,
            },
            holder: lease.holder.clone(),
        }
    }

    /// Divides slots into so many groups, if all leases stand as they were seen.
    pub fn divide(&mut self, groups: usize, seen: &[Renewal], flaws: &[Flaw]) -> bool {
        let stands = self
            .rows()
            .iter()
            .zip(seen)
            .all(|(row, seen)| row.renewal == *seen);
        if stands {
            self.groups = groups;
            if !flaws.contains(&Flaw::DivideWithoutEpoch) {
                for lease in &mut self.leases {
                    lease.epoch += 1;
                    lease.number += 1;
                    lease.holder = Holder::Nobody;
                }
            }
        }
        stands
    }

    /// What a program asks that has this number of groups.
    pub fn carry_out(
        &mut self,
        (owner, groups): (&str, usize),
        ttl_ms: u64,
        ask: &Ask,
        flaws: &[Flaw],
    ) -> Answer {
        let row = self.row(groups - 1);
        let lease = &mut self.leases[groups - 1];
        match ask {
            Ask::Read => Answer::Row(row, self.groups),
            Ask::TakeOver { seen, epoch } => {
                let names_renewal = !flaws.contains(&Flaw::TakeOverWithoutRenewal);
                let stands = seen.server == self.identity
                    && seen.epoch == lease.epoch
                    && (seen.number == lease.number || !names_renewal);
                if stands {
                    lease.epoch = *epoch;
                    lease.number += 1;
                    self.takeovers += 1;
                    lease.holder = Holder::Program {
                        owner: owner.to_owned(),
                        address: String::new(),
                        ttl_ms,
                    };
                }
                Answer::Written(stands)
            }
            Ask::Renew { epoch } => {
                let is_his = lease.is_of(owner, *epoch);
                lease.number += u64::from(is_his);
                Answer::Written(is_his)
            }
            Ask::Confirm { epoch, server } => {
                let is_his =
                    lease.is_of(owner, *epoch) || flaws.contains(&Flaw::ConfirmWithoutEpoch);
                let is_here = *server == self.identity || flaws.contains(&Flaw::ConfirmOnAnyServer);
                lease.number += u64::from(is_his && is_here);
                Answer::Written(is_his && is_here)
            }
            Ask::Release { epoch } => {
                let is_his = lease.is_of(owner, *epoch);
                if is_his {
                    lease.number += 1;
                    lease.holder = Holder::Nobody;
                }
                Answer::Written(is_his)
            }
            Ask::Reserve { epoch, ids } => {
                let is_active = lease.is_of(owner, *epoch) && groups == self.groups;
                // Whoever takes no notice of the number does so here, too.
                let is_let = flaws.contains(&Flaw::ReserveInAnyEpoch)
                    || flaws.contains(&Flaw::NumberNotRead) && lease.is_of(owner, *epoch);
                if !is_active && !is_let {
                    return Answer::Denied;
                }
                let start = self.hi;
                self.hi += ids;
                Answer::Granted(start, self.hi)
            }
        }
    }
}
