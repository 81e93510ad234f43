//! What went by each program on tables of rules that observe, so that none takes the others' ids for a stranger's, and what came by none.

use mysql_async::Row;
use mysql_async::prelude::Queryable;

use super::{Link, StoreError, Transaction, column};
use crate::switch::state::{NativeInserts, PeerReport, PeerReports, RuleName, Unseen};

/// Programs that noted nothing for so long are forgotten, hours.
const FORGET_H: u64 = 24;
/// What was found of ids that came by none is forgotten, days.
const FORGET_UNSEEN_D: u64 = 30;

/// Notes a program's figures, and reads the others'.
#[derive(Debug)]
pub(crate) struct NoteNative<F> {
    pub(crate) program: String,
    pub(crate) figures: F,
}

impl<F: FnOnce() -> Vec<(RuleName, NativeInserts)> + Send> Transaction<PeerReports>
    for NoteNative<F>
{
    /// The figures are taken after the moment that is noted with them: whoever knows a moment before it knows that they have all.
    async fn run(self, link: &mut Link) -> Result<PeerReports, StoreError> {
        const NOW: &str = "SELECT CAST(now AS CHAR) AS now, \
            CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', now) DIV 1000 AS UNSIGNED) AS at_ms \
            FROM (SELECT UTC_TIMESTAMP(3) AS now) AS moment";
        const WRITE: &str = "INSERT INTO keywright_native (program, table_pattern, column_name, ids, unknown, noted_at) \
            VALUES (?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE ids = ?, unknown = ?, noted_at = ?";
        const READ: &str = "SELECT program, table_pattern, column_name, ids, unknown, \
            CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', noted_at) DIV 1000 AS UNSIGNED) AS at_ms \
            FROM keywright_native WHERE program <> ?";
        let conn = &mut link.conn;
        let now: Option<Row> = conn.query_first(NOW).await?;
        let now = now.ok_or_else(|| StoreError::Column {
            column: "now".to_owned(),
            value: "nothing".to_owned(),
        })?;
        let (at, at_ms): (String, u64) = (column(&now, "now")?, column(&now, "at_ms")?);
        for (rule, NativeInserts { ids, unknown }) in (self.figures)() {
            let key = (&self.program, &rule.tables, &rule.column);
            let values = (key.0, key.1, key.2, ids, unknown, &at, ids, unknown, &at);
            conn.exec_drop(WRITE, values).await?;
        }
        let rows: Vec<Row> = conn.exec(READ, (&self.program,)).await?;
        let mut reports = Vec::with_capacity(rows.len());
        for row in &rows {
            reports.push(PeerReport {
                program: column(row, "program")?,
                rule: RuleName {
                    tables: column(row, "table_pattern")?,
                    column: column(row, "column_name")?,
                },
                native_inserts: NativeInserts {
                    ids: column(row, "ids")?,
                    unknown: column(row, "unknown")?,
                },
                at_ms: column(row, "at_ms")?,
            });
        }
        let oldest_ms = at_ms.saturating_sub(FORGET_H.saturating_mul(3_600_000));
        if reports.iter().any(|report| report.at_ms < oldest_ms) {
            let forget = format!(
                "DELETE FROM keywright_native WHERE noted_at < UTC_TIMESTAMP(3) - INTERVAL {FORGET_H} HOUR"
            );
            conn.query_drop(forget).await?;
            reports.retain(|report| report.at_ms >= oldest_ms);
        }
        Ok(PeerReports { at_ms, reports })
    }
}

/// Notes what a program found of ids that came by none.
#[derive(Debug)]
pub(crate) struct NoteUnseen {
    pub(crate) program: String,
    pub(crate) unseen: Unseen,
}

impl Transaction<()> for NoteUnseen {
    async fn run(self, link: &mut Link) -> Result<(), StoreError> {
        const WRITE: &str = "INSERT INTO keywright_unseen (program, table_pattern, column_name, ids, report, noted_at) \
            VALUES (?, ?, ?, ?, ?, UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE ids = ?, report = ?, noted_at = UTC_TIMESTAMP(3)";
        let Unseen { rule, ids, report } = self.unseen;
        let key = (self.program, rule.tables, rule.column);
        let values = (key.0, key.1, key.2, ids, &report, ids, &report);
        link.conn.exec_drop(WRITE, values).await?;
        let forget = format!(
            "DELETE FROM keywright_unseen WHERE noted_at < UTC_TIMESTAMP(3) - INTERVAL {FORGET_UNSEEN_D} DAY"
        );
        Ok(link.conn.query_drop(forget).await?)
    }
}

/// Reads it, of each rule what the program has found that found the most.
#[derive(Debug)]
pub(crate) struct ReadUnseen;

impl Transaction<Vec<Unseen>> for ReadUnseen {
    async fn run(self, link: &mut Link) -> Result<Vec<Unseen>, StoreError> {
        const READ: &str = "SELECT table_pattern, column_name, ids, report FROM keywright_unseen \
            ORDER BY table_pattern, column_name, ids DESC, noted_at DESC";
        let rows: Vec<Row> = link.conn.query(READ).await?;
        let mut found: Vec<Unseen> = Vec::new();
        for row in &rows {
            let rule = RuleName {
                tables: column(row, "table_pattern")?,
                column: column(row, "column_name")?,
            };
            if found.last().is_none_or(|last| last.rule != rule) {
                found.push(Unseen {
                    rule,
                    ids: column(row, "ids")?,
                    report: column(row, "report")?,
                });
            }
        }
        Ok(found)
    }
}
