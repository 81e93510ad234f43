//! Recording counters, and the one transaction that makes a switch: the bound, the generation and what is in force.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_core::Tag;

use super::fence_records::{forget_lifted, forget_lifted_of, record_all};
use super::gone_back::marked;
use super::returned::discard_all;
use super::switch_rows::{clear, forget_servers, lock, rules, set_phase};
use super::switch_snowflakes::{SNOWFLAKE_ID_MAX, bound_of_snowflakes, now_ms, raise_leases};
use super::tag_hiding::hiding_of;
use super::tag_read::{is_dropped, is_foreign, order_of};
use super::{Link, Store, StoreError, Transaction, column, values};
use crate::clock::Clock;
use crate::lease::TakeoverLimits;
use crate::switch::commit::{Bound, CommitRefusal, SnowflakeStart, bound_after, floor_after};
use crate::switch::reached::Reached;
use crate::switch::space::KeySpace;
use crate::switch::state::{InForce, Phase, Recorded};
use crate::tag_order::TagOrder;

/// Records a counter while its table is locked. False: the attempt is over, and nothing may be fenced.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) attempt: u64,
    pub(crate) recorded: Recorded,
}

impl Transaction<bool> for Record {
    async fn run(&self, link: &mut Link) -> Result<bool, StoreError> {
        link.begin().await?;
        let locked = lock(link).await?;
        let stands = locked.attempt == self.attempt && locked.phase == Phase::Holding;
        if stands {
            let Recorded {
                server,
                schema,
                table,
                counter,
                was_fenced,
            } = &self.recorded;
            // Once more, after a failure, it is read behind the attempt's own fence: what was read first stands.
            let words = link.words();
            let write = format!(
                "INSERT INTO keywright_switch_table \
                 (server, schema_name, table_name, attempt, counter, was_fenced) VALUES (?, ?, ?, ?, ?, ?) \
                 {} counter = {}",
                words.or_update("server, schema_name, table_name"),
                words.greater("keywright_switch_table.counter", "?")
            );
            let mut values = values![server, schema, table, self.attempt];
            values.extend(values![*counter, i64::from(*was_fenced), *counter]);
            link.change(write, values).await?;
            // What was found there already stays: a native counter may have come to its end.
            if !was_fenced {
                forget_lifted(server, &(schema.clone(), table.clone()), link).await?;
            }
        }
        link.end(stands).await?;
        Ok(stands)
    }
}

/// What an attempt has recorded.
#[derive(Debug)]
pub(crate) struct ReadRecorded {
    pub(crate) attempt: u64,
}

impl Transaction<Vec<Recorded>> for ReadRecorded {
    async fn run(&self, link: &mut Link) -> Result<Vec<Recorded>, StoreError> {
        recorded(link, self.attempt).await
    }
}

async fn recorded(link: &mut Link, attempt: u64) -> Result<Vec<Recorded>, StoreError> {
    let select = "SELECT server, schema_name, table_name, counter, was_fenced FROM keywright_switch_table \
                  WHERE attempt = ? ORDER BY server, schema_name, table_name";
    let rows = link.rows(select, values![attempt]).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push(Recorded {
            server: column(row, "server")?,
            schema: column(row, "schema_name")?,
            table: column(row, "table_name")?,
            counter: column(row, "counter")?,
            was_fenced: column::<i64>(row, "was_fenced")? != 0,
        });
    }
    Ok(found)
}

/// What became of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// It is in force.
    Done,
    /// The attempt is over.
    Over,
    /// This tag is not there.
    Unknown(KeySpace),
    /// These keys cannot be issued, or cannot be left.
    Refused(KeySpace, CommitRefusal),
}

/// Makes the switch: to keys, or, where the attempt goes back to native, closes the tags.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) store: Arc<Store>,
    pub(crate) snowflakes: SnowflakeStart,
    /// How this program would take a worker id over.
    pub(crate) takeover: TakeoverLimits,
    /// The clock of `takeover`, which may have been read long before the store is asked.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) attempt: u64,
    /// How far ids have come in the tables, as far as they have told.
    pub(crate) reached: Reached,
    /// The servers where that was asked.
    pub(crate) servers: Vec<String>,
}

impl Transaction<Committed> for Commit {
    async fn run(&self, link: &mut Link) -> Result<Committed, StoreError> {
        link.begin().await?;
        let committed = self.commit(link).await?;
        let is_kept = match committed {
            Committed::Done => true,
            Committed::Over | Committed::Unknown(_) | Committed::Refused(..) => false,
        };
        link.end(is_kept).await?;
        Ok(committed)
    }
}

/// The bounds of those keys that rules leave for these: only their ids are in the same tables.
fn left_for(keys: &KeySpace, changing: &[InForce], bounds: &[(&KeySpace, Bound)]) -> Vec<Bound> {
    let comes = |rule: &&InForce| rule.next.as_ref().and_then(Option::as_ref) == Some(keys);
    let coming = changing.iter().filter(comes);
    let left: BTreeSet<&KeySpace> = coming.filter_map(|rule| rule.keys.as_ref()).collect();
    let of_them = bounds.iter().filter(|(space, _)| left.contains(space));
    of_them.map(|(_, bound)| *bound).collect()
}

impl Commit {
    async fn commit(&self, link: &mut Link) -> Result<Committed, StoreError> {
        let locked = lock(link).await?;
        if locked.attempt != self.attempt || locked.phase != Phase::Holding {
            return Ok(Committed::Over);
        }
        let changing = rules(link, Some(self.attempt)).await?;
        let changing: Vec<InForce> = changing.into_iter().map(|(rule, _)| rule).collect();
        // On further servers nothing is left: the keys go on above what these have.
        let goes = |rule: &&InForce| rule.next.as_ref() != Some(&rule.keys);
        let left: BTreeSet<&KeySpace> = changing
            .iter()
            .filter(goes)
            .filter_map(|rule| rule.keys.as_ref())
            .collect();
        let new: BTreeSet<&KeySpace> = changing
            .iter()
            .filter_map(|rule| rule.next.as_ref()?.as_ref())
            .collect();
        let bounds = match self.bounds_of_left(&left, link).await? {
            Ok(bounds) => bounds,
            Err(not_made) => return Ok(not_made),
        };
        let counters = recorded(link, self.attempt).await?;
        for keys in new.iter().copied() {
            let Some(bound) = self.bound_of_coming(keys, link).await? else {
                return Ok(Committed::Unknown(keys.clone()));
            };
            let old = left_for(keys, &changing, &bounds);
            let above = match bound.is_hidden {
                true => self.reached.first_of_others(keys, &counters),
                false => self.reached.first(keys, &counters),
            };
            let raised = match bound_after(bound, &old, above) {
                Ok(first) => self.raise_above(keys, first, link).await?,
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = raised {
                return Ok(Committed::Refused(keys.clone(), refusal));
            }
        }
        for (keys, bound) in &bounds {
            if bound.is_hidden {
                return Ok(Committed::Refused((*keys).clone(), CommitRefusal::Hidden));
            }
            if !new.contains(keys) {
                self.leave(keys, link).await?;
            }
        }
        if new.is_empty() {
            self.close(&bounds, link).await?;
        } else {
            if changing.iter().any(|rule| goes(&rule)) {
                forget_servers(link, self.attempt).await?;
            }
            self.adopt(link).await?;
            record_all(self.attempt, &self.reached.fenced(), link).await?;
            clear(link, self.attempt).await?;
            set_phase(link, Phase::None).await?;
        }
        Ok(Committed::Done)
    }

    /// How far keys have come that are left; `Err`: the switch is not made, and why.
    async fn bounds_of_left<'k>(
        &self,
        left: &BTreeSet<&'k KeySpace>,
        link: &mut Link,
    ) -> Result<Result<Vec<(&'k KeySpace, Bound)>, Committed>, StoreError> {
        let mut bounds = Vec::new();
        for keys in left.iter().copied() {
            let found = self.bound(keys, link).await?;
            let refused = |refusal| Ok(Err(Committed::Refused(keys.clone(), refusal)));
            match found {
                // By its own name, whatever comes in its place.
                Some(Bound {
                    behind: Some(seen), ..
                }) => return refused(CommitRefusal::GoneBack(seen)),
                Some(bound) if bound.is_foreign => return refused(CommitRefusal::Foreign),
                Some(bound) => bounds.push((keys, bound)),
                None => return Ok(Err(Committed::Unknown(keys.clone()))),
            }
        }
        Ok(Ok(bounds))
    }

    /// The keys are in force where the tables were fenced.
    async fn adopt(&self, link: &mut Link) -> Result<(), StoreError> {
        for server in &self.servers {
            let note = link.words().insert_new(
                "keywright_rule_server (table_pattern, column_name, server) \
                 SELECT table_pattern, column_name, ? FROM keywright_rule WHERE attempt = ?",
            );
            link.change(note, values![server, self.attempt]).await?;
        }
        let adopt =
            "UPDATE keywright_rule SET key_space = next_key_space, above = NULL WHERE attempt = ?";
        link.change(adopt, values![self.attempt]).await?;
        Ok(())
    }

    /// Back to native: from here there is only one way.
    async fn close(
        &self,
        bounds: &[(&KeySpace, Bound)],
        link: &mut Link,
    ) -> Result<(), StoreError> {
        for (keys, bound) in bounds {
            let above = "UPDATE keywright_rule SET above = ? WHERE attempt = ? AND key_space = ?";
            let values = values![bound.hi, self.attempt, keys.to_string()];
            link.change(above, values).await?;
        }
        // Whatever was recorded before they had keys.
        forget_lifted_of(self.attempt, link).await?;
        set_phase(link, Phase::Closed).await
    }

    /// What keys that come begin above, whatever tables have. Each lease of snowflake ids begins above its own bound: how far others reach is
    /// nothing to it, and that is ahead of the clock while somebody issues.
    async fn bound_of_coming(
        &self,
        keys: &KeySpace,
        link: &mut Link,
    ) -> Result<Option<Bound>, StoreError> {
        match keys {
            KeySpace::Tag(tag) => self.bound_of_tag(tag, link).await,
            KeySpace::Snowflake => Ok(Some(Bound {
                hi: 0,
                id_max: SNOWFLAKE_ID_MAX,
                is_foreign: false,
                behind: None,
                is_hidden: false,
            })),
        }
    }

    /// The bound of keys; its rows are locked until the transaction ends.
    async fn bound(&self, keys: &KeySpace, link: &mut Link) -> Result<Option<Bound>, StoreError> {
        match keys {
            KeySpace::Tag(tag) => self.bound_of_tag(tag, link).await,
            KeySpace::Snowflake => {
                let (layout, clock) = (&self.snowflakes.layout, &*self.clock);
                let bound = bound_of_snowflakes(layout, &self.takeover, clock, link).await?;
                Ok(Some(bound))
            }
        }
    }

    async fn bound_of_tag(&self, tag: &Tag, link: &mut Link) -> Result<Option<Bound>, StoreError> {
        let select = self.store.select_row();
        let row = link.first(select, values![tag.as_str()]).await?;
        let row = match row {
            Some(row) if !is_dropped(&self.store, &row)? => row,
            Some(_) | None => return Ok(None),
        };
        // Tables cannot have ids of an ordered one: to them it is not there.
        if order_of(&self.store, &row, tag)? != Ok(TagOrder::Distinct) {
            return Ok(None);
        }
        // Nor of one that a database issues natively.
        if column::<Option<String>>(&row, "heir")?.is_some() {
            return Ok(None);
        }
        // Nor of one of which nobody can say what its keys are.
        let Ok(hiding) = hiding_of(&self.store, &row, tag)? else {
            return Ok(None);
        };
        let server: Option<String> = column(&row, "server")?;
        Ok(Some(Bound {
            hi: column(&row, "number")?,
            id_max: column(&row, "id_max")?,
            behind: server.as_deref().and_then(marked),
            is_foreign: is_foreign(&row, &link.server)?,
            is_hidden: hiding.is_some(),
        }))
    }

    /// Keys are at `first` or above from now on, and of another generation.
    async fn raise_above(
        &self,
        keys: &KeySpace,
        first: u64,
        link: &mut Link,
    ) -> Result<Result<(), CommitRefusal>, StoreError> {
        match keys {
            KeySpace::Tag(tag) => raise(&self.store, tag, Some(first), link).await?,
            KeySpace::Snowflake => {
                let now_ms = now_ms(link).await?;
                match floor_after(first, &self.snowflakes, now_ms) {
                    Ok(floor_ms) => raise_leases(floor_ms, first, link).await?,
                    Err(refusal) => return Ok(Err(refusal)),
                }
            }
        }
        Ok(Ok(()))
    }

    /// Keys are of another generation from now on.
    async fn leave(&self, keys: &KeySpace, link: &mut Link) -> Result<(), StoreError> {
        match keys {
            KeySpace::Tag(tag) => raise(&self.store, tag, None, link).await,
            KeySpace::Snowflake => raise_leases(0, 0, link).await,
        }
    }
}

/// Raises a tag's generation, and its bound; what was handed back is of an older generation then.
pub(super) async fn raise(
    store: &Store,
    tag: &Tag,
    hi: Option<u64>,
    link: &mut Link,
) -> Result<(), StoreError> {
    let table = &store.segment_table;
    let update = format!(
        "UPDATE {table} SET generation = generation + 1, hi = COALESCE(?, hi), first_id = COALESCE(first_id, ?) WHERE tag = ?"
    );
    link.change_one(update, values![hi, hi, tag.as_str()])
        .await?;
    // Where none is named, the generation tells rests apart.
    discard_all(store, tag, hi.unwrap_or(0), link).await
}
