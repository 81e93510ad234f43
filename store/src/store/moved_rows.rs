//! Tags that are opened for databases which issued natively, and closed for one that does: one transaction each, on the tag's row.

use std::sync::Arc;

use keywright_core::residue::Residue;
use keywright_core::{Cause, Tag, key_space_mark};

use super::former::read_row;
use super::returned::discard_all;
use super::tag_admin::rule_for;
use super::tag_change::row_of;
use super::tag_denied::ordered;
use super::tag_hiding::hiding_of;
use super::tag_left::{is_left_by_tables, left_by_tables};
use super::tag_read::{heir_of, key_space, order_of};
use super::{Link, Store, StoreError, Transaction, column, values};
use crate::failure::Failure;
use crate::moving::{Comer, Heir, Leaver, Lineage, TagState, plan_close, plan_open};
use crate::reserve::gap_after_loss;
use crate::tag_order::TagOrder;

/// A tag that is open to a database, or closed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MovedTag {
    /// The first id that nobody was given.
    pub(crate) free: u64,
    pub(crate) key_space: String,
}

/// Opens a tag.
#[derive(Debug)]
pub(crate) struct OpenTag {
    pub(crate) store: Arc<Store>,
    pub(crate) tag: Tag,
    pub(crate) comer: Comer,
    /// For people: where it is.
    pub(crate) place: String,
    /// The largest id that an heir who is lost may have issued, by the owner's word.
    pub(crate) lost: Option<u64>,
    /// Nothing is changed.
    pub(crate) only_look: bool,
}

/// Closes a tag, and names its heir.
#[derive(Debug)]
pub(crate) struct CloseTag {
    pub(crate) store: Arc<Store>,
    pub(crate) tag: Tag,
    pub(crate) leaver: Leaver,
    pub(crate) place: String,
    /// The mark of the key space that the heir had ids of, if it had any.
    pub(crate) key_space: Option<u64>,
    pub(crate) lost: Option<u64>,
}

/// What stands in the tag's row, which is locked until the transaction ends.
struct Found {
    state: TagState,
    number: u64,
    key_space: String,
}

/// The tag as it is for a database.
async fn find(
    store: &Store,
    tag: &Tag,
    lineage: &Lineage,
    link: &mut Link,
) -> Result<Result<Found, Failure>, StoreError> {
    let row = match row_of(store, tag, link).await? {
        Ok(row) => row,
        Err(failure) => return Ok(Err(failure)),
    };
    match order_of(store, &row, tag)? {
        Ok(TagOrder::Distinct) => {}
        Ok(TagOrder::Monotonic | TagOrder::Strict) => return Ok(Err(ordered(tag))),
        Err(failure) => return Ok(Err(failure)),
    }
    match hiding_of(store, &row, tag)? {
        Ok(None) => {}
        // The database would issue the numbers themselves.
        Ok(Some(_)) => {
            let message =
                format!("tag \"{tag}\" of the store hides its volume, which a fed tag does not");
            let failure = Failure::new(Cause::HideKeyMismatch, message);
            return Ok(Err(failure.hint("use a tag of another name")));
        }
        Err(failure) => return Ok(Err(failure)),
    }
    let (read, now_ms) = match read_row(store, &row, tag, Residue::ALL, link).await? {
        Ok(read) => read,
        Err(denied) => {
            return Ok(Err(denied.told(tag)));
        }
    };
    let heir = match heir_of(&row, tag)? {
        Ok(heir) => heir,
        Err(failure) => return Ok(Err(failure)),
    };
    // The database would issue what tables number natively. One that has an heir was closed before tables could leave it.
    if heir.is_none() && is_left_by_tables(tag, &row, link).await? {
        return Ok(Err(left_by_tables(tag)));
    }
    let number: u64 = column(&row, "number")?;
    let select = "SELECT move_number FROM keywright_moved WHERE tag = ? AND system_id = ? AND database_oid = ?";
    let values = values![tag.as_str(), lineage.system.as_str(), lineage.database];
    let moved = link.first(select, values).await?;
    let known = moved.as_ref().map(|row| column(row, "move_number"));
    let state = TagState {
        start: column(&row, "start_id")?,
        // What another server may have given since it wrote last counts as given.
        free: number.saturating_add(gap_after_loss(&read, now_ms)),
        heir,
        known: known.transpose()?,
    };
    Ok(Ok(Found {
        state,
        number,
        key_space: key_space(&row)?.to_string(),
    }))
}

impl Transaction<Result<MovedTag, Failure>> for OpenTag {
    async fn run(&self, link: &mut Link) -> Result<Result<MovedTag, Failure>, StoreError> {
        link.begin().await?;
        let opened = self.open(link).await?;
        link.end(opened.is_ok() && !self.only_look).await?;
        Ok(opened)
    }
}

impl OpenTag {
    async fn open(&self, link: &mut Link) -> Result<Result<MovedTag, Failure>, StoreError> {
        let (store, tag) = (&self.store, &self.tag);
        let found = match find(store, tag, &self.comer.lineage, link).await? {
            Ok(found) => found,
            Err(failure) => return Ok(Err(failure)),
        };
        let opening = match plan_open(&found.state, &self.comer, self.lost) {
            Ok(opening) => opening,
            Err(refused) => return Ok(Err(refused.failure(tag.as_str()))),
        };
        if opening.free > store.id_max {
            let message = format!("tag \"{tag}\" ends below {}", opening.free);
            return Ok(Err(Failure::new(Cause::TagExhausted, message)));
        }
        let moved = MovedTag {
            free: opening.free,
            key_space: found.key_space,
        };
        if self.only_look {
            return Ok(Ok(moved));
        }
        let is_raised = opening.free > found.number;
        let update = format!(
            "UPDATE {} SET hi = ?, start_id = ?, heir = NULL WHERE tag = ? AND hi = ?",
            store.segment_table
        );
        let values = values![
            opening.free.max(found.number),
            opening.start,
            tag.as_str(),
            found.number
        ];
        link.change(update, values).await?;
        // Somebody who names what was issued elsewhere means what was handed back, too.
        if is_raised || found.state.heir.is_some() || self.lost.is_some() {
            discard_all(store, tag, opening.free, link).await?;
        }
        let lineage = &self.comer.lineage;
        note(tag, lineage, (self.comer.number, &self.place), link).await?;
        Ok(Ok(moved))
    }
}

impl Transaction<Result<MovedTag, Failure>> for CloseTag {
    async fn run(&self, link: &mut Link) -> Result<Result<MovedTag, Failure>, StoreError> {
        link.begin().await?;
        let closed = self.close(link).await?;
        link.end(closed.is_ok()).await?;
        if let Ok(closed) = &closed {
            self.store.note_seen(&self.tag, closed.free);
        }
        Ok(closed)
    }
}

impl CloseTag {
    async fn close(&self, link: &mut Link) -> Result<Result<MovedTag, Failure>, StoreError> {
        let (store, tag) = (&self.store, &self.tag);
        // Tables would be left without keys.
        if let Some(failure) = rule_for(tag, link).await? {
            return Ok(Err(failure));
        }
        let heir = &self.leaver.heir;
        let found = match find(store, tag, &heir.lineage, link).await? {
            Ok(found) => found,
            Err(failure) => return Ok(Err(failure)),
        };
        let bits = u128::from_str_radix(&found.key_space, 16).ok();
        let mark = bits.map(key_space_mark);
        if self.key_space.is_some() && self.key_space != mark {
            let message = format!(
                "the database had ids of another key space than tag \"{tag}\" of this store is"
            );
            return Ok(Err(Failure::new(Cause::HandOverRefused, message)
                .hint("use the configuration of the store that feeds it")));
        }
        let leaver = Leaver {
            seen: self.leaver.seen.max(store.seen(tag)),
            ..self.leaver.clone()
        };
        let free = match plan_close(&found.state, &leaver, self.lost) {
            Ok(free) => free,
            Err(refused) => return Ok(Err(refused.failure(tag.as_str()))),
        };
        let update = format!(
            "UPDATE {} SET hi = ?, heir = ? WHERE tag = ? AND hi = ?",
            store.segment_table
        );
        let (number, heir_text) = (found.number, heir.to_string());
        let values = values![free.max(number), heir_text, tag.as_str(), number];
        link.change(update, values).await?;
        discard_all(store, tag, free, link).await?;
        note(tag, &heir.lineage, (self.leaver.number, &self.place), link).await?;
        Ok(Ok(MovedTag {
            free,
            key_space: found.key_space,
        }))
    }
}

/// Keeps by which move a database came to the tag, or left it, last.
async fn note(
    tag: &Tag,
    lineage: &Lineage,
    (number, place): (u32, &str),
    link: &mut Link,
) -> Result<(), StoreError> {
    let words = link.words();
    let insert = format!(
        "INSERT INTO keywright_moved (tag, system_id, database_oid, move_number, place, moved_at_ms) \
         VALUES (?, ?, ?, ?, ?, {now}) {update} move_number = ?, place = ?, moved_at_ms = {now}",
        now = words.now_ms(),
        update = words.or_update("tag, system_id, database_oid"),
    );
    let mut values = values![
        tag.as_str(),
        lineage.system.as_str(),
        lineage.database,
        number,
        place
    ];
    values.extend(values![number, place]);
    link.change(insert, values).await?;
    Ok(())
}

/// Reads which database issues a tag's ids natively.
#[derive(Debug)]
pub(crate) struct ReadHeir {
    pub(crate) store: Arc<Store>,
    pub(crate) tag: Tag,
}

impl Transaction<Result<Option<Heir>, Failure>> for ReadHeir {
    async fn run(&self, link: &mut Link) -> Result<Result<Option<Heir>, Failure>, StoreError> {
        link.begin().await?;
        let row = row_of(&self.store, &self.tag, link).await?;
        link.rollback().await?;
        Ok(match row {
            Ok(row) => heir_of(&row, &self.tag)?,
            Err(failure) => Err(failure),
        })
    }
}
