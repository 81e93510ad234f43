//! The store: what is committed, on which server.

use keywright_core::residue::Residue;
use keywright_core::{Layout, Step, StepPolicy};
use keywright_store::lease::LeaseRow;
use keywright_store::reserve::{Ends, LastReservation, Returned, TagRow};

/// A lease row with the time at which it expires.
#[derive(Debug, Clone)]
pub struct Lease {
    pub row: LeaseRow,
    pub expires_ms: i64,
}

/// What one server has.
#[derive(Debug, Clone)]
pub struct Store {
    /// Counts promotions.
    pub server: u32,
    pub number: u64,
    /// Server, moment, ids, rate.
    pub last: (u32, i64, u64, u64),
    pub returned: Vec<(Returned, u32)>,
    pub keys: u64,
    pub leases: Vec<Lease>,
    /// Of all ids.
    pub layout: Layout,
}

const STEP: i64 = 12;

impl Store {
    pub fn new(now_ms: i64, layout: Layout) -> Store {
        Store {
            server: 1,
            number: 1,
            last: (1, now_ms, 0, 0),
            returned: Vec::new(),
            keys: 0,
            leases: Vec::new(),
            layout,
        }
    }

    pub fn name(&self) -> String {
        format!("server {}", self.server)
    }

    /// The tag's row as the service reads it.
    pub fn row(&self) -> TagRow {
        let step = |step| Step::new(step).unwrap();
        let (server, at_ms, ids, rate_per_s) = self.last;
        TagRow {
            number: self.number,
            ends: Ends::NextId,
            id_max: i64::MAX.unsigned_abs(),
            step: step(STEP),
            policy: StepPolicy {
                step_min: step(STEP / 2),
                step_max: step(STEP * 4),
                cover_ms: 1_000,
            },
            residue: Residue::ALL,
            refill_percent: 50,
            last: Some(LastReservation {
                same_server: server == self.server,
                at_ms,
                ids,
                rate_per_s,
            }),
        }
    }

    /// All lease rows, as read at a moment.
    pub fn lease_rows(&self, now_ms: i64) -> Vec<LeaseRow> {
        let read = |lease: &Lease| LeaseRow {
            expired: lease.expires_ms <= now_ms,
            ..lease.row.clone()
        };
        self.leases.iter().map(read).collect()
    }

    /// A row for a worker id, made if it is missing.
    pub fn lease_mut(&mut self, worker_id: u32) -> &mut Lease {
        let at = self
            .leases
            .iter()
            .position(|lease| lease.row.worker_id == worker_id);
        let at = at.unwrap_or_else(|| {
            self.leases.push(Lease {
                row: LeaseRow {
                    worker_id,
                    owner: None,
                    holder: None,
                    epoch: 0,
                    hi_ms: 0,
                    layout: self.layout,
                    server: self.name(),
                    expired: true,
                },
                expires_ms: 0,
            });
            self.leases.len() - 1
        });
        &mut self.leases[at]
    }
}
