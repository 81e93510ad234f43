//! What a transaction has changed, written by one transaction of etcd.

use etcd_client::{Compare, CompareOp, KvClient, Txn, TxnOp};
use tracing::warn;

use super::copy::Change;
use super::error::EtcdError;
use super::position::{Position, RECORD_KEY, Record, Seen};

/// Operations side by side at most. More are nested, as many in each.
const OPERATIONS_MAX: usize = 40;
/// How deep they are nested at most, levels. etcd adds up what is side by side on the way to the deepest, and allows 128 (`--max-txn-ops`).
const LEVELS_MAX: usize = 3;

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

/// Two rows for each table of a switch come to thousands. How many bytes they may have is the cluster's to say (`--max-request-bytes`).
fn nested(operations: Vec<TxnOp>) -> Result<Vec<TxnOp>, EtcdError> {
    let count = operations.len();
    let groups = grouped(operations, |group| TxnOp::txn(Txn::new().and_then(group)));
    groups.ok_or(EtcdError::TooMany(count))
}

/// At most as many as may be side by side, each a group of such groups where there are more; `None`: they are too many for that.
fn grouped<T>(all: Vec<T>, group_of: impl Fn(&[T]) -> T) -> Option<Vec<T>> {
    let mut side_by_side = all;
    for _ in 1..LEVELS_MAX {
        if side_by_side.len() <= OPERATIONS_MAX {
            break;
        }
        side_by_side = side_by_side.chunks(OPERATIONS_MAX).map(&group_of).collect();
    }
    (side_by_side.len() <= OPERATIONS_MAX).then_some(side_by_side)
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

#[cfg(test)]
mod tests {
    use super::grouped;

    /// As etcd's configuration has it, if nobody changes that (`--max-txn-ops`).
    const ETCD_OPERATIONS_MAX: usize = 128;

    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Operation {
        One(usize),
        Group(Vec<Operation>),
    }

    /// As etcd counts them: those side by side, and below them where there are most.
    fn counted(operations: &[Operation]) -> usize {
        let below = operations.iter().map(|operation| match operation {
            Operation::One(_) => 0,
            Operation::Group(group) => counted(group),
        });
        operations.len() + below.max().unwrap_or(0)
    }

    fn in_order(operations: &[Operation]) -> Vec<usize> {
        let each = operations.iter().flat_map(|operation| match operation {
            Operation::One(number) => vec![*number],
            Operation::Group(group) => in_order(group),
        });
        each.collect()
    }

    /// Tables whose rules have left a tag would be held for ever.
    #[test]
    fn many_operations_are_as_few_as_etcd_allows() {
        for (count, levels) in [
            (0, Some(1)),
            (1, Some(1)),
            (40, Some(1)),
            (41, Some(2)),
            (1_600, Some(2)),
            (1_601, Some(3)),
            (3_601, Some(3)),
            (64_000, Some(3)),
            (64_001, None),
        ] {
            let all: Vec<Operation> = (0..count).map(Operation::One).collect();
            let groups = grouped(all, |group| Operation::Group(group.to_vec()));
            assert_eq!(groups.is_some(), levels.is_some(), "{count}");
            let (Some(groups), Some(levels)) = (groups, levels) else {
                continue;
            };
            assert!(counted(&groups) <= ETCD_OPERATIONS_MAX, "{count}");
            assert_eq!(in_order(&groups), (0..count).collect::<Vec<usize>>());
            let mut first = groups.first();
            let mut found = 1;
            while let Some(Operation::Group(group)) = first {
                first = group.first();
                found += 1;
            }
            assert_eq!(found, levels, "{count}");
        }
    }
}
