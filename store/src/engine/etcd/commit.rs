//! What a transaction has changed, written by one transaction of etcd.

use etcd_client::{Compare, CompareOp, KvClient, Txn, TxnOp};
use tracing::warn;

use super::copy::Change;
use super::error::EtcdError;
use super::position::{Position, RECORD_KEY, Record, Seen};

/// Operations of one transaction at most, side by side; etcd allows 128 (`--max-txn-ops`). More are nested, as many in each.
const OPERATIONS_MAX: usize = 60;

/// What must not have changed meanwhile.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    pub(super) prefix: &'a str,
    /// The revision that wrote the record which was read. Every transaction writes it, also one that only removes rows.
    pub(super) record_revision: i64,
    /// Nothing below the prefix is younger, whoever wrote it.
    pub(super) revision: i64,
}

/// Where the cluster was then; `None`: nothing was written, because something has changed. On an error it is not known.
pub(super) async fn write(
    client: &mut KvClient,
    guard: &Guard<'_>,
    record: &Record,
    changes: &[Change],
) -> Result<Option<Position>, EtcdError> {
    let Guard { prefix, .. } = guard;
    let record_key = format!("{prefix}{RECORD_KEY}");
    let unchanged = [
        Compare::mod_revision(record_key.as_str(), CompareOp::Equal, guard.record_revision),
        Compare::mod_revision(*prefix, CompareOp::Less, guard.revision.saturating_add(1))
            .with_prefix(),
    ];
    let mut operations = vec![TxnOp::put(record_key, record.to_json(), None)];
    operations.extend(changes.iter().map(|change| match change {
        Change::Put { key, value } => TxnOp::put(format!("{prefix}{key}"), value.as_str(), None),
        Change::Remove { key } => TxnOp::delete(format!("{prefix}{key}"), None),
    }));
    let transaction = Txn::new().when(unchanged).and_then(nested(operations)?);
    let answer = client.txn(transaction).await?;
    match answer.succeeded() {
        true => Position::of(answer.header()).map(Some),
        false => Ok(None),
    }
}

/// etcd counts those side by side, and adds what is nested deepest.
fn nested(operations: Vec<TxnOp>) -> Result<Vec<TxnOp>, EtcdError> {
    if operations.len() <= OPERATIONS_MAX {
        return Ok(operations);
    }
    let groups: Vec<TxnOp> = operations
        .chunks(OPERATIONS_MAX)
        .map(|group| TxnOp::txn(Txn::new().and_then(group)))
        .collect();
    match groups.len() <= OPERATIONS_MAX {
        true => Ok(groups),
        false => Err(EtcdError::TooMany(operations.len())),
    }
}

/// Makes the store; false: somebody else has made one meanwhile.
pub(super) async fn create(
    client: &mut KvClient,
    prefix: &str,
    record: &Record,
) -> Result<bool, EtcdError> {
    // There is nothing below the prefix.
    let empty = Compare::version(prefix, CompareOp::Equal, 0).with_prefix();
    let put = TxnOp::put(format!("{prefix}{RECORD_KEY}"), record.to_json(), None);
    let answer = client.txn(Txn::new().when([empty]).and_then([put])).await?;
    Ok(answer.succeeded())
}

/// Has the store tell everybody that it has gone back, if this program has seen so: who starts later has seen nothing. What fails is tried with
/// the next look.
pub(super) async fn tell(client: &mut KvClient, prefix: &str, seen: &Seen) {
    match try_to_tell(client, prefix, seen).await {
        Ok(true) => {
            warn!(
                "the cluster has gone back, and the store says so from now on: no program uses it"
            );
        }
        Ok(false) => {}
        Err(error) => {
            warn!(%error, "other programs cannot be told that the cluster has gone back");
        }
    }
}

/// The record is read anew: a connection that was there before has that of the later state.
async fn try_to_tell(client: &mut KvClient, prefix: &str, seen: &Seen) -> Result<bool, EtcdError> {
    if !seen.has_gone_back() {
        return Ok(false);
    }
    let answer = client.get(format!("{prefix}{RECORD_KEY}"), None).await?;
    let revision = Position::of(answer.header())?.revision;
    let Some(found) = answer.kvs().first() else {
        return Ok(false);
    };
    let Some(told) = seen.to_tell(&Record::parse(found.value())?) else {
        return Ok(false);
    };
    let guard = Guard {
        prefix,
        record_revision: found.mod_revision(),
        revision,
    };
    let written = write(client, &guard, &told, &[]).await?;
    Ok(written.is_some())
}
