//! The only place that reads clocks.

use keywright_core::clock::Readings;

/// Unix time in milliseconds, as the wall clock has it.
#[inline]
pub fn wall_ms() -> i64 {
    let time = read(libc::CLOCK_REALTIME);
    time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
}

/// Unix time in nanoseconds, as the wall clock has it.
pub fn wall_ns() -> u64 {
    let time = read(libc::CLOCK_REALTIME);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}

/// Wall clock and time since boot, in milliseconds. Boot time goes on while the machine sleeps.
pub fn readings() -> Readings {
    let boot = read(libc::CLOCK_BOOTTIME);
    Readings {
        wall_ms: wall_ms(),
        boot_ms: u64::try_from(boot.tv_sec * 1_000 + boot.tv_nsec / 1_000_000).unwrap_or(0),
    }
}

#[inline]
fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid, exclusively borrowed timespec, and both clock ids exist on every Linux that
    // the supported servers run on; the call writes nothing else and cannot raise a PostgreSQL error.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time
}
