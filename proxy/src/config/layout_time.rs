//! Whether snowflake keys can be given now: their layout's epoch lies in the past, and its last tick in the future.

use keywright_core::{LayoutTimeError, Moment, TimeLeft};
use keywright_session::Mode;
use keywright_store::{FeedSettings, KeySpec};

use super::Config;

/// What is to be said of the layout's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutTime {
    /// No snowflake key can be given, unless the clock is wrong.
    Unusable(String),
    /// It should be known: the time ends soon, or the clock is wrong.
    Warning(String),
}

/// 2026-01-01, unix milliseconds. A clock that reads less is wrong, as that of a machine that has not heard the time yet: there was no program before.
const RIGHT_FROM_MS: i64 = 1_767_225_600_000;

impl Config {
    /// What is to be said of the time of snowflake keys, if anybody gets some.
    pub fn layout_time(&self, now_ms: i64) -> Option<LayoutTime> {
        if !self.has_snowflakes() {
            return None;
        }
        match self.store.layout().check_time_left(now_ms) {
            Ok(TimeLeft::Ample) => None,
            Ok(TimeLeft::WithinAYear { runs_out_at_ms }) => Some(LayoutTime::Warning(format!(
                "snowflake.layout: its time runs out on {}, in less than a year: plan for another layout, with a later epoch or more time bits",
                Moment(runs_out_at_ms)
            ))),
            // It is waited for: keys come when it is right.
            Err(LayoutTimeError::BeforeEpoch { unix_ms, epoch_ms }) if unix_ms < RIGHT_FROM_MS => {
                Some(LayoutTime::Warning(format!(
                    "the clock reads {}, before {}, the epoch of snowflake.layout: no snowflake keys are given until it is set right",
                    Moment(unix_ms),
                    Moment(epoch_ms)
                )))
            }
            Err(LayoutTimeError::BeforeEpoch {
                unix_ms: _,
                epoch_ms,
            }) => Some(LayoutTime::Unusable(format!(
                "snowflake.layout: its epoch, {}, is ahead of the clock: give it one in the past, as \"leaf,epoch=2024-01-01\"",
                Moment(epoch_ms)
            ))),
            Err(LayoutTimeError::RanOut {
                unix_ms: _,
                runs_out_at_ms,
            }) => Some(LayoutTime::Unusable(format!(
                "snowflake.layout: its time ran out on {}: choose another layout, with a later epoch, as \"baidu,epoch=2024-05-20\", or more time bits",
                Moment(runs_out_at_ms)
            ))),
        }
    }

    /// Whether anybody gets snowflake keys: tables of rules that do not only observe, clients of key ports, or databases that are fed or have an assigned
    /// worker id.
    fn has_snowflakes(&self) -> bool {
        let rules = self.rules.iter();
        let giving = rules.filter(|configured| configured.rule.mode == Mode::Rewrite);
        let of_rules = giving.map(|configured| &configured.spec);
        let of_ports = self.ports.iter().flat_map(|port| port.keys.values());
        of_rules
            .chain(of_ports)
            .any(|spec| *spec == KeySpec::Snowflake)
            || self.feeds.iter().any(FeedSettings::feeds_snowflakes)
            || self.store.worker_ids().assigned.is_some()
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::LayoutTime;
    use crate::config::Config;

    /// 2026-11-21.
    const NOW_MS: i64 = 1_795_219_200_000;

    fn told(layout: &str, key: &str, now_ms: i64) -> Result<Option<LayoutTime>> {
        let text = format!(
            "[store]\nurl = \"mysql://keywright@127.0.0.1:3306/keywright\"\n[snowflake]\nlayout = \"{layout}\"\n\
             [[listener]]\nprotocol = \"redis\"\nbind = \"127.0.0.1:6399\"\nkeys = {{ ids = \"{key}\" }}\n"
        );
        Ok(Config::parse(&text)?.layout_time(now_ms))
    }

    #[track_caller]
    fn assert_has(told: Option<LayoutTime>, is_usable: bool, part: &str) {
        match told {
            Some(LayoutTime::Warning(text)) => assert!(is_usable && text.contains(part), "{text}"),
            Some(LayoutTime::Unusable(text)) => {
                assert!(!is_usable && text.contains(part), "{text}");
            }
            None => panic!("nothing is said, and not {part:?}"),
        }
    }

    #[test]
    fn a_layout_without_time_now_gives_no_keys() -> Result<()> {
        assert_has(
            told("leaf,epoch=2027-01-01", "snowflake", NOW_MS)?,
            false,
            "its epoch, 2027-01-01, is ahead of the clock: give it one in the past, as \"leaf,epoch=2024-01-01\"",
        );
        assert_has(
            told("baidu", "snowflake", NOW_MS)?,
            false,
            "its time ran out on 2024-11-20T13:24:16.000Z",
        );
        assert_has(
            told("baidu,epoch=2018-09-01", "snowflake", NOW_MS)?,
            true,
            "in less than a year",
        );
        for layout in ["twitter", "baidu,epoch=2024-05-20"] {
            assert_eq!(told(layout, "snowflake", NOW_MS)?, None);
        }
        Ok(())
    }

    /// Such a machine hears the time soon, and the program is not to be started anew then.
    #[test]
    fn a_clock_of_1970_does_not_speak_against_the_layout() -> Result<()> {
        let part = "the clock reads 1970-01-01T00:00:20.000Z, before 2010-11-04T01:42:54.657Z";
        assert_has(told("twitter", "snowflake", 20_000)?, true, part);
        Ok(())
    }

    #[test]
    fn a_rule_that_only_observes_gives_no_keys() -> Result<()> {
        let told = |mode: &str| -> Result<Option<LayoutTime>> {
            let text = format!(
                "[store]\nurl = \"mysql://keywright@127.0.0.1:3306/keywright\"\n[snowflake]\nlayout = \"baidu\"\n\
                 [[listener]]\nbind = \"127.0.0.1:3307\"\nupstream = \"127.0.0.1:3306\"\n\
                 [[rule]]\ntable = \"shop.orders\"\ncolumn = \"id\"\nkey = \"snowflake\"\nmode = \"{mode}\"\n"
            );
            Ok(Config::parse(&text)?.layout_time(NOW_MS))
        };
        assert_has(told("rewrite")?, false, "its time ran out");
        assert_eq!(told("observe")?, None);
        Ok(())
    }

    #[test]
    fn a_layout_of_no_keys_may_be_any() -> Result<()> {
        for layout in ["baidu", "leaf,epoch=2027-01-01"] {
            assert_eq!(told(layout, "segment:ids", NOW_MS)?, None);
        }
        Ok(())
    }
}
