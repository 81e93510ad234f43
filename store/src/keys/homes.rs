//! Tags made, closed and opened in several stores. Why in this order stands in [`crate::home`].

use keywright_core::{Cause, Tag};

use super::Keys;
use super::several::open_in_another;
use crate::elsewhere::{Stands, is_open};
use crate::failure::Failure;
use crate::home::{HomeRow, Plan, Refused, Standing, leads_to};
use crate::store::advance::{AdvanceTag, By};
use crate::store::home_rows::{ClaimHome, FoundHome, OpenHome, RecordClosed};
use crate::store::tag_admin::{CreateTag, TagOptions};
use crate::store::tag_left::left_by_tables;

/// What others say when a tag's row says that its ids come from them.
#[derive(Debug)]
struct Closed {
    /// The first id that none of them gave.
    bound: u64,
    /// The stores in which it is closed.
    marks: Vec<String>,
    /// Those in which it is closed since now.
    since_now: Vec<String>,
}

/// The home of a tag, for those that are closed in its favour.
#[derive(Debug, Clone, Copy)]
struct Home<'a> {
    keys: &'a Keys,
    key_space: &'a str,
    /// How programs reserve of it.
    options: TagOptions,
}

impl Keys {
    /// Makes a tag where it is at home, and closes it in all other stores.
    pub(super) async fn create_at_home(
        &self,
        tag: &Tag,
        options: &TagOptions,
        alone: bool,
    ) -> Result<(), Failure> {
        let home = self.home_of(tag);
        home.refuse_other_systems(tag)?;
        if home.gives_ranges_only() {
            return home.create_here(tag, options, alone).await;
        }
        if options.order.is_ordered() && home.store_name() != self.store_name() {
            let message = format!(
                "tag \"{tag}\" cannot be ordered: only the store without tags has such, and it is in store \"{}\"",
                home.store_name()
            );
            return Err(Failure::new(Cause::TagOrdered, message));
        }
        // Else a row would be left that waits in vain.
        if let Some(failure) = self.refused_elsewhere(tag).await {
            return Err(failure);
        }
        let create = CreateTag {
            store: home.store(),
            tag: tag.clone(),
            options: *options,
            alone,
            waits: true,
        };
        match home.run(create).await? {
            Ok(()) => {}
            // Begun before, maybe.
            Err(failure) if failure.cause() == Cause::TagExists => {
                let found = home.found_here(tag).await?;
                if found.row.standing != Standing::Opening(None) {
                    return Err(failure);
                }
            }
            Err(failure) => return Err(failure),
        }
        self.open_at_home(tag).await.map(drop)
    }

    /// Opens a row that waits, once the tag is closed in all other stores: those in which it is so since now.
    async fn open_at_home(&self, tag: &Tag) -> Result<Vec<String>, Failure> {
        let home = self.home_of(tag);
        let found = home.found_here(tag).await?;
        self.refuse_left(tag, home, &found)?;
        let closed = self
            .close_elsewhere(
                tag,
                Home {
                    keys: home,
                    key_space: &found.row.key_space,
                    options: found.options,
                },
                &[],
            )
            .await?;
        let opened = home.run(OpenHome {
            of: home.tag_in(tag),
            key_space: found.row.key_space,
            bound: closed.bound,
            start: None,
            rate_per_s: 0,
            closed_in: (None, closed.marks),
            mark: home.0.settings.mark(),
        });
        opened.await??;
        Ok(closed.since_now)
    }

    /// Has a tag that is there be closed in all other stores, so that programs may take of it: those in which it is so since now.
    ///
    /// # Errors
    /// It is open in another; it is not open where it is at home; a store cannot be used.
    pub async fn settle(&self, tag: &Tag) -> Result<Vec<String>, Failure> {
        if !self.are_several() {
            return Ok(Vec::new());
        }
        let home = self.home_of(tag);
        let found = match home.stands_here(tag).await? {
            Stands::Row(found) if !found.row.is_dropped => found,
            Stands::Others => return self.settle_others(tag).await,
            Stands::Row(_) | Stands::Nothing => {
                let missing = || Refused::Missing.failure(tag.as_str(), home.store_name());
                return Err(self.refused_elsewhere(tag).await.unwrap_or_else(missing));
            }
        };
        match &found.row.standing {
            // Of another home before: only a move opens it, which finds that one closed.
            Standing::Opening(Some(_)) => {
                let under_way = Refused::UnderWay.failure(tag.as_str(), home.store_name());
                Err(under_way.hint(format!(
                    "keywright tag move {tag} --to-store {} goes on",
                    home.store_name()
                )))
            }
            Standing::Opening(None) => match self.refused_elsewhere(tag).await {
                None => self.open_at_home(tag).await,
                Some(failure) => Err(failure),
            },
            Standing::Open => self.settle_open(tag, home, &found).await,
            Standing::Elsewhere(_) => {
                let others = || Refused::AnothersIds.failure(tag.as_str(), home.store_name());
                Err(self.refused_elsewhere(tag).await.unwrap_or_else(others))
            }
            Standing::Native(heir) => {
                let refused = Refused::Native(heir.clone());
                Err(refused.failure(tag.as_str(), home.store_name()))
            }
        }
    }

    /// The same of a tag that is open where it is at home, as its row was found.
    async fn settle_open(
        &self,
        tag: &Tag,
        home: &Keys,
        found: &FoundHome,
    ) -> Result<Vec<String>, Failure> {
        self.refuse_left(tag, home, found)?;
        if found.row.key_space.is_empty() {
            let message = format!("tag \"{tag}\" was made by hand, and has no key_space_id");
            let failure = Failure::new(Cause::BoundDamaged, message);
            return Err(failure.hint("where there are several stores each tag needs one: 32 hexadecimal digits that no other has"));
        }
        let listed = found.closed_in.clone().unwrap_or_default();
        let listed: Vec<&str> = listed.split(' ').collect();
        let its = Home {
            keys: home,
            key_space: &found.row.key_space,
            options: found.options,
        };
        let closed = self.close_elsewhere(tag, its, &listed).await?;
        // One that was dropped there may have given more.
        if closed.bound > found.row.free {
            let raised = home.run(AdvanceTag {
                store: home.store(),
                tag: tag.clone(),
                id: closed.bound.saturating_sub(1),
                by: By::Program,
            });
            raised.await??;
        }
        if !closed.marks.is_empty() {
            let recorded = home.run(RecordClosed {
                of: home.tag_in(tag),
                key_space: found.row.key_space.clone(),
                marks: closed.marks,
            });
            recorded.await??;
        }
        Ok(closed.since_now)
    }

    /// The same of a tag whose store keeps no such list: the mark of its place stands for its key space.
    async fn settle_others(&self, tag: &Tag) -> Result<Vec<String>, Failure> {
        let home = self.home_of(tag);
        let mark = home.0.settings.mark();
        let its = Home {
            keys: home,
            key_space: &mark,
            options: TagOptions::with_step(keywright_core::Step::LEAST),
        };
        Ok(self.close_elsewhere(tag, its, &[]).await?.since_now)
    }

    /// Why a tag is not opened where it is at home, as far as the other stores answer: it is open in one of them, or tables have left it there.
    async fn refused_elsewhere(&self, tag: &Tag) -> Option<Failure> {
        let home = self.home_of(tag).store_name();
        for keys in self.all().filter(|keys| keys.store_name() != home) {
            let open = || Some(open_in_another(tag, keys.store_name(), home));
            let refused = match keys.stands_here(tag).await {
                Ok(Stands::Row(found)) if is_open(&found) => open(),
                Ok(Stands::Row(found)) => found.is_left_by_tables.then(|| left_by_tables(tag)),
                Ok(Stands::Others) => open(),
                Ok(Stands::Nothing) | Err(_) => None,
            };
            if refused.is_some() {
                return refused;
            }
        }
        None
    }

    /// A tag that tables have left is not opened where key ports do not hear of it. They follow the rules of the store without tags alone, and another
    /// store may have been that before.
    fn refuse_left(&self, tag: &Tag, home: &Keys, found: &FoundHome) -> Result<(), Failure> {
        let is_heard = home.store_name() == self.store_name();
        match found.is_left_by_tables && !is_heard {
            true => Err(left_by_tables(tag)),
            false => Ok(()),
        }
    }

    /// Closes a tag in all other stores. Those that are listed need not answer.
    async fn close_elsewhere(
        &self,
        tag: &Tag,
        home: Home<'_>,
        listed: &[&str],
    ) -> Result<Closed, Failure> {
        let mut closed = Closed {
            bound: 1,
            marks: Vec::new(),
            since_now: Vec::new(),
        };
        let is_other = |other: &&Keys| other.store_name() != home.keys.store_name();
        let others: Vec<(&Keys, String)> = self
            .all()
            .filter(is_other)
            .map(|other| (other, other.0.settings.mark()))
            .collect();
        let mut rows: Vec<HomeRow> = Vec::new();
        for keys in self.all() {
            // What cannot be asked leads nowhere.
            if let Ok(Stands::Row(found)) = keys.stands_here(tag).await {
                rows.push(found.row);
            }
        }
        let leads = leads_to(home.key_space, &rows);
        let is_away = |failure: &Failure, mark: &String| {
            failure.cause() == Cause::StoreUnavailable && listed.contains(&mark.as_str())
        };
        for (other, mark) in others {
            if other.has_own_tags() {
                let claimed = other.run(ClaimHome {
                    of: other.tag_in(tag),
                    home: home.key_space.to_owned(),
                    leads: leads.clone(),
                    options: home.options,
                });
                let claimed = match claimed.await {
                    Err(failure) if is_away(&failure, &mark) => continue,
                    claimed => claimed??,
                };
                closed.bound = closed.bound.max(*claimed.outcome());
                if let Plan::Change(_) = claimed {
                    closed.since_now.push(other.store_name().to_owned());
                }
            } else {
                match other.stands_here(tag).await {
                    Err(failure) if is_away(&failure, &mark) => continue,
                    Err(failure) => return Err(failure),
                    Ok(Stands::Others) => {
                        return Err(Refused::Open.failure(tag.as_str(), other.store_name()));
                    }
                    Ok(Stands::Row(_) | Stands::Nothing) => {}
                }
            }
            if !listed.contains(&mark.as_str()) {
                closed.marks.push(mark);
            }
        }
        Ok(closed)
    }

    /// The row of a tag that must be there.
    pub(super) async fn found_here(&self, tag: &Tag) -> Result<FoundHome, Failure> {
        match self.stands_here(tag).await? {
            Stands::Row(found) => Ok(*found),
            Stands::Nothing | Stands::Others => {
                Err(Refused::Missing.failure(tag.as_str(), self.store_name()))
            }
        }
    }
}
