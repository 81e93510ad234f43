//! What a move of a tag between two stores begins with, and what each of its steps does in them. Why in this order stands in [`crate::home`].

use keywright_core::{Cause, Tag};

use super::Keys;
use super::several::open_in_both;
use crate::elsewhere::{Stands, is_open};
use crate::failure::Failure;
use crate::home::{HomeRow, OPEN_NOWHERE, Refused, Source, Standing, leads_to};
use crate::store::home_rows::{CheckMovable, CloseHome, FoundHome, OpenHome, PrepareHome};
use crate::store::tag_left::left_by_tables;

impl Keys {
    /// What a move of a tag to this store would begin with, and where it is now.
    pub(crate) async fn look_for_move(&self, tag: &Tag, to: &str) -> Result<MoveLook, Failure> {
        let target = self.store_named(to)?.clone();
        target.refuse_without_rows()?;
        let there = match target.stands_here(tag).await? {
            Stands::Row(found) => Some(found),
            Stands::Nothing | Stands::Others => None,
        };
        let opening = there.as_ref().filter(|found| {
            matches!(found.row.standing, Standing::Opening(_)) && !found.row.is_dropped
        });
        let left_for = opening.map(|found| Standing::Elsewhere(found.row.key_space.clone()));
        let others = self.ask_others(tag, to, left_for.as_ref()).await?;
        let is_there = there.as_ref().filter(|there| is_open(there));
        let is_left_there = there.as_ref().is_some_and(|there| there.is_left_by_tables);
        match (is_there, others.open, others.left, others.silent) {
            (Some(_), Some((keys, _)), _, _) => {
                Err(open_in_both(tag, keys.store_name(), target.store_name()))
            }
            (Some(there), None, _, _) => {
                self.refuse_another_home(tag, to)?;
                Ok(MoveLook::AtHome(there.row.free))
            }
            (None, Some((from, found)), _, _) | (None, None, Some((from, found)), None) => {
                let mark = target.0.settings.mark();
                let listed = found.closed_in.as_deref().unwrap_or_default();
                let source = Source {
                    key_space: found.row.key_space.clone(),
                    leads: leads_to(&found.row.key_space, &others.rows),
                    lists_target: listed.split(' ').any(|its| its == mark),
                };
                self.refuse_another_home(tag, to)?;
                // In the store without tags key ports hear of it.
                let is_heard = to == self.store_name();
                if others.are_left_by_tables || is_left_there && !is_heard {
                    return Err(left_by_tables(tag));
                }
                let ends = MoveEnds {
                    from,
                    target,
                    above: others.above,
                    source,
                };
                Ok(MoveLook::From(ends, Box::new(found)))
            }
            // It may be open there, or know of more that was given.
            (None, None, _, Some(failure)) => Err(failure),
            (None, None, None, None) => {
                let message = format!("tag \"{tag}\" is open in no store of the configuration");
                Err(Failure::new(Cause::TagUnknown, message).hint(format!(
                    "use a configuration that has the store where it is; or keywright init makes it; {OPEN_NOWHERE}"
                )))
            }
        }
    }

    /// What all stores but the target say of a tag. `left_for`: how it stands in the one that was closed in favour of the target.
    async fn ask_others(
        &self,
        tag: &Tag,
        target: &str,
        left_for: Option<&Standing>,
    ) -> Result<SaidByOthers, Failure> {
        let mut others = SaidByOthers {
            open: None,
            left: None,
            silent: None,
            above: 1,
            rows: Vec::new(),
            are_left_by_tables: false,
        };
        for keys in self.all().filter(|keys| keys.store_name() != target) {
            match keys.stands_here(tag).await {
                Ok(Stands::Row(found)) => {
                    others.above = others.above.max(found.row.free);
                    others.rows.push(found.row.clone());
                    others.are_left_by_tables |= found.is_left_by_tables;
                    match (&others.open, is_open(&found)) {
                        (Some((first, _)), true) => {
                            return Err(open_in_both(tag, first.store_name(), keys.store_name()));
                        }
                        (None, true) => others.open = Some((keys.clone(), *found)),
                        (_, false) if left_for == Some(&found.row.standing) => {
                            others.left = Some((keys.clone(), *found));
                        }
                        (_, false) => {}
                    }
                }
                Ok(Stands::Others) => {
                    let failure = Refused::Open.failure(tag.as_str(), keys.store_name());
                    return Err(failure
                        .hint("tags of other systems, and those behind key ports, do not move"));
                }
                Ok(Stands::Nothing) => {}
                Err(failure) => others.silent = Some(failure),
            }
        }
        Ok(others)
    }

    /// No program starts with a configuration by which an open tag is in another store than it is.
    fn refuse_another_home(&self, tag: &Tag, to: &str) -> Result<(), Failure> {
        let home = self.home_of(tag).store_name();
        if home == to {
            return Ok(());
        }
        let message = format!(
            "tag \"{tag}\" is in store \"{home}\" by this configuration, and no program starts with it once it is in \"{to}\""
        );
        Err(Failure::new(Cause::ArgumentOutOfRange, message)
            .hint("change tags in the configuration first, on all machines"))
    }

    /// Only Keywright's own tables say that a tag is closed.
    fn refuse_without_rows(&self) -> Result<(), Failure> {
        match self.has_own_tags() {
            true => Ok(()),
            false => {
                let message = format!(
                    "store \"{}\" cannot say that a tag is closed, so none moves there, or from there",
                    self.store_name()
                );
                Err(Failure::new(Cause::TagInvalid, message).hint(
                    "tags move between stores with dialect = \"keywright\" that are no redis://",
                ))
            }
        }
    }
}

/// What all stores but the target of a move say of a tag.
struct SaidByOthers {
    /// The one where it is open.
    open: Option<(Keys, FoundHome)>,
    /// The one that was closed in favour of the target.
    left: Option<(Keys, FoundHome)>,
    /// Why one did not answer.
    silent: Option<Failure>,
    /// The first id that none of them gave. Going on higher than need be does no harm.
    above: u64,
    rows: Vec<HomeRow>,
    /// By the rules of one of them tables have left the tag.
    are_left_by_tables: bool,
}

/// Where a tag is, before it moves.
#[derive(Debug)]
pub(crate) enum MoveLook {
    /// It is there already, with this first id that nobody was given.
    AtHome(u64),
    /// It is elsewhere, or was until it was closed in favour of the target.
    From(MoveEnds, Box<FoundHome>),
}

/// The two stores of a move.
#[derive(Debug, Clone)]
pub(crate) struct MoveEnds {
    pub(crate) from: Keys,
    pub(crate) target: Keys,
    /// The first id that none of the others gave, as they said at first.
    above: u64,
    /// What the store that the tag leaves says of it.
    source: Source,
}

impl MoveEnds {
    /// Has the target's row wait: its key space.
    pub(crate) async fn prepare(&self, tag: &Tag, from: &FoundHome) -> Result<String, Failure> {
        self.from.run(CheckMovable(self.from.tag_in(tag))).await??;
        let prepare = PrepareHome {
            of: self.target.tag_in(tag),
            options: from.options,
            source: self.source.clone(),
        };
        let prepared = self.target.run(prepare).await??;
        Ok(prepared.outcome().key_space.clone())
    }

    /// Closes the tag for everybody where it was: the bound.
    pub(crate) async fn close(&self, tag: &Tag, key_space: &str) -> Result<u64, Failure> {
        let close = CloseHome {
            of: self.from.tag_in(tag),
            target: key_space.to_owned(),
        };
        let closed = self.from.run(close).await??;
        self.from.0.store.note_seen(tag, *closed.outcome());
        Ok(*closed.outcome())
    }

    /// Opens it in the target, above the bound that the tombstone records, which is read again.
    pub(crate) async fn open(&self, tag: &Tag, key_space: &str) -> Result<u64, Failure> {
        let left = self.from.found_here(tag).await?;
        if left.row.standing != Standing::Elsewhere(key_space.to_owned()) {
            return Err(Refused::Overtaken.failure(tag.as_str(), self.from.store_name()));
        }
        let open = OpenHome {
            of: self.target.tag_in(tag),
            key_space: key_space.to_owned(),
            bound: left.row.free.max(self.above),
            start: (left.start < left.row.free).then_some(left.start),
            rate_per_s: left.rate_per_s,
            closed_in: (left.closed_in, vec![self.from.0.settings.mark()]),
            mark: self.target.0.settings.mark(),
        };
        let opened = self.target.run(open).await??;
        Ok(*opened.outcome())
    }
}
