//! Whether a store is ready, as operators ask it, and what it says of tags.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use keywright_core::{Cause, Tag};

use super::Keys;
use crate::failure::Failure;
use crate::store::lease_list::WorkerRow;
use crate::store::order_rows::{LookForLoss, may_lose};
use crate::store::ranges::{LookAtTags, Looked};
use crate::store::schema::InspectSchema;
use crate::store::tag_admin::{ReadBound, TagBound, TagListing};
use crate::store::tag_denied::unknown;
use crate::store::tag_hiding::refuse_other;
use crate::tag_order::TagOrder;

/// A tag nears its end where less than one in so many of its ids is left: a larger column takes time.
const LEFT_PARTS: u64 = 10;
/// Tags that a store which gives ranges only is asked for within `store_ms_max`: one after the other.
const LOOKED_TAGS_MAX: usize = 200;

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
        // What is wrong with tables and rights would be said again by each look.
        let is_usable = seen.problems.is_empty();
        let problems = seen.problems.into_iter().chain(seen.gone_back);
        let mut findings: Vec<Finding> = problems.map(finding(Severity::Error)).collect();
        findings.extend(seen.weaknesses.into_iter().map(finding(Severity::Warning)));
        let keeper = self.0.keeper.as_ref();
        let cannot_keep = keeper.and_then(|keeper| keeper.problem());
        findings.extend(cannot_keep.map(finding(Severity::Warning)));
        // They are those of the store without tags.
        let has_worker_ids = !self.0.settings.is_further();
        if has_worker_ids && is_usable {
            let other = self.other_worker_ids().await.unwrap_or_else(Some);
            findings.extend(other.map(|failure| finding(Severity::Error)(failure.to_string())));
            if self.has_own_tags() {
                let other = self.other_slot_groups().await.unwrap_or_else(Some);
                findings.extend(other.map(|failure| finding(Severity::Error)(failure.to_string())));
            }
            let lacks = self.lacks_numbers().await;
            findings.extend(lacks.map(|failure| finding(Severity::Error)(failure.to_string())));
        }
        if is_usable {
            let behind = self.leases_behind().await;
            let behind = behind.unwrap_or_else(|failure| vec![failure.to_string()]);
            findings.extend(behind.into_iter().map(finding(Severity::Error)));
        }
        // Without their table it would be said once more.
        if !seen.lacks_tags {
            findings.extend(self.check_tags(tags).await);
        }
        findings
    }

    /// Worker ids whose bounds were put back to an older state, as a program has seen.
    async fn leases_behind(&self) -> Result<Vec<String>, Failure> {
        let rows = self.workers().await?;
        let behind: Vec<(&WorkerRow, i64)> = rows
            .iter()
            .filter_map(|row| Some((row, row.gone_back_from_ms()?)))
            .collect();
        let told = behind.iter().map(|(row, seen_ms)| {
            let WorkerRow { space, worker_id, hi_ms, .. } = row;
            let of_space = behind.iter().filter(|(other, _)| other.space == *space);
            let above_ms = of_space.map(|(_, seen_ms)| *seen_ms).max().unwrap_or(*seen_ms);
            format!(
                "the store has gone back: a program has seen a bound of {seen_ms} of {space} worker ids, and that of {worker_id} is {hi_ms}; run keywright advance {space} --above-ms {above_ms}, \
                 or a later moment if ids carry one"
            )
        });
        Ok(told.collect())
    }

    /// What a store that gives ranges only says of tags.
    async fn look_at(&self, tags: &[Tag]) -> Result<Looked, Failure> {
        let mut parts: Vec<&[Tag]> = tags.chunks(LOOKED_TAGS_MAX).collect();
        if parts.is_empty() {
            // What is said of the store itself.
            parts.push(&[]);
        }
        let mut all = Looked {
            weaknesses: Vec::new(),
            refused: Vec::new(),
        };
        let mut told = HashSet::new();
        for tags in parts {
            let look = LookAtTags {
                store: Arc::clone(&self.0.store),
                tags: tags.to_vec(),
            };
            let looked = self.run(look).await?;
            let weaknesses = looked.weaknesses.into_iter();
            all.weaknesses
                .extend(weaknesses.filter(|weakness| told.insert(weakness.clone())));
            all.refused.extend(looked.refused);
        }
        Ok(all)
    }

    /// The tags of which a store that gives ranges only refuses some for this cause.
    async fn refused_for(&self, cause: Cause, tags: &[Tag]) -> Result<Vec<Tag>, Failure> {
        let refused = self.look_at(tags).await?.refused.into_iter();
        let such = refused.filter(|(_, failure)| failure.cause() == cause);
        Ok(such.map(|(tag, _)| tag).collect())
    }

    /// These rows, by their tags.
    fn by_tag<'r>(&self, rows: &'r [TagListing]) -> RowsByTag<'r> {
        RowsByTag::new(rows, self.0.store.dialect.is_own())
    }

    /// How far a tag has come, by its own store; nothing: it is not there, or the store gives ranges and says nothing of where a tag is.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn tag_bound(&self, tag: &Tag) -> Result<Option<TagBound>, Failure> {
        let keys = self.further_of(tag).unwrap_or(self);
        if keys.gives_ranges_only() {
            return Ok(None);
        }
        keys.run(ReadBound {
            store: Arc::clone(&keys.0.store),
            tag: tag.clone(),
        })
        .await
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
        let rows = self.by_tag(&there);
        let is_missing = |tag: &&Tag| rows.of(tag).is_none();
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
        let rows = self.by_tag(&there);
        let is_ordered = |tag: &&Tag| {
            let row = rows.of(tag);
            row.is_some_and(|row| row.order != Some(TagOrder::Distinct))
        };
        let ordered = tags.iter().filter(is_ordered);
        Ok(ordered.cloned().collect())
    }

    async fn check_tags(&self, tags: &[Tag]) -> Vec<Finding> {
        let finding = |severity| {
            move |message| Finding {
                store: String::new(),
                severity,
                message,
            }
        };
        let error = |failure: Failure| finding(Severity::Error)(failure.to_string());
        match self.missing_here(tags).await {
            Ok(missing) => {
                let missing = missing.iter().map(|tag| unknown(&self.0.store, tag));
                let strict = self.check_strict(tags).await.unwrap_or_else(Some);
                let hidden = self.check_hidden_here(tags).await;
                let hidden = hidden.unwrap_or_else(|failure| vec![failure]);
                // No error: programs start, and give keys of all other tags.
                let ending = self.ending_here(tags).await.unwrap_or_default();
                let warnings = ending.into_iter().map(finding(Severity::Warning));
                let errors = missing.chain(strict).chain(hidden).map(error);
                errors.chain(warnings).collect()
            }
            Err(failure) => vec![error(failure)],
        }
    }

    /// That nothing is left to reserve of some of these tags, or little.
    async fn ending_here(&self, tags: &[Tag]) -> Result<Vec<String>, Failure> {
        let there = self.tags_here().await?;
        let rows = self.by_tag(&there);
        let told = tags.iter().filter_map(|tag| {
            let row = rows.of(tag)?;
            let id_max = self.id_max(row)?;
            let left = id_max.saturating_add(1).saturating_sub(row.next);
            match left {
                0 => Some(format!(
                    "tag \"{tag}\" is exhausted at {id_max}: whoever needs a key of it gets none, once programs have given what they have reserved \
                     (a larger id_max, or another tag)"
                )),
                1.. if left.saturating_mul(LEFT_PARTS) < id_max => Some(format!(
                    "tag \"{tag}\" nears its end at {id_max}: {left} ids are not reserved yet (a larger id_max, or another tag)"
                )),
                1.. => None,
            }
        });
        Ok(told.collect())
    }

    /// The largest id that programs with these settings reserve of a tag, where its table says so.
    fn id_max(&self, row: &TagListing) -> Option<u64> {
        let hiding = row.hiding.as_ref().ok().and_then(Option::as_ref);
        let hidden = hiding.map_or(u64::MAX, |hiding| hiding.bits.largest());
        let id_max = row.id_max?;
        Some(id_max.min(self.0.store.id_max).min(hidden))
    }

    /// Why the store gives no keys of some of these tags: they were made with another permutation than this program has for them, or with
    /// none.
    pub(super) async fn check_hidden_here(&self, tags: &[Tag]) -> Result<Vec<Failure>, Failure> {
        let there = self.tags_here().await?;
        let rows = self.by_tag(&there);
        let refused = tags.iter().filter_map(|tag| {
            let row = rows.of(tag)?;
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
        let rows = self.by_tag(&there);
        let is_strict = |tag: &Tag| {
            let row = rows.of(tag);
            row.is_some_and(|row| row.order == Some(TagOrder::Strict))
        };
        if !tags.iter().any(is_strict) {
            return Ok(None);
        }
        let why = self.run(LookForLoss).await?;
        Ok(why.map(|why| may_lose(&why)))
    }
}

/// Rows of a store's table by their tags: there may be thousands of both.
struct RowsByTag<'r> {
    by_name: HashMap<&'r str, &'r TagListing>,
    /// Keywright's own table tells names in another case apart; of the others' it is not known, and they are found by the name in lower case, too.
    by_lower: HashMap<String, &'r TagListing>,
}

impl<'r> RowsByTag<'r> {
    fn new(rows: &'r [TagListing], is_own: bool) -> Self {
        let by_name = rows.iter().map(|row| (row.tag.as_str(), row));
        let others = rows.iter().filter(|_| !is_own);
        let by_lower = others.map(|row| (row.tag.to_ascii_lowercase(), row));
        Self {
            by_name: by_name.collect(),
            by_lower: by_lower.collect(),
        }
    }

    /// The row of a tag: that of just this name, where the table tells case apart.
    fn of(&self, tag: &Tag) -> Option<&'r TagListing> {
        let name = tag.as_str();
        let row = self.by_name.get(name);
        row.or_else(|| self.by_lower.get(&name.to_ascii_lowercase()))
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tag: &str, next: u64) -> TagListing {
        TagListing {
            tag: tag.to_owned(),
            next,
            gone_back_from: None,
            may_lack_ids: false,
            id_max: None,
            step: 1,
            order: Some(TagOrder::Distinct),
            hiding: Ok(None),
        }
    }

    /// How far the row has come that is found for a tag.
    fn found(rows: &[TagListing], is_own: bool, tag: &str) -> Option<u64> {
        let tag = Tag::parse(tag).unwrap();
        let rows = RowsByTag::new(rows, is_own);
        rows.of(&tag).map(|row| row.next)
    }

    #[test]
    fn the_exact_name_is_found_where_names_differ_by_case() {
        for rows in [
            [row("Orders", 1), row("orders", 2)],
            [row("orders", 2), row("Orders", 1)],
        ] {
            for is_own in [true, false] {
                assert_eq!(found(&rows, is_own, "Orders"), Some(1));
                assert_eq!(found(&rows, is_own, "orders"), Some(2));
            }
        }
        let one = [row("Orders", 1)];
        assert_eq!(found(&one, false, "orders"), Some(1));
        assert_eq!(found(&one, true, "orders"), None);
    }
}
