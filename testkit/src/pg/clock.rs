//! A server's clock that a test can step while the server runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{Account, Result};

/// Where Debian's libfaketime puts the library: not the `MT` one, whose lock a signal handler of the server that asks
/// for the time could meet while the interrupted code holds it.
const LIBRARIES: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
];

/// The wall clock of one server, as libfaketime 0.9.10 shows it: a step is seen by every process of the server at its
/// next reading.
///
/// Stepped: `CLOCK_REALTIME`, `CLOCK_REALTIME_COARSE`, `CLOCK_TAI`, `gettimeofday`, `time`. Left alone, because of
/// `DONT_FAKE_MONOTONIC=1`: `CLOCK_MONOTONIC` with its `RAW` and `COARSE` kinds, and `CLOCK_BOOTTIME` (without it all of
/// them jump together with the wall clock, to a Unix time). So a test can step the wall clock while boot time goes on, as a real
/// step does. Waiting (latches, `pg_sleep`, timeouts) goes by the real clock's pace; a backend that computes a deadline
/// from wall time and is stepped meanwhile waits accordingly, as it would on a real machine.
///
/// Each reading opens a file, so a server with a fake clock is slow: not for measuring.
#[derive(Debug, Clone)]
pub struct FakeClock {
    file: PathBuf,
    account: Account,
}

impl FakeClock {
    pub(crate) fn new(dir: &Path, account: Account) -> Result<FakeClock> {
        let clock = FakeClock {
            file: dir.join("clock"),
            account,
        };
        clock.step_to(0)?;
        Ok(clock)
    }

    /// The wall clock of a program of ours, which says so in this directory.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub fn of_program(dir: &Path) -> Result<FakeClock> {
        FakeClock::new(dir, Account::Ourselves)
    }

    /// Sets how far the server's wall clock is from the real one: 3600 is an hour ahead, -3600 an hour behind.
    ///
    /// # Errors
    /// The file that tells libfaketime cannot be written.
    pub fn step_to(&self, offset_s: i64) -> Result<()> {
        // Renamed into place: a process that reads half a file would see the real time.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{offset_s:+}\n")).context("writing a clock's offset")?;
        self.account.own(&new)?;
        fs::rename(&new, &self.file).context("putting a clock's offset into place")
    }

    /// Makes the command, and what it starts, see this clock.
    pub(crate) fn apply(&self, command: &mut Command) -> Result<()> {
        command.envs(self.environment()?);
        Ok(())
    }

    /// What a program finds in its environment that sees this clock.
    ///
    /// # Errors
    /// libfaketime is not installed.
    pub fn environment(&self) -> Result<Vec<(String, String)>> {
        let Some(library) = LIBRARIES.iter().find(|path| Path::new(path).exists()) else {
            bail!("libfaketime is missing: install the package `libfaketime`");
        };
        let file = self.file.to_string_lossy();
        let variables = [
            ("LD_PRELOAD", *library),
            ("FAKETIME_TIMESTAMP_FILE", &file),
            ("FAKETIME_NO_CACHE", "1"),
            ("DONT_FAKE_MONOTONIC", "1"),
            ("NO_FAKE_STAT", "1"),
        ];
        let owned = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(owned.into())
    }

    /// Removes what libfaketime leaves in shared memory when its process is killed.
    pub(crate) fn clean_up_after(pid: u32) {
        for name in [
            format!("faketime_shm_{pid}"),
            format!("sem.faketime_sem_{pid}"),
        ] {
            // A process that ended in order has removed it.
            let _ = fs::remove_file(Path::new("/dev/shm").join(name));
        }
    }
}
