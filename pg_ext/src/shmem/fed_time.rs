//! What a database whose snowflake ids are fed wants and was handed.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::shmem::gate::Held;

/// Time that was handed over: with this worker id ids may be issued of moments from the first on and before the second.
#[derive(Clone, Copy)]
pub struct HandedTime {
    /// The worker id.
    pub worker: u32,
    /// The first moment, unix milliseconds.
    pub from_ms: i64,
    /// The first moment after it, unix milliseconds.
    pub until_ms: i64,
    /// The key space of the store's snowflake ids.
    pub key_space: u64,
}

/// Changed by the holder of the slot's gate.
#[derive(Default)]
#[repr(C)]
pub struct FedTime {
    next_worker: AtomicU64,
    next_from_ms: AtomicI64,
    /// 0: there is none.
    next_until_ms: AtomicI64,
    next_key_space: AtomicU64,
    /// The first state that may not be issued.
    pub limit_state: AtomicU64,
    /// When a state from here on is published, the next time is asked for.
    pub ask_state: AtomicU64,
    /// The key space that the database knows; 0: not known.
    pub key_space: AtomicU64,
    /// The one that is noted on disk and on the standbys, as this life of the memory knows; 0: none is. One that is only read may be so by an attempt that
    /// did not wait.
    pub kept_key_space: AtomicU64,
    /// The worker id that was handed over last, and until when: in this life of the memory, or before it as far as the database knows.
    pub floor_worker: AtomicU64,
    /// See there; 0: none was.
    pub floor_ms: AtomicI64,
    /// Hand-overs that were taken in this life of the memory.
    pub taken: AtomicU64,
    /// 1: time is wanted.
    pub wanted: AtomicU64,
    /// When a program was told so, boot time in milliseconds; 0: none was.
    pub told_boot_ms: AtomicU64,
}

impl FedTime {
    /// The time that nobody uses yet.
    pub fn next(&self) -> Option<HandedTime> {
        let until_ms = self.next_until_ms.load(Ordering::Acquire);
        (until_ms > 0).then(|| HandedTime {
            worker: u32::try_from(self.next_worker.load(Ordering::Relaxed)).unwrap_or(u32::MAX),
            from_ms: self.next_from_ms.load(Ordering::Relaxed),
            until_ms,
            key_space: self.next_key_space.load(Ordering::Relaxed),
        })
    }

    /// Keeps time until somebody needs it.
    pub fn keep(&self, time: HandedTime, _held: &Held<'_>) {
        self.next_worker
            .store(time.worker.into(), Ordering::Relaxed);
        self.next_from_ms.store(time.from_ms, Ordering::Relaxed);
        self.next_key_space.store(time.key_space, Ordering::Relaxed);
        self.floor_worker
            .store(time.worker.into(), Ordering::Relaxed);
        self.floor_ms.store(time.until_ms, Ordering::Relaxed);
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.wanted.store(0, Ordering::Relaxed);
        self.told_boot_ms.store(0, Ordering::Relaxed);
        self.next_until_ms.store(time.until_ms, Ordering::Release);
    }

    /// It is in use, or worthless.
    pub fn clear(&self, _held: &Held<'_>) {
        self.next_until_ms.store(0, Ordering::Release);
    }

    /// The key space of what was handed over: the one that the database knows, or that of what it uses next; 0: not known.
    pub fn handed_key_space(&self) -> u64 {
        match self.key_space.load(Ordering::Relaxed) {
            0 => self.next_key_space.load(Ordering::Relaxed),
            known => known,
        }
    }

    /// What was handed over last, and until when.
    pub fn floor(&self) -> Option<(u32, i64)> {
        let until_ms = self.floor_ms.load(Ordering::Relaxed);
        let worker = u32::try_from(self.floor_worker.load(Ordering::Relaxed)).ok()?;
        (until_ms > 0).then_some((worker, until_ms))
    }

    pub(super) fn numbers(&self) -> [&AtomicU64; 10] {
        [
            &self.next_worker,
            &self.next_key_space,
            &self.limit_state,
            &self.ask_state,
            &self.key_space,
            &self.kept_key_space,
            &self.floor_worker,
            &self.taken,
            &self.wanted,
            &self.told_boot_ms,
        ]
    }

    pub(super) fn moments(&self) -> [&AtomicI64; 3] {
        [&self.next_from_ms, &self.next_until_ms, &self.floor_ms]
    }
}
