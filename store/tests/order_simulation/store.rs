//! The store: one row with the lease, one with the tag's bound.

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
    Row(LeaseRow),
    Written(bool),
    Granted(u64, u64),
    Denied,
}

/// So far a promoted server begins above what it has, and above what it lacks.
const GAP: u64 = 1_000;

#[derive(Debug, Clone)]
pub struct Store {
    identity: String,
    epoch: u64,
    number: u64,
    holder: Holder,
    hi: u64,
    pub takeovers: u64,
}

impl Store {
    pub fn new() -> Store {
        Store {
            identity: "store".to_owned(),
            epoch: 0,
            number: 0,
            holder: Holder::Nobody,
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

    fn is_of(&self, owner: &str, epoch: u64) -> bool {
        let is_his = matches!(&self.holder, Holder::Program { owner: its, .. } if its == owner);
        is_his && self.epoch == epoch
    }

    /// Somebody who is no program takes the lease by hand.
    pub fn be_robbed(&mut self, ttl_ms: u64) {
        self.epoch += 1;
        self.number += 1;
        self.holder = Holder::Program {
            owner: "nobody".to_owned(),
            address: String::new(),
            ttl_ms,
        };
    }

    pub fn carry_out(&mut self, owner: &str, ttl_ms: u64, ask: &Ask, flaws: &[Flaw]) -> Answer {
        match ask {
            Ask::Read => Answer::Row(LeaseRow {
                renewal: Renewal {
                    server: self.identity.clone(),
                    epoch: self.epoch,
                    number: self.number,
                },
                holder: self.holder.clone(),
            }),
            Ask::TakeOver { seen, epoch } => {
                let names_renewal = !flaws.contains(&Flaw::TakeOverWithoutRenewal);
                let stands = seen.server == self.identity
                    && seen.epoch == self.epoch
                    && (seen.number == self.number || !names_renewal);
                if stands {
                    self.epoch = *epoch;
                    self.number += 1;
                    self.takeovers += 1;
                    self.holder = Holder::Program {
                        owner: owner.to_owned(),
                        address: String::new(),
                        ttl_ms,
                    };
                }
                Answer::Written(stands)
            }
            Ask::Renew { epoch } => {
                let is_his = self.is_of(owner, *epoch);
                self.number += u64::from(is_his);
                Answer::Written(is_his)
            }
            Ask::Confirm { epoch, server } => {
                let is_his =
                    self.is_of(owner, *epoch) || flaws.contains(&Flaw::ConfirmWithoutEpoch);
                let is_here = *server == self.identity || flaws.contains(&Flaw::ConfirmOnAnyServer);
                self.number += u64::from(is_his && is_here);
                Answer::Written(is_his && is_here)
            }
            Ask::Release { epoch } => {
                let is_his = self.is_of(owner, *epoch);
                if is_his {
                    self.number += 1;
                    self.holder = Holder::Nobody;
                }
                Answer::Written(is_his)
            }
            Ask::Reserve { epoch, ids } => {
                if !self.is_of(owner, *epoch) && !flaws.contains(&Flaw::ReserveInAnyEpoch) {
                    return Answer::Denied;
                }
                let start = self.hi;
                self.hi += ids;
                Answer::Granted(start, self.hi)
            }
        }
    }
}
