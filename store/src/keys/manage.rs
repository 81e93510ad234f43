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
use crate::store::advance::{Above, AdvanceLeases, AdvanceTag, By};
use crate::store::lease_list::{ListLeases, WorkerRow};
use crate::store::restored::{Restore, RestoredStore};
use crate::store::schema::Init;
use crate::store::tag_admin::{CreateTag, ListTags, TagListing, TagOptions};
use crate::store::tag_change::{AlterTag, DropTag, TagChange};

/// How long making the store's tables may take, milliseconds: a server that syncs each to disk needs some seconds.
const INIT_MS_MAX: u64 = 60_000;

impl Keys {
    /// Whether the store gives ranges of tags and keeps nothing else.
    pub fn gives_ranges_only(&self) -> bool {
        self.0.settings.gives_ranges_only()
    }

    /// Somebody has found an id of a tag: nothing up to it is given by this program from here on.
    pub fn note_taken(&self, tag: &Tag, id: u64) {
        let keys = self.further_of(tag).unwrap_or(self);
        keys.0.store.note_seen(tag, id.saturating_add(1));
    }

    /// Tables have come to a tag that have ids up to this one: none of those is given by this program from here on. What it has reserved of ranges that
    /// reach below is dropped. The store is not asked, and not told.
    pub fn leave_out(&self, tag: &Tag, id: u64) {
        let keys = self.further_of(tag).unwrap_or(self);
        let (first, of_tag) = {
            let mut sources = keys.sources();
            let known = sources.left_out.entry(tag.clone()).or_default();
            let first = id.saturating_add(1).max(*known);
            *known = first;
            // A source that is made from here on begins there.
            (first, sources.of_tag(tag))
        };
        for supply in of_tag {
            supply.leave_out(first);
        }
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

    /// Takes a store's file that was copied or moved here, or into which an older state was written, by the word of somebody who knows that no other copy is
    /// used any more: it is another store from now on, and whoever reserves leaves a gap. False: it is where it was made, or no file.
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
    /// [`Cause::TagExists`]; [`Cause::BoundDamaged`]: one of its name was dropped, and its bound was put back; another system's table; the store cannot be
    /// used.
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
        self.refuse_other_systems(tag)?;
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
        this.refuse_other_systems(tag)?;
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
        this.refuse_other_systems(tag)?;
        let drop = DropTag {
            store: Arc::clone(&this.0.store),
            tag: tag.clone(),
        };
        this.run(drop).await?
    }

    /// Other systems make, change and remove their tags themselves.
    pub(super) fn refuse_other_systems(&self, tag: &Tag) -> Result<(), Failure> {
        if self.0.store.dialect.is_own() {
            return Ok(());
        }
        let name = self.0.store.dialect.name();
        Err(Failure::new(
            Cause::TagInvalid,
            format!(
                "tag \"{tag}\": tags of dialect {name} are made, altered and dropped by their own system"
            ),
        ))
    }

    /// Has all later ids lie above those that somebody vouches for; never lowers anything. Programs use up what they have reserved
    /// before. The first id of a tag that nobody was given, or the moment at which the other keys go on, unix milliseconds.
    ///
    /// # Errors
    /// No such tag; an id that it cannot have, or that leaves it none of its ids, or almost none; the store cannot be used.
    pub async fn advance(&self, above: &Above) -> Result<u64, Failure> {
        let leases = match above {
            Above::Tag { tag, id } => return self.advance_tag(tag, *id, false).await,
            Above::Snowflake { id } => AdvanceLeases::above(*id, &self.0.settings.layout()),
            Above::SnowflakeMoment { unix_ms } => AdvanceLeases {
                space: Space::Snowflake,
                bound_ms: *unix_ms,
            },
            Above::ReadableMoment { unix_ms } => return self.advance_buckets(*unix_ms).await,
        };
        Ok(self.run(leases).await?.max(0).cast_unsigned())
    }

    /// The same of a tag, also where that leaves it none of its ids, or almost none.
    ///
    /// # Errors
    /// No such tag; an id that it cannot have; the store cannot be used.
    pub async fn advance_using_up(&self, tag: &Tag, id: u64) -> Result<u64, Failure> {
        self.advance_tag(tag, id, true).await
    }

    async fn advance_tag(&self, tag: &Tag, id: u64, may_use_up: bool) -> Result<u64, Failure> {
        self.raise_tag(tag, id, By::Operator { may_use_up }).await
    }

    /// The same of a tag by a program that has found an id of it in a table.
    ///
    /// # Errors
    /// As above; the tag's bound was put back, so others may have used more than what was found.
    pub async fn raise(&self, tag: &Tag, id: u64) -> Result<u64, Failure> {
        self.raise_tag(tag, id, By::Program).await
    }

    async fn raise_tag(&self, tag: &Tag, id: u64, by: By) -> Result<u64, Failure> {
        let keys = self.further_of(tag).unwrap_or(self);
        let advance = AdvanceTag {
            store: Arc::clone(&keys.0.store),
            tag: tag.clone(),
            id,
            by,
        };
        keys.run(advance).await?
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
            are_buckets_divided: self.0.settings.are_buckets_divided,
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
