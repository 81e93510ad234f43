//! The attempt that is under way, what is in force, and who is there: reading it, beginning, ending, releasing.

use std::sync::Arc;

use keywright_core::Tag;
use tokio::sync::OwnedMutexGuard;

use super::fence_records::forget_all;
use super::{Link, Row, Store, StoreError, Transaction, column, values};
use crate::switch::space::KeySpace;
use crate::switch::state::{Change, InForce, Peer, Phase, RuleName, Standing};

/// Programs that were not seen for so long are forgotten, hours.
const FORGET_H: u64 = 24;

/// An attempt, its row locked until the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Locked {
    pub(super) attempt: u64,
    pub(super) phase: Phase,
}

/// Locks the row of the attempt, which is made if there is none.
pub(super) async fn lock(link: &mut Link) -> Result<Locked, StoreError> {
    let words = link.words();
    let select = format!(
        "SELECT attempt, phase FROM keywright_switch WHERE id = 1{}",
        words.for_update()
    );
    let row = match link.first(&select, Vec::new()).await? {
        Some(row) => Some(row),
        None => {
            make(link).await?;
            // Somebody else may have made it first, and gone on.
            link.first(&select, Vec::new()).await?
        }
    };
    let row = row.ok_or(StoreError::NotLocked)?;
    Ok(Locked {
        attempt: column(&row, "attempt")?,
        phase: phase(&row)?,
    })
}

/// Makes the row of the attempt, if there is none.
pub(super) async fn make(link: &mut Link) -> Result<(), StoreError> {
    let make = link.words().insert_new("keywright_switch (id) VALUES (1)");
    link.change(make, Vec::new()).await?;
    Ok(())
}

fn phase(row: &Row) -> Result<Phase, StoreError> {
    let name: String = column(row, "phase")?;
    Phase::parse(&name).ok_or_else(|| wrong("phase", name))
}

fn wrong(name: &str, value: String) -> StoreError {
    StoreError::Column {
        column: name.to_owned(),
        value,
    }
}

/// A column that says where keys come from, or NULL.
pub(super) fn key_space(row: &Row, name: &str) -> Result<Option<KeySpace>, StoreError> {
    let text: Option<String> = column(row, name)?;
    text.map(|text| KeySpace::parse(&text).ok_or_else(|| wrong(name, text)))
        .transpose()
}

/// All rules, or only those that an attempt is about.
pub(super) async fn rules(
    link: &mut Link,
    of: Option<u64>,
) -> Result<Vec<(InForce, Option<u64>)>, StoreError> {
    let rows = link.rows(RULES, Vec::new()).await?;
    let servers = link.rows(SERVERS, Vec::new()).await?;
    rules_of(&rows, &servers, of)
}

const RULES: &str = "SELECT table_pattern, column_name, key_space, attempt, next_key_space, above FROM keywright_rule \
     ORDER BY table_pattern, column_name";
const SERVERS: &str =
    "SELECT table_pattern, column_name, server FROM keywright_rule_server ORDER BY server";

/// What these queries have found.
fn rules_of(
    rows: &[Row],
    servers: &[Row],
    of: Option<u64>,
) -> Result<Vec<(InForce, Option<u64>)>, StoreError> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let attempt: Option<u64> = column(row, "attempt")?;
        if of.is_some() && attempt != of {
            continue;
        }
        let next = key_space(row, "next_key_space")?;
        let its = InForce {
            rule: RuleName {
                tables: column(row, "table_pattern")?,
                column: column(row, "column_name")?,
            },
            keys: key_space(row, "key_space")?,
            next: attempt.is_some().then_some(next),
            above: column(row, "above")?,
            servers: Vec::new(),
        };
        found.push((its, attempt));
    }
    for row in servers {
        let rule = RuleName {
            tables: column(row, "table_pattern")?,
            column: column(row, "column_name")?,
        };
        if let Some((its, _)) = found.iter_mut().find(|(its, _)| its.rule == rule) {
            its.servers.push(column(row, "server")?);
        }
    }
    Ok(found)
}

/// Reads everything.
#[derive(Debug)]
pub(crate) struct ReadStanding {
    pub(crate) store: Arc<Store>,
}

impl Transaction<Standing> for ReadStanding {
    async fn run(&self, link: &mut Link) -> Result<Standing, StoreError> {
        let words = link.words();
        let switch = format!(
            "SELECT attempt, phase, leader, snowflake_generation, {} AS age_ms FROM keywright_switch WHERE id = 1",
            words.since_ms("begun_at")
        );
        let peers = format!(
            "SELECT program, holder, held, {} AS silent_ms, {} AS seen_ms FROM keywright_program ORDER BY program",
            words.since_ms("seen_at"),
            words.unix_ms("seen_at")
        );
        let tags = format!(
            "SELECT tag, generation, key_space_id FROM {} ORDER BY tag",
            self.store.segment_table
        );
        let (rules, servers) = (RULES.to_owned(), SERVERS.to_owned());
        // Tags of another system have no generations.
        let (switch, rules, servers, peers, tags) = match self.store.dialect.is_own() {
            true => {
                let queries = [switch, rules, servers, peers, tags];
                link.rows_together(queries).await?.into()
            }
            false => {
                let queries = [switch, rules, servers, peers];
                let [switch, rules, servers, peers] = link.rows_together(queries).await?;
                (switch, rules, servers, peers, Vec::new())
            }
        };
        let switch = switch.first();
        let rules = rules_of(&rules, &servers, None)?;
        let mut standing = Standing {
            attempt: 0,
            phase: Phase::None,
            leader: None,
            age_ms: 0,
            rules: rules.into_iter().map(|(rule, _)| rule).collect(),
            generations: Vec::with_capacity(tags.len().saturating_add(1)),
            key_space_ids: Vec::with_capacity(tags.len()),
            peers: Vec::with_capacity(peers.len()),
        };
        if let Some(row) = switch {
            standing.attempt = column(row, "attempt")?;
            standing.phase = phase(row)?;
            standing.leader = column(row, "leader")?;
            standing.age_ms = column(row, "age_ms")?;
            let generation = column(row, "snowflake_generation")?;
            standing.generations.push((KeySpace::Snowflake, generation));
        }
        for row in &tags {
            let text: String = column(row, "tag")?;
            let tag = Tag::parse(&text).map_err(|_| wrong("tag", text))?;
            let generation = column(row, "generation")?;
            let id = column(row, "key_space_id")?;
            standing.key_space_ids.push((tag.clone(), id));
            standing.generations.push((KeySpace::Tag(tag), generation));
        }
        for row in &peers {
            standing.peers.push(Peer {
                program: column(row, "program")?,
                holder: column(row, "holder")?,
                silent_ms: column(row, "silent_ms")?,
                seen_ms: column(row, "seen_ms")?,
                held: column(row, "held")?,
            });
        }
        Ok(standing)
    }
}

/// Says that a program is there, and for which attempt its statements wait.
#[derive(Debug)]
pub(crate) struct Beat {
    pub(crate) program: String,
    pub(crate) holder: String,
    pub(crate) held: Option<u64>,
    /// It has said nothing before.
    pub(crate) is_first: bool,
    /// What the program says next waits for the answer.
    pub(crate) _was_heard: OwnedMutexGuard<bool>,
}

impl Transaction<()> for Beat {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let words = link.words();
        let (now, or_update) = (words.now(), words.or_update("program"));
        let write = format!(
            "INSERT INTO keywright_program (program, holder, seen_at, held) VALUES (?, ?, {now}, ?) \
             {or_update} seen_at = {now}, held = ?"
        );
        let values = values![&self.program, &self.holder, self.held, self.held];
        link.change(write, values).await?;
        if self.is_first {
            // Where nothing is switched nobody else would.
            forget_programs(link).await?;
        }
        Ok(())
    }
}

/// Those that were killed, long enough ago.
async fn forget_programs(link: &mut Link) -> Result<(), StoreError> {
    let forget = format!(
        "DELETE FROM keywright_program WHERE seen_at < {}",
        link.words().hours_ago(FORGET_H)
    );
    link.change(forget, Vec::new()).await?;
    Ok(())
}

/// A program stops: the others need not wait for it, nor for the end of what it has begun.
#[derive(Debug)]
pub(crate) struct Leave {
    pub(crate) program: String,
    /// As of [`Beat`].
    pub(crate) _was_heard: OwnedMutexGuard<bool>,
}

impl Transaction<()> for Leave {
    /// Each by itself: whoever finds only one of them done goes on all the same.
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let end = "UPDATE keywright_switch SET phase = ? WHERE id = 1 AND phase = ? AND leader = ?";
        let (ending, holding) = (Phase::Ending.name(), Phase::Holding.name());
        link.change(end, values![ending, holding, &self.program])
            .await?;
        let delete = "DELETE FROM keywright_program WHERE program = ?";
        link.change(delete, values![&self.program]).await?;
        Ok(())
    }
}

/// Begins an attempt.
#[derive(Debug)]
pub(crate) struct Begin {
    pub(crate) program: String,
    pub(crate) changes: Vec<Change>,
    /// As of [`Beat`]: nothing is begun by a program that has left.
    pub(crate) _was_heard: OwnedMutexGuard<bool>,
}

impl Transaction<Option<u64>> for Begin {
    /// `None`: another one is under way, or something else is in force than it is to begin from.
    async fn run(&self, link: &mut Link) -> Result<Option<u64>, StoreError> {
        link.begin().await?;
        let begun = self.begin(link).await?;
        link.end(begun.is_some()).await?;
        Ok(begun)
    }
}

impl Begin {
    async fn begin(&self, link: &mut Link) -> Result<Option<u64>, StoreError> {
        let locked = lock(link).await?;
        let known = rules(link, None).await?;
        let is_so = |change: &Change| {
            let its = known.iter().find(|(its, _)| its.rule == change.rule);
            its.and_then(|(its, _)| its.keys.as_ref()) == change.from.as_ref()
        };
        if locked.phase != Phase::None || !self.changes.iter().all(is_so) {
            return Ok(None);
        }
        let attempt = locked.attempt.saturating_add(1);
        forget_programs(link).await?;
        let words = link.words();
        let hold = format!(
            "UPDATE keywright_switch SET attempt = ?, phase = 'holding', leader = ?, begun_at = {} WHERE id = 1",
            words.now()
        );
        link.change(hold, values![attempt, &self.program]).await?;
        // What it was at before may have kept it from saying so.
        let heard = format!(
            "UPDATE keywright_program SET seen_at = {} WHERE program = ?",
            words.now()
        );
        link.change(heard, values![&self.program]).await?;
        let write = format!(
            "INSERT INTO keywright_rule (table_pattern, column_name, attempt, next_key_space) VALUES (?, ?, ?, ?) \
             {} attempt = ?, next_key_space = ?",
            words.or_update("table_pattern, column_name")
        );
        for Change { rule, from: _, to } in &self.changes {
            let to = to.as_ref().map(KeySpace::to_string);
            let mut values = values![&rule.tables, &rule.column, attempt, to.clone()];
            values.extend(values![attempt, to]);
            link.change(&write, values).await?;
        }
        Ok(Some(attempt))
    }
}

/// Releases an attempt that was given up. Rules that are native know from now on where the counters go on of tables that were left behind.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) attempt: u64,
    pub(crate) above: Option<u64>,
}

impl Transaction<bool> for Release {
    async fn run(&self, link: &mut Link) -> Result<bool, StoreError> {
        link.begin().await?;
        let locked = lock(link).await?;
        let is_so = locked.attempt == self.attempt && locked.phase == Phase::Ending;
        if is_so {
            if let Some(above) = self.above {
                let note = format!(
                    "UPDATE keywright_rule SET above = {} WHERE attempt = ? AND key_space IS NULL",
                    link.words().greater("COALESCE(above, 0)", "?")
                );
                link.change(note, values![above, self.attempt]).await?;
            }
            set_phase(link, Phase::None).await?;
            clear(link, self.attempt).await?;
        }
        link.end(is_so).await?;
        Ok(is_so)
    }
}

/// Moves an attempt from one phase to the next, if it is in that one.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) attempt: u64,
    pub(crate) from: Phase,
    pub(crate) to: Phase,
}

impl Transaction<bool> for Move {
    async fn run(&self, link: &mut Link) -> Result<bool, StoreError> {
        link.begin().await?;
        let locked = lock(link).await?;
        let is_so = locked.attempt == self.attempt && locked.phase == self.from;
        if is_so {
            set_phase(link, self.to).await?;
            if self.to == Phase::None {
                forget_servers(link, self.attempt).await?;
                forget_all(self.attempt, link).await?;
                let leave = "UPDATE keywright_rule SET key_space = NULL WHERE attempt = ?";
                link.change(leave, values![self.attempt]).await?;
                clear(link, self.attempt).await?;
            }
        }
        link.end(is_so).await?;
        Ok(is_so)
    }
}

pub(super) async fn set_phase(link: &mut Link, phase: Phase) -> Result<(), StoreError> {
    let update = "UPDATE keywright_switch SET phase = ? WHERE id = 1";
    link.change(update, values![phase.name()]).await?;
    Ok(())
}

/// The rules that an attempt is about are in force on no server.
pub(super) async fn forget_servers(link: &mut Link, attempt: u64) -> Result<(), StoreError> {
    let forget = "DELETE FROM keywright_rule_server WHERE EXISTS (SELECT 1 FROM keywright_rule r \
                  WHERE r.table_pattern = keywright_rule_server.table_pattern \
                  AND r.column_name = keywright_rule_server.column_name AND r.attempt = ?)";
    link.change(forget, values![attempt]).await?;
    Ok(())
}

/// Nothing of an attempt is left.
pub(super) async fn clear(link: &mut Link, attempt: u64) -> Result<(), StoreError> {
    let rules = "UPDATE keywright_rule SET attempt = NULL, next_key_space = NULL WHERE attempt = ?";
    link.change(rules, values![attempt]).await?;
    let tables = "DELETE FROM keywright_switch_table WHERE attempt = ?";
    link.change(tables, values![attempt]).await?;
    Ok(())
}

/// The phase of an attempt, asked for by whoever has a table's lock; `None`: it is over.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) attempt: u64,
}

impl Transaction<Option<Phase>> for Ask {
    async fn run(&self, link: &mut Link) -> Result<Option<Phase>, StoreError> {
        let select = "SELECT phase FROM keywright_switch WHERE id = 1 AND attempt = ?";
        let row = link.first(select, values![self.attempt]).await?;
        let phase = row.as_ref().map(phase).transpose()?;
        Ok(phase.filter(|phase| *phase != Phase::None))
    }
}
