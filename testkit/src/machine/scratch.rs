//! Temporary directories that a server's account can reach.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use nix::sys::statvfs::statvfs;
use tempfile::TempDir;

use crate::{Account, Result};

/// The environment variable that names the directory which test servers keep their data in; without it that is the system's for
/// temporary files. What `cargo xtask test` sets has no disk behind it: tests wait for processes that are killed, never for machines.
pub const SERVER_DATA_VARIABLE: &str = "KEYWRIGHT_SERVER_DATA";

/// Files here are in memory.
const MEMORY_DIR: &str = "/dev/shm";

/// So much memory has to be free for servers' data to be kept there, bytes: the suites' take up to 3 GB, and their builds 2 GB.
const MEMORY_BYTES_MIN: u64 = 8 << 30;

/// Where test servers can keep their data without a disk, if there is memory enough: a disk is half of what making, copying and
/// removing thousands of small files costs.
///
/// # Errors
/// The system does not say how much memory is free.
pub fn server_data_in_memory() -> Result<Option<&'static Path>> {
    let directory = Path::new(MEMORY_DIR);
    let Ok(room) = statvfs(directory) else {
        return Ok(None);
    };
    let room_bytes = room.blocks_available() * room.fragment_size();
    let memory = fs::read_to_string("/proc/meminfo").context("reading /proc/meminfo")?;
    let available = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let available_kb = available.and_then(|rest| rest.trim().strip_suffix(" kB"));
    let memory_bytes = available_kb.context("MemAvailable")?.parse::<u64>()? << 10;
    Ok((room_bytes.min(memory_bytes) >= MEMORY_BYTES_MIN).then_some(directory))
}

/// A directory for the files that programs write while they give keys, in memory where servers' data is: a disk that stands still for seconds is not what
/// such tests are about.
///
/// # Errors
/// It cannot be made.
pub fn scratch_dir() -> Result<TempDir> {
    let base = env::var_os(SERVER_DATA_VARIABLE).map_or_else(env::temp_dir, PathBuf::from);
    let dir = tempfile::Builder::new()
        .prefix("keywright-files-")
        .tempdir_in(&base);
    dir.with_context(|| format!("making a temporary directory in {}", base.display()))
}

/// A directory that the account can enter, removed when dropped. The path is short: a socket's may have 107 bytes.
#[derive(Debug)]
pub(crate) struct Scratch {
    dir: TempDir,
}

impl Scratch {
    pub(crate) fn new(purpose: &str, account: Account) -> Result<Scratch> {
        let base = match account {
            Account::Ourselves => env::temp_dir(),
            // TMPDIR of root may be closed to everybody else.
            Account::Other { .. } => PathBuf::from("/tmp"),
        };
        Scratch::below(&base, purpose, account)
    }

    /// For a server's data, in the directory that [`SERVER_DATA_VARIABLE`] names.
    pub(crate) fn for_data(purpose: &str, account: Account) -> Result<Scratch> {
        match env::var_os(SERVER_DATA_VARIABLE) {
            Some(base) => Scratch::below(Path::new(&base), purpose, account),
            None => Scratch::new(purpose, account),
        }
    }

    fn below(base: &Path, purpose: &str, account: Account) -> Result<Scratch> {
        let dir = tempfile::Builder::new()
            .prefix(&format!("keywright-{purpose}-"))
            .tempdir_in(base)
            .with_context(|| format!("making a temporary directory in {}", base.display()))?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))
            .context("opening a temporary directory")?;
        account.own(dir.path())?;
        Ok(Scratch { dir })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}
