//! Rows at the end: also those whose INSERT got no answer have ids that nobody else has.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use crate::soak::ledger::Ledger;
use crate::{Login, Upstream, Wire};

/// How the ledger begins to tell of rows.
pub(super) const INSERT: &str = "INSERT INTO ";

/// Compares the rows of a table on all servers with each other and with what clients saw elsewhere; how many there are.
///
/// # Errors
/// An id is there twice, or somebody else got it.
pub(super) fn check(shards: &[Upstream], table: &str, ledger: &Ledger) -> Result<u64> {
    let mut all = BTreeSet::new();
    for shard in shards {
        let mut wire = Wire::connect_tcp(shard.port(), &Login::root("shop"))?;
        for row in wire.rows(format!("SELECT id FROM {table}"))? {
            let id: i64 = row.first().context("no column")?.parse()?;
            if !all.insert(id) {
                bail!("{table}: two rows have id {id}");
            }
            let draw = ledger.draw_of(table, id);
            if let Some(draw) = draw.filter(|draw| !draw.what.starts_with(INSERT)) {
                bail!("{table}: a row has id {id}, which others got: {draw}");
            }
        }
    }
    Ok(u64::try_from(all.len())?)
}
