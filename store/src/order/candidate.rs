//! What the lease of ordered tags is to one program: when it reads it, takes it over, renews it, and gives it up.

use std::sync::Arc;

use super::{Action, Holder, LeaseRow, Tenure, Written, drift_ms, read_ms, renew_ms};

/// What a program is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Role {
    /// It looks whether the lease is renewed.
    Standby {
        watched: Option<Watched>,
        /// It takes nothing before, since it has just given the lease up.
        not_before_ms: u64,
    },
    /// It issues.
    Active {
        tenure: Tenure,
        renew_at_ms: u64,
        /// The server of the store that granted the epoch.
        server: Arc<str>,
    },
    /// Something went wrong that nobody expected: it takes nothing for a while, and reads the lease only so that clients can be told who has it.
    Resting { until_ms: u64 },
    /// It ends, and takes nothing any more.
    Leaving,
}

/// A renewal that is looked at, since it had been read for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Watched {
    row: LeaseRow,
    since_ms: u64,
}

/// What the lease is to one program.
#[derive(Debug, Clone)]
pub struct Candidate {
    ttl_ms: u64,
    role: Role,
    /// The largest epoch and renewal that it has seen: a store that has less was restored from a backup.
    seen: (u64, u64),
    /// The server of the store that said so.
    seen_on: String,
    /// The same server says less now.
    has_gone_back: bool,
    /// The lease is read no sooner.
    read_at_ms: u64,
    /// So long a lease that is free is left to others.
    courtesy_ms: u64,
}

impl Candidate {
    /// Of a program that begins.
    #[must_use]
    pub fn new(ttl_ms: u64) -> Self {
        Self {
            ttl_ms,
            role: Role::Standby {
                watched: None,
                not_before_ms: 0,
            },
            seen: (0, 0),
            seen_on: String::new(),
            has_gone_back: false,
            read_at_ms: 0,
            courtesy_ms: 0,
        }
    }

    /// The largest epoch that it has seen.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.seen.0
    }

    /// The largest epoch that it has seen, where the server of the store that said so says less now: that server's data was put back. What
    /// tags have issued since is lost with it, so nothing is taken. Of a server that takes another's place it is known that it may lack some.
    #[must_use]
    pub fn gone_back_from(&self) -> Option<u64> {
        self.has_gone_back.then_some(self.seen.0)
    }

    /// In which epoch it may issue, and until when.
    #[must_use]
    pub fn tenure(&self) -> Option<Tenure> {
        match &self.role {
            Role::Active { tenure, .. } => Some(*tenure),
            Role::Standby { .. } | Role::Resting { .. } | Role::Leaving => None,
        }
    }

    /// Which server of the store granted the epoch in which it may issue.
    #[must_use]
    pub fn granted_by(&self) -> Option<(u64, Arc<str>)> {
        match &self.role {
            Role::Active { tenure, server, .. } => Some((tenure.epoch, Arc::clone(server))),
            Role::Standby { .. } | Role::Resting { .. } | Role::Leaving => None,
        }
    }

    /// From now on a lease that is free is left to others for so long. To wait longer is always safe.
    pub fn leave_to_others(&mut self, courtesy_ms: u64) {
        self.courtesy_ms = courtesy_ms;
    }

    /// What to do at this moment.
    pub fn next(&mut self, now_ms: u64) -> Action {
        match &self.role {
            Role::Active { tenure, .. } if now_ms >= tenure.until_ms => {
                self.stand_by(0);
                Action::Read
            }
            Role::Active {
                tenure,
                renew_at_ms,
                ..
            } => match now_ms >= *renew_at_ms {
                true => Action::Renew {
                    epoch: tenure.epoch,
                },
                false => Action::Wait {
                    until_ms: *renew_at_ms,
                },
            },
            Role::Resting { until_ms } if now_ms >= *until_ms => {
                self.stand_by(0);
                Action::Read
            }
            Role::Standby { .. } | Role::Resting { .. } if now_ms < self.read_at_ms => {
                Action::Wait {
                    until_ms: self.read_at_ms,
                }
            }
            Role::Standby { .. } | Role::Resting { .. } => Action::Read,
            Role::Leaving => Action::Wait { until_ms: u64::MAX },
        }
    }

    /// The lease was read; the clock, behind that. What is to be done about it: take it, or nothing.
    pub fn has_read(&mut self, row: &LeaseRow, now_ms: u64) -> Option<Action> {
        self.read_at_ms = now_ms.saturating_add(read_ms(self.ttl_ms));
        let Role::Standby {
            watched,
            not_before_ms,
        } = &mut self.role
        else {
            return None;
        };
        let number = (row.renewal.epoch, row.renewal.number);
        let is_restored = number < self.seen;
        self.has_gone_back = is_restored && row.renewal.server == self.seen_on;
        if !is_restored {
            self.seen = number;
            self.seen_on.clone_from(&row.renewal.server);
        }
        let known = watched.take().filter(|its| its.row == *row);
        let since_ms = known.map_or(now_ms, |its| its.since_ms);
        *watched = Some(Watched {
            row: row.clone(),
            since_ms,
        });
        let watched_ms = now_ms.saturating_sub(since_ms);
        let left_ms = watched_ms.saturating_sub(self.courtesy_ms);
        let is_free = match &row.holder {
            _ if self.has_gone_back => false,
            Holder::Program { ttl_ms, .. } => left_ms >= self.ttl_ms.max(*ttl_ms),
            Holder::Nobody if is_restored => left_ms >= self.ttl_ms,
            Holder::Nobody => now_ms >= *not_before_ms && watched_ms >= self.courtesy_ms,
        };
        is_free.then(|| Action::TakeOver {
            seen: row.renewal.clone(),
            epoch: self.seen.0.saturating_add(1),
        })
    }

    /// The lease was to be taken in an epoch. `sent_ms`: the clock before that was sent.
    pub fn took_over(&mut self, epoch: u64, written: Written, sent_ms: u64, now_ms: u64) {
        match (&self.role, written) {
            (Role::Standby { watched, .. }, Written::Yes) => {
                self.seen = self.seen.max((epoch, 0));
                match watched {
                    // It named the renewal that was read last, with the server that said it.
                    Some(watched) => {
                        let server = watched.row.renewal.server.as_str().into();
                        self.role = self.active(epoch, sent_ms, server);
                    }
                    None => self.rest(now_ms),
                }
            }
            (Role::Standby { .. }, Written::No) => self.stand_by(0),
            (Role::Standby { .. }, Written::Unknown) => self.rest(now_ms),
            (Role::Active { .. } | Role::Resting { .. } | Role::Leaving, _) => {}
        }
    }

    /// The lease was to be renewed, or a confirmation was to stand, which is a renewal, too. `sent_ms`: the clock before that was sent.
    pub fn renewed(&mut self, epoch: u64, written: Written, sent_ms: u64, now_ms: u64) {
        let (until_ms, server) = match &self.role {
            Role::Active { tenure, server, .. } if tenure.epoch == epoch => {
                (tenure.until_ms, Arc::clone(server))
            }
            Role::Active { .. } | Role::Standby { .. } | Role::Resting { .. } | Role::Leaving => {
                return;
            }
        };
        match written {
            Written::Yes => self.role = self.active(epoch, sent_ms, server),
            Written::No => self.stop(until_ms, now_ms),
            // It issues on while it may, and asks again.
            Written::Unknown => {
                self.role = Role::Active {
                    tenure: Tenure { epoch, until_ms },
                    renew_at_ms: now_ms.saturating_add(read_ms(self.ttl_ms)),
                    server,
                };
            }
        }
    }

    /// Something went wrong that nobody expected: whether it is active is not known, or the store says what cannot be.
    pub fn rest(&mut self, now_ms: u64) {
        self.role = Role::Resting {
            until_ms: now_ms.saturating_add(self.ttl_ms.saturating_mul(2)),
        };
    }

    /// The store reserves nothing more in an epoch: somebody else has taken over.
    pub fn lost(&mut self, epoch: u64, now_ms: u64) {
        match self.tenure() {
            Some(tenure) if tenure.epoch == epoch => self.stop(tenure.until_ms, now_ms),
            Some(_) | None => {}
        }
    }

    /// Somebody else has the lease. That he has it before this program's time was up cannot be, unless clocks or the store are not what is
    /// assumed of them: whoever finds that out keeps away for a while.
    fn stop(&mut self, until_ms: u64, now_ms: u64) {
        match now_ms < until_ms {
            true => self.rest(now_ms),
            false => self.stand_by(0),
        }
    }

    /// It issues nothing from now on, so that somebody else can; the epoch that is to be released. Nobody asks what became of the release.
    pub fn demote(&mut self, now_ms: u64) -> Option<u64> {
        let epoch = self.tenure()?.epoch;
        self.stand_by(now_ms.saturating_add(self.ttl_ms));
        Some(epoch)
    }

    /// The same for good.
    pub fn leave(&mut self) -> Option<u64> {
        let epoch = self.tenure().map(|tenure| tenure.epoch);
        self.role = Role::Leaving;
        epoch
    }

    fn stand_by(&mut self, not_before_ms: u64) {
        self.read_at_ms = 0;
        self.role = Role::Standby {
            watched: None,
            not_before_ms,
        };
    }

    fn active(&self, epoch: u64, sent_ms: u64, server: Arc<str>) -> Role {
        let lasts_ms = self.ttl_ms.saturating_sub(drift_ms(self.ttl_ms));
        Role::Active {
            tenure: Tenure {
                epoch,
                until_ms: sent_ms.saturating_add(lasts_ms),
            },
            renew_at_ms: sent_ms.saturating_add(renew_ms(self.ttl_ms)),
            server,
        }
    }
}
