//! Civil dates in UTC, without leap seconds, as PostgreSQL and POSIX count them.
//!
//! The day count is Howard Hinnant's `days_from_civil` and `civil_from_days` (public domain), checked in the tests
//! against every day of four centuries.

use std::fmt;

pub(crate) const DAY_MS: i64 = 86_400_000;

/// A moment in UTC, to the millisecond. Only [`Civil::of_unix_ms`] and a successful [`Civil::unix_ms`] vouch for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) millisecond: i64,
}

impl Civil {
    /// The civil moment of a unix time in milliseconds.
    pub(crate) fn of_unix_ms(unix_ms: i64) -> Self {
        let (year, month, day) = civil_from_days(unix_ms.div_euclid(DAY_MS));
        let of_day = unix_ms.rem_euclid(DAY_MS);
        Self {
            year,
            month,
            day,
            hour: of_day / 3_600_000,
            minute: of_day / 60_000 % 60,
            second: of_day / 1000 % 60,
            millisecond: of_day % 1000,
        }
    }

    /// Unix milliseconds, or `None` when there is no such moment (30 February, hour 24, second 60) in years 0–9999.
    pub(crate) fn unix_ms(&self) -> Option<i64> {
        let in_range = (0..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
            && (0..1000).contains(&self.millisecond);
        in_range.then(|| {
            let seconds = (self.hour * 60 + self.minute) * 60 + self.second;
            days_from_civil(self.year, self.month, self.day) * DAY_MS
                + seconds * 1000
                + self.millisecond
        })
    }
}

/// A moment in unix milliseconds, as people read it: `2027-01-01` at midnight in UTC, otherwise `2010-11-04T01:42:54.657Z`. A layout's epoch may be
/// written so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(pub i64);

impl Moment {
    /// When its day began in UTC.
    pub fn date(self) -> Self {
        Self(self.0.saturating_sub(self.0.rem_euclid(DAY_MS)))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil {
            year,
            month,
            day,
            hour,
            minute,
            second,
            millisecond,
        } = Civil::of_unix_ms(self.0);
        write!(formatter, "{year:04}-{month:02}-{day:02}")?;
        if self.0.rem_euclid(DAY_MS) == 0 {
            return Ok(());
        }
        write!(
            formatter,
            "T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z"
        )
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::{Civil, DAY_MS, Moment};

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let first = Civil {
            year: 1970,
            month: 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            millisecond: 0,
        };
        assert_eq!(Civil::of_unix_ms(0), first);
        let mut yesterday = first;
        for day in 1..=146_097 {
            let today = Civil::of_unix_ms(day * DAY_MS);
            assert_eq!(today.unix_ms(), Some(day * DAY_MS));
            let next_day = Civil {
                day: yesterday.day + 1,
                ..yesterday
            };
            let next_month = Civil {
                day: 1,
                month: yesterday.month + 1,
                ..yesterday
            };
            let next_year = Civil {
                day: 1,
                month: 1,
                year: yesterday.year + 1,
                ..yesterday
            };
            let expected = [next_day, next_month, next_year]
                .into_iter()
                .find(|date| date.unix_ms().is_some());
            assert_eq!(Some(today), expected);
            yesterday = today;
        }
        assert_eq!(
            (yesterday.year, yesterday.month, yesterday.day),
            (2370, 1, 1)
        );
    }

    #[test]
    fn moments_before_1970_and_within_a_day() {
        let last = Civil::of_unix_ms(-1);
        assert_eq!(
            (last.year, last.month, last.day, last.hour, last.millisecond),
            (1969, 12, 31, 23, 999)
        );
        assert_eq!(last.unix_ms(), Some(-1));
        for bad in [
            Civil { month: 13, ..last },
            Civil { month: 0, ..last },
            Civil { day: 0, ..last },
            Civil { second: 60, ..last },
        ] {
            assert_eq!(bad.unix_ms(), None);
        }
    }

    #[test]
    fn a_moment_is_a_date_at_midnight_and_has_its_time_otherwise() {
        for (unix_ms, text) in [
            (1_798_761_600_000, "2027-01-01"),
            (0, "1970-01-01"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_288_834_974_657, "2010-11-04T01:42:54.657Z"),
            (253_402_300_800_000, "10000-01-01"),
        ] {
            assert_eq!(Moment(unix_ms).to_string(), text);
            let (date, _) = text.split_once('T').unwrap_or((text, ""));
            assert_eq!(Moment(unix_ms).date().to_string(), date);
        }
        // Whatever a layout leads to.
        for unix_ms in [i64::MIN, i64::MAX] {
            assert!(Moment(unix_ms).to_string().contains('Z'));
        }
    }
}
