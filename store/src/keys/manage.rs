//! What operators ask of a store: whether it is ready, its tables and tags, bounds that are raised.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use keywright_core::{Cause, Tag};

use super::{Keys, broken_off};
use crate::engine::file::Made;
use crate::failure::Failure;
use crate::lease::space::Space;
use crate::settings::StoreSettings;
use crate::store::advance::{Above, AdvanceLeases, AdvanceTag};
use crate::store::lease_rows::{ListLeases, WorkerRow};
use crate::store::order_rows::{LookForLoss, may_lose};
use crate::store::ranges::{LookAtTags, Looked};
use crate::store::restored::{Restore, RestoredStore};
use crate::store::schema::{Init, InspectSchema};
use crate::store::tag_admin::{CreateTag, ListTags, TagListing, TagOptions};
use crate::store::tag_change::{AlterTag, DropTag, TagChange};
use crate::store::tag_hiding::refuse_other;
use crate::store::tag_rows::unknown;
use crate::tag_order::TagOrder;

/// How long making the store's tables may take, milliseconds: a server that syncs each to disk needs some seconds.
const INIT_MS_MAX: u64 = 60_000;

/// Something that [`Keys::check`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the store, where it has one.
    pub store: String,
    /// Whether keys cannot be issued, or can be lost.
    pub severity: Severity,
    /// What it is.
    pub message: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Keys cannot be issued.
    Error,
    /// Keys can be issued; the promise has a condition that is not met.
    Warning,
}

impl Keys {
    /// Looks at the store and changes nothing: is it there, are its tables and these tags, would a commit survive.
    pub(super) async fn check_here(&self, tags: &[Tag]) -> Vec<Finding> {
        let finding = |severity| {
            move |message| Finding {
                store: String::new(),
                severity,
                message,
            }
        };
        if self.gives_ranges_only() {
            return match self.look_at(tags).await {
                Ok(looked) => {
                    let refused = looked.refused.into_iter();
                    let refused = refused.map(|(_, failure)| failure.to_string());
                    let errors = refused.map(finding(Severity::Error));
                    let weaknesses = looked.weaknesses.into_iter();
                    errors
                        .chain(weaknesses.map(finding(Severity::Warning)))
                        .collect()
                }
                Err(failure) => vec![finding(Severity::Error)(failure.to_string())],
            };
        }
        let look = InspectSchema {
            store: Arc::clone(&self.0.store),
        };
        let seen = match self.run(look).await {
            Ok(seen) => seen,
            Err(failure) => return vec![finding(Severity::Error)(failure.to_string())],
        };
        let mut findings: Vec<Finding> = seen
            .problems
            .into_iter()
            .map(finding(Severity::Error))
            .collect();
        findings.extend(seen.weaknesses.into_iter().map(finding(Severity::Warning)));
        let keeper = self.0.keeper.as_ref();
        let cannot_keep = keeper.and_then(|keeper| keeper.problem());
        findings.extend(cannot_keep.map(finding(Severity::Warning)));
        // They are those of the store without tags.
        let has_worker_ids = !self.0.settings.is_further();
        if has_worker_ids && findings.iter().all(|its| its.severity == Severity::Warning) {
            let other = self.other_worker_ids().await.unwrap_or_else(Some);
            findings.extend(other.map(|failure| finding(Severity::Error)(failure.to_string())));
            let lacks = self.lacks_numbers().await;
            findings.extend(lacks.map(|failure| finding(Severity::Error)(failure.to_string())));
        }
        // Without their table it would be said once more.
        if !seen.lacks_tags {
            findings.extend(self.check_tags(tags).await);
        }
        findings
    }

    /// Whether the store gives ranges of tags and keeps nothing else.
    pub fn gives_ranges_only(&self) -> bool {
        self.0.settings.gives_ranges_only()
    }

    /// Somebody has found an id of a tag: nothing up to it is given by this program from here on.
    pub fn note_taken(&self, tag: &Tag, id: u64) {
        let keys = self.further_of(tag).unwrap_or(self);
        keys.0.store.note_seen(tag, id.saturating_add(1));
    }

    /// What a store that gives ranges only says of tags.
    async fn look_at(&self, tags: &[Tag]) -> Result<Looked, Failure> {
        self.run(LookAtTags {
            store: Arc::clone(&self.0.store),
            tags: tags.to_vec(),
        })
        .await
    }

    /// The tags of which a store that gives ranges only refuses some for this cause.
    async fn refused_for(&self, cause: Cause, tags: &[Tag]) -> Result<Vec<Tag>, Failure> {
        let refused = self.look_at(tags).await?.refused.into_iter();
        let such = refused.filter(|(_, failure)| failure.cause() == cause);
        Ok(such.map(|(tag, _)| tag).collect())
    }

    /// Whether a row is a tag's. Keywright's own table tells names in another case apart; of the others' it is not known.
    fn names(&self, row: &TagListing, tag: &Tag) -> bool {
        match self.0.store.dialect.is_own() {
            true => row.tag == tag.as_str(),
            false => row.tag.eq_ignore_ascii_case(tag.as_str()),
        }
    }

    /// Those tags that are not in this store.
    pub(super) async fn missing_here(&self, tags: &[Tag]) -> Result<Vec<Tag>, Failure> {
        if tags.is_empty() {
            return Ok(Vec::new());
        }
        if self.gives_ranges_only() {
            return self.refused_for(Cause::TagUnknown, tags).await;
        }
        let there = self.tags_here().await?;
        let is_missing = |tag: &&Tag| !there.iter().any(|row| self.names(row, tag));
        let missing = tags.iter().filter(is_missing);
        Ok(missing.cloned().collect())
    }

    /// Those tags that are ordered.
    pub(super) async fn ordered_here(&self, tags: &[Tag]) -> Result<Vec<Tag>, Failure> {
        if tags.is_empty() {
            return Ok(Vec::new());
        }
        if self.gives_ranges_only() {
            return self.refused_for(Cause::TagOrdered, tags).await;
        }
        let there = self.tags_here().await?;
        let is_ordered = |tag: &&Tag| {
            let mut rows = there.iter().filter(|row| self.names(row, tag));
            rows.any(|row| row.order != Some(TagOrder::Distinct))
        };
        let ordered = tags.iter().filter(is_ordered);
        Ok(ordered.cloned().collect())
    }

    async fn check_tags(&self, tags: &[Tag]) -> Vec<Finding> {
        let error = |failure: Failure| Finding {
            store: String::new(),
            severity: Severity::Error,
            message: failure.to_string(),
        };
        match self.missing_here(tags).await {
            Ok(missing) => {
                let missing = missing.iter().map(|tag| unknown(&self.0.store, tag));
                let strict = self.check_strict(tags).await.unwrap_or_else(Some);
                let hidden = self.check_hidden_here(tags).await;
                let hidden = hidden.unwrap_or_else(|failure| vec![failure]);
                missing.chain(strict).chain(hidden).map(error).collect()
            }
            Err(failure) => vec![error(failure)],
        }
    }

    /// Why the store gives no keys of some of these tags: they were made with another permutation than this program has for them, or with
    /// none.
    pub(super) async fn check_hidden_here(&self, tags: &[Tag]) -> Result<Vec<Failure>, Failure> {
        let there = self.tags_here().await?;
        let refused = tags.iter().filter_map(|tag| {
            let row = there.iter().find(|row| self.names(row, tag))?;
            let caller = self.0.settings.hidden.of(tag).map(AsRef::as_ref);
            match &row.hiding {
                Ok(hiding) => refuse_other(tag, hiding.as_ref(), caller).err(),
                Err(problem) => {
                    let message = format!("tag \"{tag}\" is unusable: {problem}");
                    Some(Failure::new(Cause::BoundDamaged, message))
                }
            }
        });
        Ok(refused.collect())
    }

    /// Why the store gives no keys of those tags that are strict.
    async fn check_strict(&self, tags: &[Tag]) -> Result<Option<Failure>, Failure> {
        let there = self.tags_here().await?;
        let mut strict = there
            .iter()
            .filter(|row| row.order == Some(TagOrder::Strict));
        if !strict.any(|row| tags.iter().any(|tag| self.names(row, tag))) {
            return Ok(None);
        }
        let why = self.run(LookForLoss).await?;
        Ok(why.map(|why| may_lose(&why)))
    }

    /// Whether the store lets in who comes by other settings: user, password, TLS. One that is away may.
    ///
    /// # Errors
    /// They are of another store, or it refuses them.
    pub async fn can_connect_by(&self, settings: &StoreSettings) -> Result<(), Failure> {
        if !self.0.settings.is_same_store(settings) || !self.0.settings.has_same_stores(settings) {
            return Err(Failure::new(
                Cause::StoreUnavailable,
                "the store has changed, which needs a restart",
            ));
        }
        for (store, newer) in self.0.further.iter().zip(settings.further()) {
            store.keys.can_log_in_by(newer.settings()).await?;
        }
        self.can_log_in_by(settings).await
    }

    async fn can_log_in_by(&self, settings: &StoreSettings) -> Result<(), Failure> {
        let (store, settings) = (Arc::clone(&self.0.store), settings.clone());
        let tried = self.0.runtime.spawn(async move {
            match store.log_in_by(&settings).await {
                Err(error) if error.is_refusal() => Err(store.failure(&error)),
                Ok(()) | Err(_) => Ok(()),
            }
        });
        tried.await.unwrap_or(Ok(()))
    }

    /// Connects by these settings from now on. Whatever else they say is left as it is.
    pub fn connect_by(&self, settings: &StoreSettings) {
        self.0.store.connect_by(settings);
        for (store, newer) in self.0.further.iter().zip(settings.further()) {
            store.keys.0.store.connect_by(newer.settings());
        }
    }

    /// Creates what is missing, the store's file and its tables, and returns their names; may be repeated.
    ///
    /// # Errors
    /// A table of another shape, with all that is wrong with it; the store cannot be used.
    pub async fn init(&self) -> Result<Vec<String>, Failure> {
        let mut created = Vec::new();
        if self.make(false).await? == Made::New {
            created.push(self.store_address().to_owned());
        }
        let done = self.run_within(INIT_MS_MAX, Init).await?;
        if done.misshapen.is_empty() {
            created.extend(done.created);
            return Ok(created);
        }
        let failure = Failure::new(Cause::BoundDamaged, done.misshapen.join("; "));
        Err(failure.hint("these tables were not made by Keywright: use another schema"))
    }

    /// Takes a store's file that was copied or moved here, by the word of somebody who knows that the other one is used no more: it is
    /// another store from now on, and whoever reserves leaves a gap. False: it is where it was made, or no file.
    ///
    /// # Errors
    /// It cannot be used.
    pub async fn accept_moved(&self) -> Result<bool, Failure> {
        Ok(self.make(true).await? == Made::Accepted)
    }

    async fn make(&self, accept_moved: bool) -> Result<Made, Failure> {
        let store = Arc::clone(&self.0.store);
        let made = self.0.runtime.spawn(async move {
            let made = store.make(accept_moved).await;
            made.map_err(|error| store.failure(&error))
        });
        made.await.unwrap_or_else(broken_off)
    }

    /// Makes a tag in Keywright's own table.
    ///
    /// # Errors
    /// [`Cause::TagExists`]; another system's table; the store cannot be used.
    pub async fn create_tag(&self, tag: &Tag, options: &TagOptions) -> Result<(), Failure> {
        self.create(tag, options, false).await
    }

    /// The same, where nobody has looked at tables for ids of the tag: so it is not made where the store says that a rule is for it.
    ///
    /// # Errors
    /// As [`Keys::create_tag`]; [`Cause::TagInUse`].
    pub async fn create_tag_of_no_rule(
        &self,
        tag: &Tag,
        options: &TagOptions,
    ) -> Result<(), Failure> {
        self.create(tag, options, true).await
    }

    async fn create(&self, tag: &Tag, options: &TagOptions, alone: bool) -> Result<(), Failure> {
        if self.are_several() {
            return self.create_at_home(tag, options, alone).await;
        }
        self.create_here(tag, options, alone).await
    }

    pub(super) async fn create_here(
        &self,
        tag: &Tag,
        options: &TagOptions,
        alone: bool,
    ) -> Result<(), Failure> {
        self.refuse_other_systems()?;
        let create = CreateTag {
            store: Arc::clone(&self.0.store),
            tag: tag.clone(),
            options: *options,
            alone,
            waits: false,
        };
        self.run(create).await?
    }

    /// Changes a tag in Keywright's own table. Programs hear of it with their next reservation.
    ///
    /// # Errors
    /// There is no such tag, or it cannot be so; another system's table; the store cannot be used.
    pub async fn alter_tag(&self, tag: &Tag, change: &TagChange) -> Result<(), Failure> {
        let this = self.further_of(tag).unwrap_or(self);
        this.refuse_other_systems()?;
        change.check()?;
        let alter = AlterTag {
            store: Arc::clone(&this.0.store),
            tag: tag.clone(),
            change: change.clone(),
        };
        this.run(alter).await?
    }

    /// Has nobody reserve of a tag any more, which no rule may be for. Programs use up what they have reserved before. The first id that
    /// nobody was given: one of the same name that is made later goes on there.
    ///
    /// # Errors
    /// There is no such tag; [`Cause::TagInUse`]; another system's table; the store cannot be used.
    pub async fn drop_tag(&self, tag: &Tag) -> Result<u64, Failure> {
        let this = self.further_of(tag).unwrap_or(self);
        this.refuse_other_systems()?;
        let drop = DropTag {
            store: Arc::clone(&this.0.store),
            tag: tag.clone(),
        };
        this.run(drop).await?
    }

    /// Other systems make, change and remove their tags themselves.
    pub(super) fn refuse_other_systems(&self) -> Result<(), Failure> {
        if self.0.store.dialect.is_own() {
            return Ok(());
        }
        let name = self.0.store.dialect.name();
        Err(Failure::new(
            Cause::TagInvalid,
            format!("tags of dialect {name} are made, altered and dropped by their own system"),
        ))
    }

    /// Has all later ids lie above those that somebody vouches for; never lowers anything. Programs use up what they have reserved
    /// before. The first id of a tag that nobody was given, or the moment at which the other keys go on, unix milliseconds.
    ///
    /// # Errors
    /// No such tag; an id that it cannot have; the store cannot be used.
    pub async fn advance(&self, above: &Above) -> Result<u64, Failure> {
        let leases = match above {
            Above::Tag { tag, id } => {
                let keys = self.further_of(tag).unwrap_or(self);
                let advance = AdvanceTag {
                    store: Arc::clone(&keys.0.store),
                    tag: tag.clone(),
                    id: *id,
                };
                return keys.run(advance).await?;
            }
            Above::Snowflake { id } => AdvanceLeases::above(*id, &self.0.settings.layout()),
            Above::SnowflakeMoment { unix_ms } => AdvanceLeases {
                space: Space::Snowflake,
                bound_ms: *unix_ms,
            },
            Above::ReadableMoment { unix_ms } => AdvanceLeases {
                space: Space::Readable,
                bound_ms: *unix_ms,
            },
        };
        Ok(self.run(leases).await?.max(0).cast_unsigned())
    }

    /// Has all later ids lie above what may have been given since the backup from which the store was restored, by the word of somebody who knows
    /// for how long: a gap is left out of each tag, and worker ids are leased anew. Tags of which others have ids go on above the highest,
    /// which `last_ids` says. All of it is done, or nothing.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn restored(
        &self,
        lost: Duration,
        last_ids: BTreeMap<Tag, u64>,
    ) -> Result<RestoredStore, Failure> {
        let store = Arc::clone(&self.0.store);
        let restore = Restore {
            store: Arc::clone(&store),
            lost_ms: i64::try_from(lost.as_millis()).unwrap_or(i64::MAX / 2),
            last_ids,
        };
        let restored = self.0.runtime.spawn(async move {
            let restored = store.run_restored(restore).await;
            restored.map_err(|error| store.failure(&error))
        });
        restored.await.unwrap_or_else(broken_off)
    }

    /// All tags of this store's table.
    pub(super) async fn tags_here(&self) -> Result<Vec<TagListing>, Failure> {
        self.run(ListTags {
            store: Arc::clone(&self.0.store),
        })
        .await
    }

    /// All worker ids that were ever leased.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn workers(&self) -> Result<Vec<WorkerRow>, Failure> {
        self.run(ListLeases).await
    }
}
