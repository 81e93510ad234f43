//! The tags that this session uses: each looked up once, with its place in shared memory, and trusted until something changes.

use std::cell::RefCell;
use std::collections::HashMap;

use keywright_core::cause::Cause;
use keywright_core::hiding::Hiding;
use keywright_core::residue::Residue;
use keywright_core::step::{Step, StepPolicy};
use keywright_core::tag::Tag;
use pgrx::pg_sys;

use crate::cache::permutations;
use crate::catalog::extension::Extension;
use crate::catalog::secrets::Hidden;
use crate::catalog::tag_rows::{self, TagRow};
use crate::catalog::{cached, secrets, suggest};
use crate::failure::Failure;
use crate::identity::uncommitted;
use crate::server::backend::BackendCell;
use crate::server::{changes, process, relation, role};
use crate::shmem::key::{Source, TagKey};
use crate::shmem::reuse;
use crate::shmem::slot::Attached;
use crate::shmem::tag_slot::TagSlot;
use crate::{arguments, guard, settings};

/// A tag as this session uses it.
#[derive(Clone, Copy)]
pub struct TagEntry {
    /// Its place in shared memory, while it is this tag's.
    pub at: Attached<TagSlot>,
    /// What the slot belongs to.
    pub key: &'static TagKey,
    /// What its numbers go through.
    pub hiding: Option<&'static Hiding>,
    /// Which numbers are ids.
    pub class: Residue,
    /// The sequence that holds the bound; of a fed tag the largest id that was handed over.
    pub sequence: pg_sys::Oid,
    /// The sequence that holds the note; of a fed tag the key space that its ids are of.
    pub note: pg_sys::Oid,
    /// The extension's owner, as whom both are changed.
    pub owner: pg_sys::Oid,
    /// Step of the first full reservation.
    pub step: Step,
    /// How the step follows the load.
    pub policy: StepPolicy,
    /// First id of the tag.
    pub start: u64,
    /// One above its last.
    pub end_max: u64,
    /// Part of a reservation that is left when the next refill starts, percent; `None`: the setting says it.
    pub refill_threshold_percent: Option<u32>,
}

impl TagEntry {
    /// Its place in shared memory.
    #[inline]
    pub fn slot(&self) -> &'static TagSlot {
        self.at.slot
    }

    /// How its ids come out of its numbers.
    pub fn ids(&self) -> Ids {
        match self.hiding {
            Some(hiding) => Ids::Hidden(hiding),
            None if self.class == Residue::ALL => Ids::Plain,
            None => Ids::Of(self.class),
        }
    }
}

/// How a tag's ids come out of its numbers.
#[derive(Clone, Copy)]
pub enum Ids {
    /// Every number is one.
    Plain,
    /// Numbers go through a permutation.
    Hidden(&'static Hiding),
    /// Numbers of one class are ids.
    Of(Residue),
}

/// The last tag used, with everything that must still hold for it to be used again without a look-up.
#[derive(Clone, Copy)]
struct HotTag {
    at: Attached<TagSlot>,
    key: &'static TagKey,
    ids: Ids,
    changes: u32,
    user: pg_sys::Oid,
}

static HOT_TAG: BackendCell<Option<HotTag>> = BackendCell::new(None);

#[derive(Default)]
struct Tags {
    changes: u32,
    entries: HashMap<Tag, TagEntry>,
}

thread_local! {
    static TAGS: RefCell<Tags> = RefCell::default();
    static KEYS: RefCell<HashMap<Tag, Vec<&'static TagKey>>> = RefCell::default();
}

/// The slot of `tag`, and how ids come out of its numbers, if it is the one used last and nothing about it changed since.
#[inline]
pub fn hot(tag: &[u8]) -> Option<(Attached<TagSlot>, Ids)> {
    let hot = HOT_TAG.get()?;
    (hot.changes == changes::count() && hot.user == role::user() && hot.key.tag_bytes() == tag)
        .then_some((hot.at, hot.ids))
}

/// The entry of `tag`, for the role in force.
///
/// # Errors
/// Not preloaded, unknown or invalid tag, no privilege, no room in shared memory.
pub fn of(text: &[u8]) -> Result<TagEntry, Failure> {
    let tag = arguments::parse_tag(text)?;
    let (entry, changes) = find(&tag)?;
    let user = role::user();
    if !role::may_use_sequence(entry.sequence, user) {
        return Err(Failure::new(
            Cause::Privilege,
            format!("permission denied for tag \"{tag}\""),
        )
        .hint(format!(
            "Let somebody who may manage tags run SELECT keywright.grant_tag('{tag}', 'role')."
        )));
    }
    HOT_TAG.set(Some(HotTag {
        at: entry.at,
        key: entry.key,
        ids: entry.ids(),
        changes,
        user,
    }));
    Ok(entry)
}

/// The entry of `tag` and the number of changes it was looked up under, whoever asks.
///
/// # Errors
/// As [`of`], but for the privilege.
pub fn find(tag: &Tag) -> Result<(TagEntry, u32), Failure> {
    let extension = cached::extension()?;
    let changes = changes::count();
    let known = known_tag(tag, changes);
    let entry = match known {
        Some(entry) => entry,
        None => attach_tag(tag, extension, changes)?,
    };
    Ok((entry, changes))
}

/// Gives the tag its place in shared memory before the tag is closed, so that whoever takes its first id meanwhile finds that closed, too. The caller has
/// locked its row. Where the tag cannot have a place, nobody begins with it.
pub fn attach(tag: &Tag, sequence: pg_sys::Oid) {
    // A place of a tag that is rolled back would be lost.
    if relation::is_created_here(sequence) {
        return;
    }
    // The place that this session knows may have been passed on.
    forget();
    let _ = find(tag);
}

/// What this session knows of a tag, if it looked it up under that number of changes.
fn known_tag(tag: &Tag, changes: u32) -> Option<TagEntry> {
    TAGS.with(|tags| {
        let tags = tags.borrow();
        (tags.changes == changes)
            .then(|| tags.entries.get(tag).copied())
            .flatten()
    })
}

/// Whether nothing changed since this session looked the tag up and found what `entry` says, as somebody about to refill it must
/// ask. No table is read, which may be locked.
pub fn is_known(tag: &Tag, entry: &TagEntry) -> bool {
    known_tag(tag, changes::count())
        .is_some_and(|known| (*known.key, known.start) == (*entry.key, entry.start))
}

fn key_of(tag: &Tag, extension: &Extension, row: &TagRow, hiding: Option<&Hiding>) -> TagKey {
    let life = (row.generation, row.sequence);
    TagKey::new(
        process::database(),
        extension.oid,
        life,
        (row.source, row.moves.number),
        tag,
        hiding,
    )
}

/// What the numbers of a row's tag go through.
fn hiding_of(
    tag: &Tag,
    extension: &Extension,
    row: &TagRow,
) -> Result<Option<&'static Hiding>, Failure> {
    let hiding = |(id, hidden): &(i32, Hidden)| {
        secrets::hiding(tag.as_str(), *id, hidden, extension.owner).map(permutations::interned)
    };
    row.hidden.as_ref().map(hiding).transpose()
}

/// A copy of the key that lives as long as this backend: one of each that it ever uses.
fn interned(tag: &Tag, key: TagKey) -> &'static TagKey {
    KEYS.with_borrow_mut(|keys| {
        let of_tag = keys.entry(tag.clone()).or_default();
        if let Some(known) = of_tag.iter().find(|known| ***known == key) {
            return *known;
        }
        let kept: &'static TagKey = Box::leak(Box::new(key));
        of_tag.push(kept);
        kept
    })
}

fn attach_tag(tag: &Tag, extension: Extension, changes: u32) -> Result<TagEntry, Failure> {
    let row = tag_rows::find(tag, &extension)?.ok_or_else(|| suggest::unknown_tag(tag))?;
    if uncommitted::is_replaced() && relation::is_created_here(extension.tag_table) {
        return Err(uncommitted::failure("the extension"));
    }
    // By this transaction: what the tag issued then a rollback would bring back.
    if relation::is_rewritten_here(row.sequence) {
        return Err(uncommitted::failure(
            "the source, the increment or the end of the tag",
        ));
    }
    match row.source {
        Source::Native => guard::may_be_native(tag, row.moves.number)?,
        Source::Fed => {}
    }
    let hiding = hiding_of(tag, &extension, &row)?;
    let key = interned(tag, key_of(tag, &extension, &row, hiding));
    let at = reuse::tag_slot(key)
        .ok_or_else(guard::not_preloaded)?
        .map_err(|full| {
            Failure::new(
                Cause::TagsFull,
                format!("no room in shared memory for tag \"{tag}\""),
            )
            .detail(format!(
                "All {} places are taken by tags that were used since the server started and were not dropped, or whose creation was rolled back.",
                full.room
            ))
            .hint(
                "Raise keywright.tags_max in postgresql.conf and restart the server. A restart alone frees the places of tags whose creation was rolled back.",
            )
        })?;
    changes::watch(row.sequence);
    // Dropped by itself, too, it leaves a damaged tag.
    changes::watch(row.note);
    let entry = TagEntry {
        at,
        key,
        hiding,
        class: row.class,
        sequence: row.sequence,
        note: row.note,
        owner: extension.owner,
        step: row.step,
        policy: StepPolicy {
            step_min: row.step_min,
            step_max: row.step_max,
            cover_ms: match row.source {
                Source::Native => settings::refill_cover_ms(),
                Source::Fed => settings::fed_cover_ms(),
            },
        },
        start: row.start,
        end_max: row.end_max,
        refill_threshold_percent: row.refill_threshold_percent,
    };
    TAGS.with(|tags| {
        let mut tags = tags.borrow_mut();
        if tags.changes != changes {
            tags.entries.clear();
            tags.changes = changes;
        }
        tags.entries.insert(tag.clone(), entry);
    });
    Ok(entry)
}

/// Forgets what was looked up.
pub fn forget() {
    HOT_TAG.set(None);
    TAGS.with(|tags| tags.borrow_mut().entries.clear());
}
