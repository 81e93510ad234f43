//! What went by each program on tables of rules that observe, so that none takes the others' ids for a stranger's, and what came by none.

use super::{Link, StoreError, Transaction, Value, column, values};
use crate::switch::state::{NativeInserts, PeerReport, PeerReports, RuleName, Unseen};

/// Programs that noted nothing for so long are forgotten, hours.
const FORGET_H: u64 = 24;
/// What was found of ids that came by none is forgotten, hours.
const FORGET_UNSEEN_H: u64 = 30 * 24;

/// Notes a program's figures, and reads the others'.
#[derive(Debug)]
pub(crate) struct NoteNative<F> {
    pub(crate) program: String,
    pub(crate) figures: F,
}

impl<F: Fn() -> Vec<(RuleName, NativeInserts)> + Send + Sync> Transaction<PeerReports>
    for NoteNative<F>
{
    /// The figures are taken after the moment that is noted with them: whoever knows a moment before it knows that they have all.
    async fn run(&self, link: &mut Link) -> Result<PeerReports, StoreError> {
        let words = link.words();
        let now = format!(
            "SELECT {} AS now, {} AS at_ms FROM (SELECT {} AS now) AS moment",
            words.moment("now"),
            words.unix_ms("now"),
            words.now()
        );
        let write = format!(
            "INSERT INTO keywright_native (program, table_pattern, column_name, ids, unknown, noted_at) \
             VALUES (?, ?, ?, ?, ?, ?) {} ids = ?, unknown = ?, noted_at = ?",
            words.or_update("program, table_pattern, column_name")
        );
        let read = format!(
            "SELECT program, table_pattern, column_name, ids, unknown, {} AS at_ms \
             FROM keywright_native WHERE program <> ?",
            words.unix_ms("noted_at")
        );
        let now = link.first(now, Vec::new()).await?;
        let now = now.ok_or_else(|| StoreError::Column {
            column: "now".to_owned(),
            value: "nothing".to_owned(),
        })?;
        let (at, at_ms): (Value, u64) = (column(&now, "now")?, column(&now, "at_ms")?);
        for (rule, NativeInserts { ids, unknown }) in (self.figures)() {
            let mut values = values![&self.program, &rule.tables, &rule.column];
            values.extend(values![ids, unknown, at.clone(), ids, unknown, at.clone()]);
            link.change(&write, values).await?;
        }
        let rows = link.rows(read, values![&self.program]).await?;
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
                "DELETE FROM keywright_native WHERE noted_at < {}",
                words.hours_ago(FORGET_H)
            );
            link.change(forget, Vec::new()).await?;
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
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let words = link.words();
        let (now, or_update) = (
            words.now(),
            words.or_update("program, table_pattern, column_name"),
        );
        let write = format!(
            "INSERT INTO keywright_unseen (program, table_pattern, column_name, ids, report, noted_at) \
             VALUES (?, ?, ?, ?, ?, {now}) {or_update} ids = ?, report = ?, noted_at = {now}"
        );
        let Unseen { rule, ids, report } = &self.unseen;
        let mut values = values![&self.program, &rule.tables, &rule.column];
        values.extend(values![*ids, report, *ids, report]);
        link.change(write, values).await?;
        let forget = format!(
            "DELETE FROM keywright_unseen WHERE noted_at < {}",
            words.hours_ago(FORGET_UNSEEN_H)
        );
        link.change(forget, Vec::new()).await?;
        Ok(())
    }
}

/// Reads it, of each rule what the program has found that found the most.
#[derive(Debug)]
pub(crate) struct ReadUnseen;

impl Transaction<Vec<Unseen>> for ReadUnseen {
    async fn run(&self, link: &mut Link) -> Result<Vec<Unseen>, StoreError> {
        const READ: &str = "SELECT table_pattern, column_name, ids, report FROM keywright_unseen \
            ORDER BY table_pattern, column_name, ids DESC, noted_at DESC";
        let rows = link.rows(READ, Vec::new()).await?;
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
