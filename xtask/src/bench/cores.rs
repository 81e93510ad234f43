//! Which cores servers and clients run on.

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The calling thread.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// The cores of the machine: the first is that of what is measured, the others are everybody else's.
///
/// Where the kernel puts a server and its clients changes the time of a round trip several times over, and it changes its mind within
/// a run. So each has its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cores {
    first: CpuSet,
    others: CpuSet,
}

impl Cores {
    /// Those that the benchmark may use. Where there is but one, all run on it.
    ///
    /// # Errors
    /// The kernel does not say which cores there are.
    pub(super) fn get() -> Result<Cores> {
        let all = sched_getaffinity(THIS_THREAD)?;
        let mut there = (0..CpuSet::count()).filter(|&core| all.is_set(core).unwrap_or(false));
        let at = there.next().context("no core")?;
        let mut first = CpuSet::new();
        first.set(at)?;
        let mut others = all;
        if there.next().is_some() {
            others.unset(at)?;
        }
        Ok(Cores { first, others })
    }

    /// Does something on the first core; what it starts stays there.
    ///
    /// # Errors
    /// As the work; the kernel refuses.
    pub(super) fn on_first<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        on(&self.first, work)
    }

    /// Does something on the others; what it starts stays there.
    ///
    /// # Errors
    /// As the work; the kernel refuses.
    pub(super) fn on_others<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        on(&self.others, work)
    }

    /// Moves the calling thread to the first core.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn enter_first(&self) -> Result<()> {
        Ok(sched_setaffinity(THIS_THREAD, &self.first)?)
    }

    /// Moves the calling thread to the others.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn enter_others(&self) -> Result<()> {
        Ok(sched_setaffinity(THIS_THREAD, &self.others)?)
    }
}

fn on<T>(cores: &CpuSet, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = sched_getaffinity(THIS_THREAD)?;
    sched_setaffinity(THIS_THREAD, cores)?;
    let done = work();
    sched_setaffinity(THIS_THREAD, &before)?;
    done
}
