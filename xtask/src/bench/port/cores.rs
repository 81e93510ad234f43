//! Which cores servers and clients run on.

use anyhow::{Context, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::load::Load;

/// The calling thread.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// The cores of the machine, as the benchmark uses them.
///
/// Where the kernel puts a server and its clients changes the time of a round trip several times over, and it changes its mind within
/// a run. So each has its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cores {
    /// All that the benchmark may use.
    all: CpuSet,
    /// That of the servers.
    servers: CpuSet,
    /// Those of clients that run while their server runs.
    clients: CpuSet,
}

impl Cores {
    /// # Errors
    /// The kernel does not say which cores there are, or there is none.
    pub(super) fn get() -> Result<Cores> {
        let all = sched_getaffinity(THIS_THREAD)?;
        let mut servers = CpuSet::new();
        let mut clients = all;
        let is_there = |&core: &usize| all.is_set(core).unwrap_or(false);
        let first = (0..CpuSet::count()).find(is_there).context("no core")?;
        servers.set(first)?;
        clients.unset(first)?;
        let has_more = (0..CpuSet::count()).any(|core| clients.is_set(core).unwrap_or(false));
        Ok(Cores {
            all,
            servers,
            clients: if has_more { clients } else { all },
        })
    }

    /// Does something on the servers' core; what it starts stays there.
    ///
    /// # Errors
    /// As the work; the kernel refuses.
    pub(super) fn as_server<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        sched_setaffinity(THIS_THREAD, &self.servers)?;
        let done = work();
        sched_setaffinity(THIS_THREAD, &self.all)?;
        done
    }

    /// Moves the calling thread to where a client of this load runs: one client and its server take turns, so they share a core.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn enter_as_client(&self, load: Load) -> Result<()> {
        let cores = match load.clients {
            1 => &self.servers,
            _ => &self.clients,
        };
        Ok(sched_setaffinity(THIS_THREAD, cores)?)
    }
}
