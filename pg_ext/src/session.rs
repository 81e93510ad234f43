//! What this session has looked up about the extension, its tags and its worker, and for how long it may trust it.
//!
//! Every look-up is stamped with [`changes::count`]; the server's invalidation messages move that number on, so a
//! committed change of a definition, a privilege or the worker id is seen at the next call.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use keywright_core::cause::Cause;
use keywright_core::layout::Layout;
use keywright_core::step::{Step, StepPolicy};
use keywright_core::tag::Tag;
use keywright_core::zone::Zone;
use pgrx::pg_sys;

use crate::backend::BackendCell;
use crate::failure::Failure;
use crate::keys::TagKey;
use crate::shm::{self, Attached, TagSlot};
use crate::{catalog, changes, identity, reuse, settings, suggest, sys, text};

/// The extension as installed in this database.
#[derive(Clone, Copy)]
pub struct Extension {
    /// Its object id: another one after DROP and CREATE EXTENSION.
    pub oid: pg_sys::Oid,
    /// The role that owns its tables and sequences.
    pub owner: pg_sys::Oid,
    /// keywright.tag, whose changes announce changed definitions.
    pub tag_table: pg_sys::Oid,
    /// keywright.node, whose changes announce a changed worker id, bucket, layout or time zone.
    pub node_table: pg_sys::Oid,
}

/// A tag as this session uses it.
#[derive(Clone, Copy)]
pub struct TagEntry {
    /// Its place in shared memory, while it is this tag's.
    pub at: Attached<TagSlot>,
    /// What the slot belongs to.
    pub key: &'static TagKey,
    /// The sequence that holds the bound.
    pub sequence: pg_sys::Oid,
    /// The sequence that holds the note.
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
}

impl TagEntry {
    /// Its place in shared memory.
    #[inline]
    pub fn slot(&self) -> &'static TagSlot {
        self.at.slot
    }
}

/// The last tag used, with everything that must still hold for it to be used again without a look-up.
#[derive(Clone, Copy)]
struct HotTag {
    at: Attached<TagSlot>,
    key: &'static TagKey,
    changes: u32,
    user: pg_sys::Oid,
}

/// A looked-up value and the number of changes it was looked up under.
#[derive(Clone, Copy)]
pub struct Stamped<T> {
    value: T,
    changes: u32,
}

static HOT_TAG: BackendCell<Option<HotTag>> = BackendCell::new(None);
static EXTENSION: BackendCell<Option<Stamped<Extension>>> = BackendCell::new(None);
static LAYOUT: BackendCell<Option<Stamped<Layout>>> = BackendCell::new(None);
static ZONE: BackendCell<Option<Stamped<Zone>>> = BackendCell::new(None);

#[derive(Default)]
struct Tags {
    changes: u32,
    entries: HashMap<Tag, TagEntry>,
}

thread_local! {
    static TAGS: RefCell<Tags> = RefCell::default();
    static WATCHED: RefCell<HashSet<pg_sys::Oid>> = RefCell::default();
    static KEYS: RefCell<HashMap<Tag, Vec<&'static TagKey>>> = RefCell::default();
}

/// Whether anything cached was read from `relation`; `InvalidOid` stands for all.
pub fn depends_on(relation: pg_sys::Oid) -> bool {
    relation == pg_sys::InvalidOid
        || WATCHED.with(|watched| {
            watched
                .try_borrow()
                .map_or(true, |watched| watched.contains(&relation))
        })
}

fn watch(relation: pg_sys::Oid) {
    WATCHED.with(|watched| watched.borrow_mut().insert(relation));
}

/// The value in `cell` if nothing changed since it was looked up.
#[inline]
pub fn fresh<T: Copy>(cell: &BackendCell<Option<Stamped<T>>>) -> Option<T> {
    cell.get()
        .filter(|stamped| stamped.changes == changes::count())
        .map(|stamped| stamped.value)
}

/// Looks up with `find` and keeps the result under the number of changes read before, so that a change arriving
/// during the look-up makes it stale at once.
pub fn remember<T: Copy>(
    cell: &BackendCell<Option<Stamped<T>>>,
    find: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(value) = fresh(cell) {
        return Ok(value);
    }
    changes::listen();
    let changes = changes::count();
    let value = find()?;
    cell.set(Some(Stamped { value, changes }));
    Ok(value)
}

/// The extension of this database.
///
/// # Errors
/// When it is not installed, or installed in a version this library does not serve.
pub fn extension() -> Result<Extension, Failure> {
    remember(&EXTENSION, || {
        let extension = catalog::extension()?;
        watch(extension.tag_table);
        watch(extension.node_table);
        Ok(extension)
    })
}

/// The slot of `tag` if it is the one used last and nothing about it changed since.
#[inline]
pub fn hot_tag(tag: &[u8]) -> Option<Attached<TagSlot>> {
    let hot = HOT_TAG.get()?;
    (hot.changes == changes::count() && hot.user == sys::user() && hot.key.tag_bytes() == tag)
        .then_some(hot.at)
}

/// The entry of `tag`, for the role in force.
///
/// # Errors
/// Not preloaded, unknown or invalid tag, no privilege, no room in shared memory.
pub fn tag(text: &[u8]) -> Result<TagEntry, Failure> {
    let tag = parse_tag(text)?;
    let (entry, changes) = find_tag(&tag)?;
    let user = sys::user();
    if !sys::may_use_sequence(entry.sequence, user) {
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
        changes,
        user,
    }));
    Ok(entry)
}

/// The entry of `tag` and the number of changes it was looked up under, whoever asks.
///
/// # Errors
/// As [`tag`], but for the privilege.
pub fn find_tag(tag: &Tag) -> Result<(TagEntry, u32), Failure> {
    let extension = extension()?;
    let changes = changes::count();
    let known = known_tag(tag, changes);
    let entry = match known {
        Some(entry) => entry,
        None => attach_tag(tag, extension, changes)?,
    };
    Ok((entry, changes))
}

/// Reads `text` as a tag.
///
/// # Errors
/// The reason it is none, with what tags look like.
pub fn parse_tag(text: &[u8]) -> Result<Tag, Failure> {
    text::read(text)
        .map_err(|error| invalid_tag(&error.to_string()))
        .and_then(|text| Tag::parse(text).map_err(|error| invalid_tag(&error.to_string())))
}

fn invalid_tag(reason: &str) -> Failure {
    Failure::new(Cause::TagInvalid, format!("not a tag: {reason}")).hint(format!(
        "A tag has 1 to {} ASCII letters, digits or characters of _ - . : / @ # $.",
        Tag::BYTES_MAX
    ))
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

fn key_of(tag: &Tag, extension: &Extension, row: &catalog::TagRow) -> TagKey {
    let life = (row.generation, row.sequence);
    TagKey::new(sys::database(), extension.oid, life, tag)
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
    let row = catalog::tag(tag, &extension)?.ok_or_else(|| unknown_tag(tag))?;
    if identity::is_replaced() && sys::is_created_here(extension.tag_table) {
        return Err(identity::uncommitted("the extension"));
    }
    let key = interned(tag, key_of(tag, &extension, &row));
    let at = reuse::tag_slot(key)
        .ok_or_else(not_preloaded)?
        .map_err(|full| {
            Failure::new(
                Cause::TagsFull,
                format!("no room in shared memory for tag \"{tag}\""),
            )
            .detail(format!(
                "All {} places are taken by tags that were used since the server started and were not dropped.",
                full.room
            ))
            .hint("Raise keywright.tags_max in postgresql.conf and restart the server.")
        })?;
    watch(row.sequence);
    let entry = TagEntry {
        at,
        key,
        sequence: row.sequence,
        note: row.note,
        owner: extension.owner,
        step: row.step,
        policy: StepPolicy {
            step_min: row.step_min,
            step_max: row.step_max,
            cover_ms: settings::refill_cover_ms(),
        },
        start: row.start,
        end_max: row.end_max,
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

/// The failure of a tag that was never created, or was dropped.
pub fn unknown_tag(tag: &Tag) -> Failure {
    let failure = Failure::new(Cause::TagUnknown, format!("tag \"{tag}\" does not exist"));
    let create = format!("reate it with SELECT keywright.create_tag('{tag}').");
    failure.hint(match suggest::tag_like(tag) {
        Some(near) => format!("Did you mean \"{near}\"? Otherwise c{create}"),
        None => format!("C{create}"),
    })
}

/// The failure of a server that did not preload the library.
pub fn not_preloaded() -> Failure {
    Failure::new(
        Cause::NotPreloaded,
        "keywright is not preloaded, so it cannot issue ids",
    )
    .detail("Ids are issued from shared memory, which the server sets up when it starts.")
    .hint("Add keywright to shared_preload_libraries in postgresql.conf and restart the server.")
}

/// Fails unless the server preloaded the library.
pub fn require_preload() -> Result<(), Failure> {
    if shm::is_there() {
        Ok(())
    } else {
        Err(not_preloaded())
    }
}

/// The layout that this database's ids are decoded with.
///
/// # Errors
/// The extension's tables cannot be read.
pub fn layout() -> Result<Layout, Failure> {
    remember(&LAYOUT, || catalog::layout(&extension()?))
}

/// The time zone that this database's readable ids are decoded with.
///
/// # Errors
/// The extension's tables cannot be read.
pub fn zone() -> Result<Zone, Failure> {
    remember(&ZONE, || Ok(catalog::node(&extension()?)?.zone))
}

/// Forgets what was looked up: after this session changed it itself.
pub fn forget() {
    HOT_TAG.set(None);
    EXTENSION.set(None);
    crate::words::forget();
    LAYOUT.set(None);
    ZONE.set(None);
    TAGS.with(|tags| tags.borrow_mut().entries.clear());
}
