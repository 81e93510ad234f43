//! Locks on keywright's own tables and sequences: waited for no longer than allowed, and who has them.
//!
//! Nobody waits for one in a gate (but for the first use after a promotion, which reads the notes of all tags), nor while it holds
//! another that it took for the same purpose: who has the one may be waiting for the other.

use std::time::{Duration, Instant};

use keywright_core::cause::Cause;
use pgrx::pg_sys;

use crate::durable::wait::{self, timed_out};
use crate::failure::Failure;
use crate::server::lock::{self, LockedFor};
use crate::server::{process, query, relation, text};

/// Most holders that a message names.
const NAMED_MAX: i64 = 5;
/// How long to wait before looking whether who has the lock waits for this transaction; twice as long each time, because the look
/// stops the server's locks for a moment.
const FIRST_LOOK_MS: u64 = 1_000;

/// The server's modes of locks on relations, in its order.
const MODES: [&str; 8] = [
    "AccessShare",
    "RowShare",
    "RowExclusive",
    "ShareUpdateExclusive",
    "Share",
    "ShareRowExclusive",
    "Exclusive",
    "AccessExclusive",
];

/// What is locked as a whole or not at all.
pub struct Wanted(Vec<(pg_sys::Oid, LockedFor)>);

impl Wanted {
    /// Sequences, to change them.
    pub fn to_change(sequences: &[pg_sys::Oid]) -> Self {
        Self::all(sequences, LockedFor::Changing)
    }

    /// Sequences, to keep every other session from changing them until the transaction ends.
    pub fn alone(sequences: &[pg_sys::Oid]) -> Self {
        Self::all(sequences, LockedFor::BeingAlone)
    }

    fn all(relations: &[pg_sys::Oid], purpose: LockedFor) -> Self {
        Self(
            relations
                .iter()
                .map(|relation| (*relation, purpose))
                .collect(),
        )
    }

    /// Sequences, to drop them.
    pub fn to_drop(sequences: &[pg_sys::Oid]) -> Self {
        Self::all(sequences, LockedFor::Dropping)
    }

    /// A table, to read it.
    pub fn to_read(table: pg_sys::Oid) -> Self {
        Self(Vec::new()).and_read(table)
    }

    /// And a table, to read it. An index that is being rebuilt is locked while its table is not, so they count, too.
    pub fn and_read(mut self, table: pg_sys::Oid) -> Self {
        self.0.push((table, LockedFor::Reading));
        self
    }

    /// Locks all that is wanted if it is free, until the transaction ends or the locks are given back.
    pub fn try_lock(&self) -> Option<Locked> {
        let mut locked = Locked(Vec::new());
        let is_free = self.0.iter().all(|&(relation, purpose)| {
            locked.add(relation, purpose)
                && match purpose {
                    LockedFor::Reading => relation::indexes(relation)
                        .into_iter()
                        .all(|index| locked.add(index, purpose)),
                    LockedFor::Changing | LockedFor::BeingAlone | LockedFor::Dropping => true,
                }
        });
        if is_free {
            return Some(locked);
        }
        locked.give_back();
        None
    }

    /// Locks all that is wanted. `name` says what is waited for.
    ///
    /// # Errors
    /// It is not free before the deadline, or who has it waits for this transaction.
    pub fn lock(&self, deadline: Instant, name: &dyn Fn() -> String) -> Result<(), Failure> {
        let mut look_ms = FIRST_LOOK_MS;
        loop {
            let next_look = deadline.min(Instant::now() + Duration::from_millis(look_ms));
            if wait::until(next_look, || self.try_lock().is_some()).is_ok() {
                return Ok(());
            }
            let holders = Holders::of(self);
            if holders.wait_for_us {
                return Err(Failure::new(
                    Cause::RefillTimeout,
                    format!(
                        "cannot wait for {}: who has the lock waits for this transaction",
                        name()
                    ),
                )
                .detail(holders.sentence)
                .hint("Roll this transaction back and retry."));
            }
            if next_look >= deadline {
                return Err(timed_out(&name()).detail(holders.sentence));
            }
            look_ms = look_ms.saturating_mul(2);
        }
    }
}

/// Locks that were taken together; the transaction keeps them unless they are given back.
pub struct Locked(Vec<(pg_sys::Oid, LockedFor)>);

impl Locked {
    fn add(&mut self, relation: pg_sys::Oid, purpose: LockedFor) -> bool {
        let is_free = lock::try_relation(relation, purpose);
        if is_free {
            self.0.push((relation, purpose));
        }
        is_free
    }

    /// Gives them back; those that the transaction had before stay.
    pub fn give_back(self) {
        for (relation, purpose) in self.0 {
            lock::give_back(relation, purpose);
        }
    }
}

/// Modes of locks that keep this transaction from locking for a purpose: some mode, and all behind it.
fn conflicting(purpose: LockedFor) -> Vec<String> {
    let first = match purpose {
        LockedFor::Reading => "AccessExclusive",
        LockedFor::Changing => "Share",
        LockedFor::BeingAlone => "RowExclusive",
        LockedFor::Dropping => "AccessShare",
    };
    let modes = MODES.iter().skip_while(|mode| **mode != first);
    modes.map(|mode| format!("{mode}Lock")).collect()
}

/// Who has the lock on the register of worker ids, for a message.
pub fn who_has_register() -> String {
    let (class, object, kind) = lock::REGISTER;
    let who = query::one_row_as(
        pg_sys::BOOTSTRAP_SUPERUSERID.into(),
        "SELECT CASE WHEN l.pid IS NULL THEN pg_catalog.format('Prepared transaction \"%s\"', p.gid) \
                ELSE pg_catalog.format('Process %s', l.pid) END \
         FROM pg_catalog.pg_locks l \
         LEFT JOIN pg_catalog.pg_locks x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype OPERATOR(pg_catalog.=) 'transactionid' \
              AND x.virtualtransaction OPERATOR(pg_catalog.=) l.virtualtransaction \
         LEFT JOIN pg_catalog.pg_prepared_xacts p ON p.transaction OPERATOR(pg_catalog.=) x.transactionid \
         WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory' AND l.granted AND l.classid::pg_catalog.int8 OPERATOR(pg_catalog.=) $1 \
         AND l.objid::pg_catalog.int8 OPERATOR(pg_catalog.=) $2 AND l.objsubid::pg_catalog.int8 OPERATOR(pg_catalog.=) $3",
        &[
            i64::from(class).into(),
            i64::from(object).into(),
            i64::from(kind).into(),
        ],
        |row| row.get::<Vec<u8>>(1),
    );
    match who.flatten() {
        Some(who) => format!("{} has it.", text::shown(&who)),
        None => "Whoever had it has ended meanwhile.".to_owned(),
    }
}

/// Who has a lock that is wanted, or is next to get it.
struct Holders {
    /// For a message.
    sentence: String,
    /// One of them waits for a lock that this transaction has.
    wait_for_us: bool,
}

impl Holders {
    fn of(wanted: &Wanted) -> Self {
        let found: Vec<Self> = wanted
            .0
            .iter()
            .filter_map(|&(relation, purpose)| Self::of_one(relation, purpose))
            .collect();
        if found.is_empty() {
            return Self {
                sentence: "Whoever had a lock on it has ended meanwhile.".to_owned(),
                wait_for_us: false,
            };
        }
        let sentences: Vec<&str> = found.iter().map(|found| found.sentence.as_str()).collect();
        Self {
            sentence: sentences.join(" "),
            wait_for_us: found.iter().any(|found| found.wait_for_us),
        }
    }

    fn of_one(relation: pg_sys::Oid, purpose: LockedFor) -> Option<Self> {
        let found = query::one_row_as(
            pg_sys::BOOTSTRAP_SUPERUSERID.into(),
            "SELECT pg_catalog.string_agg(who, '; ' ORDER BY who), \
                    pg_catalog.bool_or(pg_catalog.pg_backend_pid() OPERATOR(pg_catalog.=) ANY (pg_catalog.pg_blocking_pids(pid))) \
             FROM (SELECT DISTINCT l.pid, \
                   CASE WHEN l.pid IS NULL THEN pg_catalog.format('Prepared transaction \"%s\"', p.gid) \
                        ELSE pg_catalog.format('Process %s', l.pid) END \
                   OPERATOR(pg_catalog.||) CASE WHEN l.granted THEN ' holds' ELSE ' waits for' END \
                   OPERATOR(pg_catalog.||) pg_catalog.format(' a lock on %s', c.relname) AS who \
             FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) l.relation \
             LEFT JOIN pg_catalog.pg_locks x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype OPERATOR(pg_catalog.=) 'transactionid' \
                  AND x.virtualtransaction OPERATOR(pg_catalog.=) l.virtualtransaction \
             LEFT JOIN pg_catalog.pg_prepared_xacts p ON p.transaction OPERATOR(pg_catalog.=) x.transactionid \
             WHERE l.locktype OPERATOR(pg_catalog.=) 'relation' AND l.mode OPERATOR(pg_catalog.=) ANY ($2) \
             AND (l.pid IS NOT NULL OR p.gid IS NOT NULL) \
             AND (l.pid IS NULL OR l.pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()) \
             AND l.database OPERATOR(pg_catalog.=) $3 AND (l.relation OPERATOR(pg_catalog.=) $1 OR l.relation OPERATOR(pg_catalog.=) ANY \
                 (SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid OPERATOR(pg_catalog.=) $1)) \
             ORDER BY who LIMIT $4) w",
            &[
                relation.into(),
                conflicting(purpose).into(),
                process::database().into(),
                NAMED_MAX.into(),
            ],
            |row| (row.get::<Vec<u8>>(1), row.get::<bool>(2)),
        );
        let (who, wait_for_us) = found?;
        Some(Self {
            sentence: format!("{}.", text::shown(&who?)),
            wait_for_us: wait_for_us.unwrap_or(false),
        })
    }
}
