//! How long the store's server has run, by its own word: what it says may be older than what programs have seen if it was started since.

use super::{Link, StoreError, column};
use crate::clock::Clock;

/// What a server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uptime {
    /// Whole seconds. It may count time before the server took connections. And MySQL and MariaDB leave out parts of a second before they subtract:
    /// it may be one second too much.
    Seconds(u64),
    /// Nothing that can be read: it may have been started just now. So it is where the server's clock was set back to before its start. (MySQL and
    /// MariaDB then say 2^64 less the difference.)
    Unreadable,
}

impl Uptime {
    fn read(value: Option<&str>) -> Self {
        let up_s: Option<i64> = value.and_then(|text| text.parse().ok());
        let up_s = up_s.and_then(|up_s| u64::try_from(up_s).ok());
        up_s.map_or(Self::Unreadable, Self::Seconds)
    }

    fn seconds(self) -> u64 {
        match self {
            Self::Seconds(up_s) => up_s,
            Self::Unreadable => 0,
        }
    }

    /// The last moment at which the server may have been started, where it is `now_ms`, unix milliseconds.
    pub(super) fn started_ms(self, now_ms: i64) -> i64 {
        let up_ms_min = self.seconds().saturating_sub(1).saturating_mul(1_000);
        now_ms.saturating_sub_unsigned(up_ms_min)
    }

    /// Whether the server may have been started within so many milliseconds.
    fn is_within(self, ms: u64) -> bool {
        self.seconds() <= (ms / 1_000).saturating_add(1)
    }
}

/// How long the server has run; nothing: this engine has none that is restarted.
pub(super) async fn uptime(link: &mut Link) -> Result<Option<Uptime>, StoreError> {
    let Some(query) = link.words().uptime_s() else {
        return Ok(None);
    };
    let found = link.first(query, Vec::new()).await?;
    let value: Option<String> = found.map(|row| column(&row, "Value")).transpose()?;
    Ok(Some(Uptime::read(value.as_deref())))
}

/// The last moment at which the server may have been started, by this clock, unix milliseconds; nothing: this engine has none that is restarted.
pub(super) async fn started_ms(
    link: &mut Link,
    clock: &dyn Clock,
) -> Result<Option<i64>, StoreError> {
    let uptime = uptime(link).await?;
    // A clock that was read before the server answered would put the start too early.
    Ok(uptime.map(|uptime| uptime.started_ms(clock.wall_ms())))
}

/// Whether the server may have been started since this clock showed `boot_ms`, which counts time in which the machine was suspended.
pub(super) async fn was_started_since(
    link: &mut Link,
    clock: &dyn Clock,
    boot_ms: u64,
) -> Result<bool, StoreError> {
    let uptime = uptime(link).await?;
    let since_ms = clock.readings().boot_ms.saturating_sub(boot_ms);
    Ok(uptime.is_some_and(|uptime| uptime.is_within(since_ms)))
}

#[cfg(test)]
mod tests {
    use super::Uptime;

    const NOW_MS: i64 = 1_795_219_200_000;

    #[test]
    fn a_server_whose_clock_was_set_back_to_before_its_start_says_nothing() {
        assert_eq!(Uptime::read(Some("0")), Uptime::Seconds(0));
        assert_eq!(Uptime::read(Some("86400")), Uptime::Seconds(86_400));
        // What MySQL and MariaDB say, and what PostgreSQL says.
        for value in ["18446744073709551586", "-30", "", "long"] {
            let uptime = Uptime::read(Some(value));
            assert_eq!(uptime, Uptime::Unreadable, "{value}");
            assert!(uptime.is_within(0));
            assert_eq!(uptime.started_ms(NOW_MS), NOW_MS);
        }
        assert_eq!(Uptime::read(None), Uptime::Unreadable);
    }

    /// A server that was started at 9.9 s says at 20.0 s that it has run for 11 s.
    #[test]
    fn parts_of_a_second_put_no_start_too_early() {
        assert_eq!(Uptime::Seconds(11).started_ms(20_000), 10_000);
        assert!(Uptime::Seconds(11).is_within(10_100));
        assert!(!Uptime::Seconds(12).is_within(10_100));
        assert_eq!(Uptime::Seconds(0).started_ms(20_000), 20_000);
    }
}
