//! Settings of servers that are fed.

use std::path::PathBuf;

use keywright_core::Tag;
use schemars::JsonSchema;
use serde::Deserialize;

use super::postgres;
use super::problems::{Problems, SettingsError, SettingsProblem};
use super::raw::RawStoreSettings;
use crate::engine::postgres::{PostgresSettings, address};

/// A PostgreSQL server with the extension whose fed tags get ids out of this program's store. A change needs a restart.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawFeed {
    /// `postgres://user[:password]@host[:port]/database`: a database of the server that has the extension, in which the user may execute
    /// `keywright.await_demand`, `keywright.feed_tag` and `keywright.handed_over`; for `snowflake` also `keywright.time_demand`,
    /// `keywright.feed_time` and `keywright.handed_time`. Through it all databases are fed. In user and password, write `/ : @ ? # %` as
    /// `%2F %3A %40 %3F %23 %25`.
    pub url: String,
    /// The tags that are fed, by name; each must be in the store (`keywright init` makes it).
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether the program hands worker ids, out of `fed_worker_ids` of `[snowflake]`, and time to databases whose source of snowflake ids is `fed`.
    #[serde(default)]
    pub snowflake: bool,
    /// How long the time that is handed over for snowflake ids should last, seconds. For half of it nobody notices that programs or store are away.
    #[serde(default = "cover_s")]
    #[schemars(range(min = 2, max = 86_400))]
    pub cover_s: u64,
    /// A file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// The name of the environment variable that holds the password.
    pub password_env: Option<String>,
    /// TLS to the server: `disabled` or `required`.
    #[serde(default = "disabled")]
    pub tls: String,
    /// The authorities that may have signed the server's certificate, PEM. Default: the public ones.
    pub tls_ca_file: Option<PathBuf>,
    /// The longest time for an answer of the server, milliseconds.
    #[serde(default = "answer_ms_max")]
    #[schemars(range(min = 2_000, max = 3_600_000))]
    pub answer_ms_max: u64,
}

fn disabled() -> String {
    "disabled".to_owned()
}

fn cover_s() -> u64 {
    1_200
}

fn answer_ms_max() -> u64 {
    5_000
}

/// A server that is fed, checked.
#[derive(Clone)]
pub struct FeedSettings {
    pub(crate) server: PostgresSettings,
    raw: RawFeed,
    pub(crate) address: String,
    pub(crate) tags: Vec<Tag>,
    /// How far ahead of need time is handed over, milliseconds; `None`: none is.
    pub(crate) snowflake: Option<i64>,
    pub(crate) answer_ms_max: u64,
}

/// Without the password.
impl std::fmt::Debug for FeedSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("FeedSettings")
            .field("address", &self.address)
            .field("tags", &self.tags)
            .field("snowflake", &self.snowflake)
            .finish_non_exhaustive()
    }
}

impl FeedSettings {
    /// Checks the settings; reads the password file. `section` is what problems call it: `feed 1`.
    ///
    /// # Errors
    /// [`SettingsError`] with all problems.
    pub fn new(raw: &RawFeed, section: &str) -> Result<Self, SettingsError> {
        let mut problems = Problems::default();
        let answer_ms_max = raw.answer_ms_max;
        problems.within("store.answer_ms_max", answer_ms_max, 2_000, 3_600_000);
        problems.within("store.cover_s", raw.cover_s, 2, 86_400);
        let cover_ms = i64::try_from(raw.cover_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
        let tags = tags(raw, &mut problems);
        // A connection of the same kind as a store's, with the same options.
        let store = RawStoreSettings {
            url: raw.url.clone(),
            password_file: raw.password_file.clone(),
            password_env: raw.password_env.clone(),
            tls: raw.tls.clone(),
            tls_ca_file: raw.tls_ca_file.clone(),
            store_ms_max: answer_ms_max,
            ..RawStoreSettings::default()
        };
        match postgres::connection(&store, &mut problems) {
            Some(server) if problems.0.is_empty() => Ok(Self {
                address: address(&server.config),
                raw: raw.clone(),
                server,
                tags,
                snowflake: raw.snowflake.then_some(cover_ms),
                answer_ms_max,
            }),
            Some(_) | None => Err(SettingsError {
                problems: problems
                    .0
                    .into_iter()
                    .map(|found| of_section(section, found))
                    .collect(),
            }),
        }
    }

    /// Whether the same is written in the configuration.
    pub fn is_as_written(&self, other: &Self) -> bool {
        self.raw == other.raw
    }

    /// Where the server is, without user and password.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether the time of snowflake ids is fed.
    pub fn feeds_snowflakes(&self) -> bool {
        self.snowflake.is_some()
    }

    /// The tags that are fed.
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }
}

fn tags(raw: &RawFeed, problems: &mut Problems) -> Vec<Tag> {
    const SETTING: &str = "store.tags";
    if raw.tags.is_empty() && !raw.snowflake {
        problems.add(SETTING, "names no tag, and snowflake is not true");
    }
    let mut tags: Vec<Tag> = Vec::new();
    for text in &raw.tags {
        match Tag::parse(text) {
            Ok(tag) if tags.contains(&tag) => {
                problems.add(SETTING, format!("\"{tag}\" is there twice"));
            }
            Ok(tag) => tags.push(tag),
            Err(error) => problems.add(SETTING, error.to_string()),
        }
    }
    tags
}

fn of_section(section: &str, found: SettingsProblem) -> SettingsProblem {
    let option = found.setting.strip_prefix("store.");
    SettingsProblem {
        setting: match option {
            Some(option) => format!("{section}: {option}"),
            None => found.setting,
        },
        problem: found.problem.replace("store.tls", "tls"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(url: &str, tags: &[&str]) -> RawFeed {
        RawFeed {
            url: url.to_owned(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            snowflake: false,
            cover_s: cover_s(),
            password_file: None,
            password_env: None,
            tls: disabled(),
            tls_ca_file: None,
            answer_ms_max: answer_ms_max(),
        }
    }

    #[test]
    fn all_problems_are_told_under_the_section() {
        let raw = RawFeed {
            tls: "perhaps".to_owned(),
            answer_ms_max: 1,
            ..raw("postgres://@/", &["a b", "a", "a"])
        };
        let told = FeedSettings::new(&raw, "feed 2").unwrap_err().to_string();
        for expected in [
            "feed 2: answer_ms_max: must be between 2000 and 3600000, not 1",
            "feed 2: tags: \"a\" is there twice",
            "feed 2: url: names no database",
            "feed 2: url: names no user",
            "feed 2: tls: \"perhaps\" is neither disabled nor required",
        ] {
            assert!(told.contains(expected), "{told}");
        }
        assert!(!told.contains("store."), "{told}");
    }

    #[test]
    fn nothing_shows_the_password() {
        let raw = raw("postgres://f:secret@db1:5433/postgres", &["orders"]);
        let settings = FeedSettings::new(&raw, "feed 1").unwrap();
        assert_eq!(settings.address(), "db1:5433");
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
