//! Settings: as they are written, and as they are once everything about them has been checked.

mod buckets;
mod etcd;
mod feed;
mod file;
mod hidden;
mod kept;
mod limits;
mod mysql;
mod order;
mod password;
mod postgres;
mod problems;
mod raw;
mod redis;
mod several;
mod snowflake;
mod tls;
mod url;
mod worker;

use std::fmt;

use keywright_core::Layout;
use keywright_core::slot::SlotGroups;
use mysql_async::Opts;

pub use feed::{FeedSettings, RawFeed};
pub use hidden::{HiddenTags, RawHiddenTag};
pub(crate) use limits::Limits;
pub use mysql::{has_login_in_path, tls_options_in};
pub use password::PasswordFrom;
pub use problems::{SettingsError, SettingsProblem};
pub use raw::{RawSnowflakeSettings, RawStoreSettings, RawStores};
pub use several::FurtherStore;
pub(crate) use snowflake::SnowflakeSettings;
pub use url::URL_ESCAPES;

use crate::dialect::{Dialect, TableName};
use crate::engine::postgres::PostgresSettings;
use crate::engine::{self, EngineSettings};
use crate::home::OtherStore;
use crate::kept::keeper::KeptSettings;
use crate::spec::KeySpec;
use crate::switch::commit::SnowflakeStart;
use crate::switch::space::KeySpace;
use crate::worker_ids::{IdRange, WorkerIds};
use limits::{check_limits, limits};
use problems::Problems;

/// Settings of the store, checked.
#[derive(Clone)]
pub struct StoreSettings {
    pub(crate) engine: EngineSettings,
    pub(crate) address: String,
    pub(crate) dialect: Dialect,
    pub(crate) segment_table: TableName,
    pub(crate) limits: Limits,
    pub(crate) tags: TagDefaults,
    pub(crate) snowflake: SnowflakeSettings,
    pub(crate) hidden: HiddenTags,
    /// Into how many groups slots of tags' names are divided, each with a lease of its own.
    pub(crate) slot_groups: SlotGroups,
    /// Where a part of what is reserved is kept.
    pub(crate) kept: Option<KeptSettings>,
    /// What it is called where there are several.
    pub(crate) name: String,
    /// The stores of some tags, the first that has a pattern for a tag being its.
    pub(crate) further: Vec<FurtherStore>,
    /// The buckets of readable ids that it leases, where several do.
    pub(crate) readable_buckets: Option<IdRange>,
    /// Whether it, or a store beside it, says which buckets of readable ids it leases.
    pub(crate) are_buckets_divided: bool,
    /// Of one of several: the others.
    pub(crate) others: Vec<OtherStore>,
}

/// What rows of other systems' tables do not say, and key ports neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TagDefaults {
    pub(crate) step: i64,
    pub(crate) refill_percent: u32,
    pub(crate) step_max: i64,
    pub(crate) cover_ms: u64,
}

impl StoreSettings {
    /// Whether a part of what is reserved is kept in a file, for a start while the store is away.
    pub fn keeps_ranges(&self) -> bool {
        self.kept.is_some()
    }

    /// Checks the settings; reads the password file.
    ///
    /// # Errors
    /// [`SettingsError`] with all problems.
    pub fn new(
        store: &RawStoreSettings,
        snowflake: &RawSnowflakeSettings,
    ) -> Result<Self, SettingsError> {
        let mut problems = Problems::default();
        let engine = engine_of(store, &mut problems);
        let dialect = dialect_of(store, &mut problems);
        let segment_table = segment_table_of(store, dialect, engine.as_ref(), &mut problems);
        check_limits(store, &mut problems);
        let slot_groups = order::slot_groups(store, dialect, &mut problems);
        let kept = kept::settings(store, dialect, &mut problems);
        let step = redis::step(store, &mut problems);
        let readable_buckets = buckets::settings(store, &mut problems);
        if store.accept_loss_on_failover && !redis::is_one(&store.url) {
            problems.add("store.accept_loss_on_failover", "is for redis://");
        }
        let snowflake = snowflake::settings(snowflake, &mut problems);
        if let (Some(engine), Some(its)) = (&engine, &snowflake) {
            worker::check_table(engine, &its.worker_ids, &mut problems);
        }
        match (engine, segment_table, snowflake) {
            (Some(engine), Some(segment_table), Some(snowflake)) if problems.0.is_empty() => {
                Ok(Self {
                    address: address(&engine),
                    engine,
                    dialect,
                    segment_table,
                    limits: limits(store),
                    tags: TagDefaults {
                        step,
                        refill_percent: store.refill_percent,
                        step_max: store.step_max,
                        cover_ms: store.cover_ms,
                    },
                    snowflake,
                    hidden: HiddenTags::default(),
                    slot_groups,
                    kept,
                    name: store.name.clone(),
                    further: Vec::new(),
                    readable_buckets,
                    are_buckets_divided: readable_buckets.is_some(),
                    others: Vec::new(),
                })
            }
            (_, _, _) => Err(SettingsError {
                problems: problems.0,
            }),
        }
    }

    /// The same, with tags that hide how many keys there are.
    #[must_use]
    pub fn hiding(self, hidden: HiddenTags) -> Self {
        Self { hidden, ..self }
    }

    /// The tags that hide how many keys there are.
    pub fn hidden_tags(&self) -> &HiddenTags {
        &self.hidden
    }

    /// Into how many groups slots are divided, with one program at a time that issues ids of a group's ordered tags.
    pub fn slot_groups(&self) -> SlotGroups {
        self.slot_groups
    }

    /// Whether other settings are of the same store, reached by other means perhaps.
    pub(crate) fn is_same_store(&self, other: &Self) -> bool {
        self.address == other.address
            && schema(&self.engine) == schema(&other.engine)
            && session_options(&self.engine) == session_options(&other.engine)
            && self.dialect == other.dialect
            && self.segment_table == other.segment_table
    }

    /// Whether tags are in Keywright's own table.
    pub fn has_own_tags(&self) -> bool {
        self.dialect.is_own() && !self.gives_ranges_only()
    }

    /// Whether the store gives ranges of tags and keeps nothing else: no worker ids, no users, no order, and not which tables have keys.
    pub fn gives_ranges_only(&self) -> bool {
        match self.engine {
            EngineSettings::Redis(_) => true,
            EngineSettings::MySql(_)
            | EngineSettings::Postgres(_)
            | EngineSettings::Etcd(_)
            | EngineSettings::File(_) => false,
        }
    }

    /// The keys of a spec, if tables can go over to them and leave them: then the store says whether they may be given.
    pub fn followed(&self, spec: &KeySpec) -> Option<KeySpace> {
        let space = KeySpace::of(spec)?;
        match space {
            // The switch is one transaction with the tag's bound.
            KeySpace::Tag(ref tag) if self.store_of(tag).is_some() => None,
            KeySpace::Tag(_) => self.has_own_tags().then_some(space),
            KeySpace::Snowflake => (!self.gives_ranges_only()).then_some(space),
        }
    }

    /// The layout of snowflake keys.
    pub fn layout(&self) -> Layout {
        self.snowflake.layout
    }

    /// Whether the settings say which worker id is leased, rather than any that is free.
    pub fn names_worker_id(&self) -> bool {
        self.snowflake.worker_id.is_some()
    }

    /// Which worker ids are leased, and which assigned.
    pub fn worker_ids(&self) -> WorkerIds {
        self.snowflake.worker_ids.clone()
    }

    /// Where these may begin.
    pub(crate) fn snowflakes(&self) -> SnowflakeStart {
        let its = &self.snowflake;
        let lead_ms = its.lead_ms_max.saturating_add(its.skew_ms_max);
        SnowflakeStart {
            layout: its.layout,
            ahead_ms_max: lead_ms.saturating_add(its.bound_window_ms),
        }
    }

    /// Keys at equal distances that one statement may have.
    pub fn keys_max(&self, spec: &KeySpec) -> u64 {
        let most = match spec.tag().and_then(|tag| self.store_of(tag)) {
            Some(store) => store.settings().limits.range_ids_max,
            None => self.limits.range_ids_max,
        };
        match spec {
            KeySpec::Snowflake => most.min(1 << self.snowflake.layout.sequence_bits()),
            KeySpec::Segment(tag) if self.hidden.of(tag).is_some() => 1,
            KeySpec::Segment(_)
            | KeySpec::Stride(_)
            | KeySpec::Uuid { .. }
            | KeySpec::Readable(_) => most,
        }
    }

    /// Keys that are taken at once at most, whatever lies between them.
    pub fn range_ids_max(&self) -> u64 {
        self.limits.range_ids_max
    }

    /// The longest time that a statement waits for a key, milliseconds.
    pub fn wait_ms_max(&self) -> u64 {
        self.limits.wait_ms_max
    }

    /// Where the store is, without user and password.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// Without the password.
impl fmt::Debug for StoreSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StoreSettings")
            .field("address", &self.address)
            .field("dialect", &self.dialect)
            .field("segment_table", &self.segment_table)
            .field("limits", &self.limits)
            .field("tags", &self.tags)
            .field("snowflake", &self.snowflake)
            .field("hidden", &self.hidden)
            .field("slot_groups", &self.slot_groups)
            .field("kept", &self.kept)
            .field("name", &self.name)
            .field("further", &self.further)
            .finish_non_exhaustive()
    }
}

fn address(engine: &EngineSettings) -> String {
    match engine {
        EngineSettings::MySql(opts) => mysql::address(opts),
        EngineSettings::Postgres(its) => engine::postgres::address(&its.config),
        EngineSettings::Etcd(its) => etcd::address(its),
        EngineSettings::Redis(its) => redis::address(its),
        EngineSettings::File(file) => format!("{}{}", file::SCHEME, file.path.display()),
    }
}

fn schema(engine: &EngineSettings) -> Option<&str> {
    match engine {
        EngineSettings::MySql(opts) => Opts::db_name(opts),
        EngineSettings::Postgres(its) => its.config.get_dbname(),
        EngineSettings::Etcd(its) => Some(&its.prefix),
        EngineSettings::File(_) | EngineSettings::Redis(_) => None,
    }
}

/// What a url says of PostgreSQL's sessions: where names are looked for is among it.
fn session_options(engine: &EngineSettings) -> Option<&str> {
    match engine {
        EngineSettings::Postgres(its) => its.config.get_options(),
        EngineSettings::MySql(_)
        | EngineSettings::Etcd(_)
        | EngineSettings::File(_)
        | EngineSettings::Redis(_) => None,
    }
}

/// The engine is the url's scheme.
fn engine_of(store: &RawStoreSettings, problems: &mut Problems) -> Option<EngineSettings> {
    let url = store.url.as_str();
    let engine = if let Some(path) = url.strip_prefix(file::SCHEME) {
        file::settings(path, store, problems).map(EngineSettings::File)
    } else if let Some(place) = etcd::of_url(url) {
        let settings = etcd::settings(place, store, problems);
        return settings.map(|its| EngineSettings::Etcd(Box::new(its)));
    } else if postgres::is_one(url) {
        let settings = postgres::connection(store, problems);
        settings.map(|its| EngineSettings::Postgres(Box::new(its)))
    } else if redis::is_one(url) {
        let settings = redis::settings(store, problems);
        settings.map(|its| EngineSettings::Redis(Box::new(its)))
    } else {
        mysql::connection(store, problems).map(EngineSettings::MySql)
    };
    for (setting, file) in [
        ("store.tls_cert_file", &store.tls_cert_file),
        ("store.tls_key_file", &store.tls_key_file),
    ] {
        if file.is_some() {
            problems.add(setting, "is for a store in etcd");
        }
    }
    engine
}

/// How tags are kept; Keywright's own way where that cannot be told.
fn dialect_of(store: &RawStoreSettings, problems: &mut Problems) -> Dialect {
    let dialect = Dialect::parse(&store.dialect);
    if dialect.is_none() {
        problems.add(
            "store.dialect",
            format!(
                "\"{}\" is none of keywright, leaf, id_generator, tinyid",
                store.dialect
            ),
        );
    }
    dialect.unwrap_or(Dialect::Keywright)
}

/// The table of tags, within the engine's schema where none is named.
fn segment_table_of(
    store: &RawStoreSettings,
    dialect: Dialect,
    engine: Option<&EngineSettings>,
    problems: &mut Problems,
) -> Option<TableName> {
    let table_text = store
        .segment_table
        .as_deref()
        .unwrap_or(dialect.default_table());
    let quote = engine.map_or('`', |its| its.words().name_quote());
    let segment_table =
        TableName::parse(table_text, quote).map(|table| table.within(engine.and_then(schema)));
    if segment_table.is_none() {
        problems.add(
            "store.segment_table",
            format!("\"{table_text}\" is no name of a table (letters, digits, _ and $, with or without a schema)"),
        );
    }
    segment_table
}

/// How a PostgreSQL server is reached, by settings of that form.
///
/// # Errors
/// [`SettingsError`] with all problems.
pub(crate) fn postgres_settings(
    store: &RawStoreSettings,
) -> Result<PostgresSettings, SettingsError> {
    let mut problems = Problems::default();
    match postgres::connection(store, &mut problems) {
        Some(settings) if problems.0.is_empty() => Ok(settings),
        Some(_) | None => Err(SettingsError {
            problems: problems.0,
        }),
    }
}

#[cfg(test)]
mod tests;
