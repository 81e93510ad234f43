//! Several stores: one that has everything but ranges of some tags, and those that have these.

use std::hash::Hasher as _;

use keywright_core::Tag;
use siphasher::sip::SipHasher13;

use super::problems::Problems;
use super::{
    RawSnowflakeSettings, RawStoreSettings, RawStores, SettingsError, SettingsProblem,
    StoreSettings, buckets, schema, session_options,
};
use crate::home::OtherStore;
use crate::users::NamePattern;

/// Longest name of a store, characters.
const NAME_CHARS_MAX: usize = 32;
/// Most stores of a configuration.
const STORES_MAX: usize = 16;

/// A store that holds some tags.
#[derive(Debug, Clone)]
pub struct FurtherStore {
    pub(crate) tags: Vec<NamePattern>,
    pub(crate) settings: StoreSettings,
}

impl FurtherStore {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Its settings.
    pub fn settings(&self) -> &StoreSettings {
        &self.settings
    }

    pub(crate) fn holds(&self, tag: &Tag) -> bool {
        let name = tag.as_str().as_bytes();
        self.tags.iter().any(|pattern| pattern.matches(name))
    }
}

impl StoreSettings {
    /// Checks the settings of one or several stores; reads password files.
    ///
    /// # Errors
    /// [`SettingsError`] with all problems.
    pub fn of_all(
        raw: &RawStores,
        snowflake: &RawSnowflakeSettings,
    ) -> Result<Self, SettingsError> {
        let [raw] = raw.0.as_slice() else {
            return several(&raw.0, snowflake);
        };
        let mut problems = Problems::default();
        if !raw.tags.is_empty() {
            problems.add(
                "store.tags",
                "is for one of several stores: the only one holds all tags",
            );
        }
        check_name(raw, &mut problems, true);
        let store = Self::new(raw, snowflake);
        match store {
            Ok(store) if problems.0.is_empty() => Ok(store),
            store => {
                let theirs = store.err().into_iter().flat_map(|error| error.problems);
                problems.0.extend(theirs);
                Err(SettingsError {
                    problems: problems.0,
                })
            }
        }
    }

    /// The stores that hold some tags.
    pub fn further(&self) -> &[FurtherStore] {
        &self.further
    }

    /// The name of the store, where there are several.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The store of a tag, if that is not this one.
    pub(super) fn store_of(&self, tag: &Tag) -> Option<&FurtherStore> {
        self.further.iter().find(|store| store.holds(tag))
    }

    /// The name of the further store that has a tag; `None`: it is in the store that has no patterns.
    pub fn further_store_of(&self, tag: &Tag) -> Option<&str> {
        self.store_of(tag).map(|store| store.name())
    }

    /// Whether it holds some tags only, beside another.
    pub(crate) fn is_further(&self) -> bool {
        !self.others.is_empty() && self.further.is_empty()
    }

    /// Tells where a store is from where others are. The same place under another name is another one to it.
    pub(crate) fn mark(&self) -> String {
        let mut hasher = SipHasher13::new();
        for part in [
            Some(self.address.as_str()),
            schema(&self.engine),
            session_options(&self.engine),
            Some(self.dialect.name()),
            Some(&self.segment_table.plain()),
        ] {
            hasher.write(part.unwrap_or_default().as_bytes());
            hasher.write_u8(0);
        }
        format!("{:016x}", hasher.finish())
    }

    /// Whether other settings have the same stores, each for the same tags.
    pub(crate) fn has_same_stores(&self, other: &Self) -> bool {
        let mut both = self.further.iter().zip(&other.further);
        self.name == other.name
            && self.readable_buckets == other.readable_buckets
            && self.further.len() == other.further.len()
            && both.all(|(one, other)| {
                one.name() == other.name()
                    && one.tags == other.tags
                    && one.settings.is_same_store(&other.settings)
                    && one.settings.readable_buckets == other.settings.readable_buckets
            })
    }

    /// The same, connected to as newer settings of the same stores say: a running program takes nothing else over of them.
    #[must_use]
    pub fn connected_by(&self, newer: &Self) -> Self {
        let mut its = Self {
            engine: newer.engine.clone(),
            ..self.clone()
        };
        for (store, newer) in its.further.iter_mut().zip(&newer.further) {
            store.settings = store.settings.connected_by(&newer.settings);
        }
        its
    }

    /// Whether newer settings of the same stores say something else than how they are connected to.
    pub fn needs_restart(&self, newer: &Self) -> bool {
        let taken_at_start = |of: &Self| {
            let (limits, tags) = (of.limits, of.tags);
            (
                limits,
                tags,
                of.snowflake.clone(),
                of.slot_groups,
                of.kept.clone(),
            )
        };
        let mut further = self.further.iter().zip(&newer.further);
        taken_at_start(self) != taken_at_start(newer)
            || further.any(|(store, newer)| store.settings.needs_restart(&newer.settings))
    }
}

fn several(
    raw: &[RawStoreSettings],
    snowflake: &RawSnowflakeSettings,
) -> Result<StoreSettings, SettingsError> {
    let mut problems = Problems::default();
    check_names(raw, &mut problems);
    check_tags(raw, &mut problems);
    let (main, mut further) = each(raw, snowflake, &mut problems);
    let all: Vec<&StoreSettings> = main
        .iter()
        .chain(further.iter().map(|of| &of.settings))
        .collect();
    check_places(&all, &mut problems);
    let ranges: Vec<_> = all
        .iter()
        .filter_map(|store| Some((store.name(), store.readable_buckets?)))
        .collect();
    let assigned = main.as_ref().map(|main| {
        let ids = main.worker_ids();
        (main.name(), ids.assigned)
    });
    buckets::check(&ranges, assigned.unwrap_or(("", None)), &mut problems);
    let are_buckets_divided = !ranges.is_empty();
    let others: Vec<OtherStore> = all
        .iter()
        .map(|store| OtherStore {
            name: store.name.clone(),
            mark: store.mark(),
        })
        .collect();
    let but = |name: &str| {
        others
            .iter()
            .filter(|its| its.name != name)
            .cloned()
            .collect()
    };
    match main {
        Some(main) if problems.0.is_empty() => {
            for store in &mut further {
                store.settings.others = but(&store.settings.name);
                store.settings.are_buckets_divided = are_buckets_divided;
            }
            Ok(StoreSettings {
                others: but(&main.name),
                are_buckets_divided,
                further,
                ..main
            })
        }
        Some(_) | None => Err(SettingsError {
            problems: problems.0,
        }),
    }
}

/// The store without tags, and those that have some, as far as each can be by itself.
fn each(
    raw: &[RawStoreSettings],
    snowflake: &RawSnowflakeSettings,
    problems: &mut Problems,
) -> (Option<StoreSettings>, Vec<FurtherStore>) {
    let (mut main, mut further) = (None, Vec::new());
    for (index, raw) in raw.iter().enumerate() {
        let of_buckets = buckets::snowflake(snowflake);
        let snowflake = match raw.tags.is_empty() {
            true => snowflake,
            // Worker ids are in the other store.
            false => &of_buckets,
        };
        let settings = match StoreSettings::new(raw, snowflake) {
            Ok(settings) => settings,
            Err(error) => {
                problems.0.extend(of_store(index, raw, error));
                continue;
            }
        };
        if settings.kept.is_some() && !raw.tags.is_empty() {
            problems.add(
                &format!("store \"{}\": kept_ranges_file", raw.name),
                "is for the store without tags alone: ranges of others are not kept",
            );
        }
        let tags = raw.tags.iter();
        let tags = tags.filter_map(|text| NamePattern::parse(text).ok());
        match raw.tags.is_empty() {
            true => main = Some(settings),
            false => further.push(FurtherStore {
                tags: tags.collect(),
                settings,
            }),
        }
    }
    (main, further)
}

/// That no two stores are the same place.
fn check_places(all: &[&StoreSettings], problems: &mut Problems) {
    for (index, one) in all.iter().enumerate() {
        let mut rest = all.iter().skip(index.saturating_add(1));
        if let Some(other) = rest.find(|other| one.is_same_store(other)) {
            problems.add(
                &format!("store \"{}\"", other.name),
                format!("is the same place as store \"{}\"", one.name),
            );
        }
    }
}

/// What is wrong with a store's own settings, with its name.
fn of_store(
    index: usize,
    raw: &RawStoreSettings,
    error: SettingsError,
) -> impl Iterator<Item = SettingsProblem> {
    let name = match raw.name.as_str() {
        "" => index.saturating_add(1).to_string(),
        name => format!("\"{name}\""),
    };
    let problems = error.problems.into_iter();
    problems.map(move |problem| SettingsProblem {
        setting: match problem.setting.strip_prefix("store.") {
            Some(setting) => format!("store {name}: {setting}"),
            None => problem.setting,
        },
        problem: problem.problem,
    })
}

/// That a store's name can be one.
fn check_name(raw: &RawStoreSettings, problems: &mut Problems, may_lack: bool) {
    let name = raw.name.as_str();
    let is_char = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-'
    };
    match (name.is_empty(), may_lack) {
        (true, true) => {}
        (true, false) => problems.add("store.name", "each of several stores needs one"),
        (false, _) if name.len() > NAME_CHARS_MAX || !name.bytes().all(is_char) => problems.add(
            "store.name",
            format!(
                "\"{name}\" is none: up to {NAME_CHARS_MAX} lower-case letters, digits, _ and -"
            ),
        ),
        (false, _) => {}
    }
}

fn check_names(raw: &[RawStoreSettings], problems: &mut Problems) {
    if raw.len() > STORES_MAX {
        problems.add(
            "store",
            format!("there are {STORES_MAX} at most, not {}", raw.len()),
        );
    }
    if raw.is_empty() {
        problems.add("store", "there is none");
    }
    for (index, store) in raw.iter().enumerate() {
        check_name(store, problems, false);
        let mut before = raw.iter().take(index);
        if !store.name.is_empty() && before.any(|its| its.name == store.name) {
            problems.add("store.name", format!("\"{}\" is there twice", store.name));
        }
    }
    let without: Vec<String> = raw
        .iter()
        .filter(|store| store.tags.is_empty())
        .map(|store| format!("\"{}\"", store.name))
        .collect();
    match without.as_slice() {
        [_] => {}
        [] if raw.is_empty() => {}
        [] => problems.add(
            "store.tags",
            "one store must have none: it holds all other tags, and everything else",
        ),
        [_, ..] => problems.add(
            "store.tags",
            format!(
                "only one store may have none, since it holds all other tags: not {}",
                without.join(" and ")
            ),
        ),
    }
}

/// That each pattern is one, and may be the one that decides.
fn check_tags(raw: &[RawStoreSettings], problems: &mut Problems) {
    let mut earlier: Vec<(&str, NamePattern)> = Vec::new();
    for store in raw {
        for text in &store.tags {
            let setting = format!("store \"{}\": tags", store.name);
            let pattern = match NamePattern::parse(text) {
                Ok(pattern) => pattern,
                Err(failure) => {
                    problems.add(&setting, format!("\"{text}\": {}", failure.message()));
                    continue;
                }
            };
            if let Err(error) = Tag::parse(&least(text)) {
                problems.add(&setting, format!("\"{text}\" is for no tag: {error}"));
            } else if pattern.is_all() {
                problems.add(
                    &setting,
                    "\"*\" would leave no tags to the store that has none: leave tags out, and give that store some",
                );
            } else if let Some((name, before)) =
                earlier.iter().find(|(_, before)| covers(before, &pattern))
            {
                problems.add(
                    &setting,
                    format!(
                        "\"{text}\" is never asked: \"{}\" of store \"{name}\" comes before and takes all of it",
                        before.as_str()
                    ),
                );
            }
            earlier.push((&store.name, pattern));
        }
    }
}

/// The shortest name that a pattern takes.
fn least(pattern: &str) -> String {
    let name = pattern.replace('*', "").replace('?', "a");
    match name.is_empty() {
        true => "a".to_owned(),
        false => name,
    }
}

/// Whether one takes all that another would. `*` and `?` of the other are taken for characters, which is right where only a `*` takes them.
fn covers(one: &NamePattern, other: &NamePattern) -> bool {
    let is_fixed = !other.as_str().contains(['*', '?']);
    (is_fixed || !one.as_str().contains('?')) && one.matches(other.as_str().as_bytes())
}
