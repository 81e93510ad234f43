//! The attempt that is under way, what is in force, and who is there: reading it, beginning, ending, releasing.

use std::sync::Arc;

use keywright_core::Tag;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::{Link, Store, StoreError, Transaction, column};
use crate::switch::space::KeySpace;
use crate::switch::state::{Change, InForce, Peer, Phase, RuleName, Standing};

/// Programs that were not seen for so long are forgotten, hours.
const FORGET_H: u32 = 24;

/// An attempt, its row locked until the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Locked {
    pub(super) attempt: u64,
    pub(super) phase: Phase,
}

/// Locks the row of the attempt, which is made if there is none.
pub(super) async fn lock(conn: &mut Conn) -> Result<Locked, StoreError> {
    const SELECT: &str = "SELECT attempt, phase FROM keywright_switch WHERE id = 1 FOR UPDATE";
    let row: Option<Row> = conn.query_first(SELECT).await?;
    match row {
        Some(row) => Ok(Locked {
            attempt: column(&row, "attempt")?,
            phase: phase(&row)?,
        }),
        None => {
            conn.query_drop("INSERT IGNORE INTO keywright_switch (id) VALUES (1)")
                .await?;
            Ok(Locked {
                attempt: 0,
                phase: Phase::None,
            })
        }
    }
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
    conn: &mut Conn,
    of: Option<u64>,
) -> Result<Vec<(InForce, Option<u64>)>, StoreError> {
    let rows: Vec<Row> = conn
        .query(
            "SELECT table_pattern, column_name, key_space, attempt, next_key_space, above FROM keywright_rule \
             ORDER BY table_pattern, column_name",
        )
        .await?;
    let servers: Vec<Row> = conn
        .query(
            "SELECT table_pattern, column_name, server FROM keywright_rule_server ORDER BY server",
        )
        .await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
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
    for row in &servers {
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
    /// One transaction, so that all is of one moment.
    async fn run(self, link: &mut Link) -> Result<Standing, StoreError> {
        const SWITCH: &str = "SELECT attempt, phase, leader, snowflake_generation, \
            CAST(COALESCE(GREATEST(TIMESTAMPDIFF(MICROSECOND, begun_at, UTC_TIMESTAMP(3)), 0), 0) DIV 1000 AS UNSIGNED) AS age_ms \
            FROM keywright_switch WHERE id = 1";
        const PEERS: &str = "SELECT program, holder, held, \
            CAST(GREATEST(TIMESTAMPDIFF(MICROSECOND, seen_at, UTC_TIMESTAMP(3)), 0) DIV 1000 AS UNSIGNED) AS silent_ms \
            FROM keywright_program ORDER BY program";
        let conn = &mut link.conn;
        conn.query_drop("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            .await?;
        conn.query_drop("START TRANSACTION READ ONLY").await?;
        let switch: Option<Row> = conn.query_first(SWITCH).await?;
        let rules = rules(conn, None).await?;
        let table = &self.store.segment_table;
        let tags: Vec<Row> = match self.store.dialect.is_own() {
            true => {
                let select = format!("SELECT tag, generation FROM {table} ORDER BY tag");
                conn.query(select).await?
            }
            false => Vec::new(),
        };
        let peers: Vec<Row> = conn.query(PEERS).await?;
        conn.query_drop("COMMIT").await?;
        let mut standing = Standing {
            attempt: 0,
            phase: Phase::None,
            leader: None,
            age_ms: 0,
            rules: rules.into_iter().map(|(rule, _)| rule).collect(),
            generations: Vec::with_capacity(tags.len().saturating_add(1)),
            peers: Vec::with_capacity(peers.len()),
        };
        if let Some(row) = &switch {
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
            standing.generations.push((KeySpace::Tag(tag), generation));
        }
        for row in &peers {
            standing.peers.push(Peer {
                program: column(row, "program")?,
                holder: column(row, "holder")?,
                silent_ms: column(row, "silent_ms")?,
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
}

impl Transaction<()> for Beat {
    async fn run(self, link: &mut Link) -> Result<(), StoreError> {
        let write = "INSERT INTO keywright_program (program, holder, seen_at, held) VALUES (?, ?, UTC_TIMESTAMP(3), ?) \
                     ON DUPLICATE KEY UPDATE seen_at = UTC_TIMESTAMP(3), held = ?";
        let values = (&self.program, &self.holder, self.held, self.held);
        link.conn.exec_drop(write, values).await?;
        Ok(())
    }
}

/// A program stops: the others need not wait for it.
#[derive(Debug)]
pub(crate) struct Leave {
    pub(crate) program: String,
}

impl Transaction<()> for Leave {
    async fn run(self, link: &mut Link) -> Result<(), StoreError> {
        let delete = "DELETE FROM keywright_program WHERE program = ?";
        link.conn.exec_drop(delete, (&self.program,)).await?;
        Ok(())
    }
}

/// Begins an attempt.
#[derive(Debug)]
pub(crate) struct Begin {
    pub(crate) program: String,
    pub(crate) changes: Vec<Change>,
}

impl Transaction<Option<u64>> for Begin {
    /// `None`: another one is under way, or something else is in force than it is to begin from.
    async fn run(self, link: &mut Link) -> Result<Option<u64>, StoreError> {
        let conn = &mut link.conn;
        conn.query_drop("START TRANSACTION").await?;
        let begun = self.begin(conn).await?;
        conn.query_drop(if begun.is_some() {
            "COMMIT"
        } else {
            "ROLLBACK"
        })
        .await?;
        Ok(begun)
    }
}

impl Begin {
    async fn begin(&self, conn: &mut Conn) -> Result<Option<u64>, StoreError> {
        let locked = lock(conn).await?;
        let known = rules(conn, None).await?;
        let is_so = |change: &Change| {
            let its = known.iter().find(|(its, _)| its.rule == change.rule);
            its.and_then(|(its, _)| its.keys.as_ref()) == change.from.as_ref()
        };
        if locked.phase != Phase::None || !self.changes.iter().all(is_so) {
            return Ok(None);
        }
        let attempt = locked.attempt.saturating_add(1);
        let forget = format!(
            "DELETE FROM keywright_program WHERE seen_at < UTC_TIMESTAMP(3) - INTERVAL {FORGET_H} HOUR"
        );
        conn.query_drop(forget).await?;
        conn.exec_drop(
            "UPDATE keywright_switch SET attempt = ?, phase = 'holding', leader = ?, begun_at = UTC_TIMESTAMP(3) WHERE id = 1",
            (attempt, &self.program),
        )
        .await?;
        for Change { rule, from: _, to } in &self.changes {
            let to = to.as_ref().map(KeySpace::to_string);
            conn.exec_drop(
                "INSERT INTO keywright_rule (table_pattern, column_name, attempt, next_key_space) VALUES (?, ?, ?, ?) \
                 ON DUPLICATE KEY UPDATE attempt = ?, next_key_space = ?",
                (&rule.tables, &rule.column, attempt, &to, attempt, &to),
            )
            .await?;
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
    async fn run(self, link: &mut Link) -> Result<bool, StoreError> {
        let conn = &mut link.conn;
        conn.query_drop("START TRANSACTION").await?;
        let locked = lock(conn).await?;
        let is_so = locked.attempt == self.attempt && locked.phase == Phase::Ending;
        if is_so {
            if let Some(above) = self.above {
                let note = "UPDATE keywright_rule SET above = GREATEST(COALESCE(above, 0), ?) WHERE attempt = ? AND key_space IS NULL";
                conn.exec_drop(note, (above, self.attempt)).await?;
            }
            set_phase(conn, Phase::None).await?;
            clear(conn, self.attempt).await?;
        }
        conn.query_drop(if is_so { "COMMIT" } else { "ROLLBACK" })
            .await?;
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
    async fn run(self, link: &mut Link) -> Result<bool, StoreError> {
        let conn = &mut link.conn;
        conn.query_drop("START TRANSACTION").await?;
        let locked = lock(conn).await?;
        let is_so = locked.attempt == self.attempt && locked.phase == self.from;
        if is_so {
            set_phase(conn, self.to).await?;
            if self.to == Phase::None {
                forget_servers(conn, self.attempt).await?;
                let leave = "UPDATE keywright_rule SET key_space = NULL WHERE attempt = ?";
                conn.exec_drop(leave, (self.attempt,)).await?;
                clear(conn, self.attempt).await?;
            }
        }
        conn.query_drop(if is_so { "COMMIT" } else { "ROLLBACK" })
            .await?;
        Ok(is_so)
    }
}

pub(super) async fn set_phase(conn: &mut Conn, phase: Phase) -> Result<(), StoreError> {
    let update = "UPDATE keywright_switch SET phase = ? WHERE id = 1";
    conn.exec_drop(update, (phase.name(),)).await?;
    Ok(())
}

/// The rules that an attempt is about are in force on no server.
pub(super) async fn forget_servers(conn: &mut Conn, attempt: u64) -> Result<(), StoreError> {
    let forget = "DELETE s FROM keywright_rule_server s JOIN keywright_rule r \
                  ON r.table_pattern = s.table_pattern AND r.column_name = s.column_name WHERE r.attempt = ?";
    conn.exec_drop(forget, (attempt,)).await?;
    Ok(())
}

/// Nothing of an attempt is left.
pub(super) async fn clear(conn: &mut Conn, attempt: u64) -> Result<(), StoreError> {
    let rules = "UPDATE keywright_rule SET attempt = NULL, next_key_space = NULL WHERE attempt = ?";
    conn.exec_drop(rules, (attempt,)).await?;
    let tables = "DELETE FROM keywright_switch_table WHERE attempt = ?";
    conn.exec_drop(tables, (attempt,)).await?;
    Ok(())
}

/// The phase of an attempt, asked for by whoever has a table's lock; `None`: it is over.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) attempt: u64,
}

impl Transaction<Option<Phase>> for Ask {
    async fn run(self, link: &mut Link) -> Result<Option<Phase>, StoreError> {
        let select = "SELECT phase FROM keywright_switch WHERE id = 1 AND attempt = ?";
        let row: Option<Row> = link.conn.exec_first(select, (self.attempt,)).await?;
        let phase = row.as_ref().map(phase).transpose()?;
        Ok(phase.filter(|phase| *phase != Phase::None))
    }
}
