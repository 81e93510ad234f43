//! The lease of those who issue ids of ordered tags, and who they are.

use keywright_core::Cause;

use super::tag_request::OrderRight;
use super::{Link, Row, StoreError, Transaction, column, values};
use crate::failure::Failure;
use crate::order::{Holder, LeaseRow, Renewal};

/// Programs that were not seen for so long are forgotten, hours.
const FORGET_H: u64 = 1;

const SELECT: &str =
    "SELECT owner, address, epoch, renewal, ttl_ms FROM keywright_order_lease WHERE id = 1";

/// It changes the row each time: what changes nothing a server need not write.
const RENEW: &str = "UPDATE keywright_order_lease SET renewal = renewal + 1 WHERE id = 1 AND owner = ? AND epoch = ?";

/// Reads the lease. Where there is none, one is made that nobody has: whoever wants it waits as if somebody had, since a store without may have
/// been restored from a backup.
#[derive(Debug)]
pub(crate) struct ReadLease {
    /// How long it is looked at in that case, milliseconds.
    pub(crate) ttl_ms: u64,
}

impl Transaction<LeaseRow> for ReadLease {
    async fn run(&self, link: &mut Link) -> Result<LeaseRow, StoreError> {
        link.begin_to_read().await?;
        let found = link.first(SELECT, Vec::new()).await?;
        link.rollback().await?;
        let row = match found {
            Some(row) => row,
            None => {
                link.begin().await?;
                let insert = link.words().insert_new(
                    "keywright_order_lease (id, owner, holder, address, epoch, renewal, ttl_ms) VALUES (1, '', '', '', 0, 0, ?)",
                );
                link.change(insert, values![self.ttl_ms]).await?;
                link.commit().await?;
                let row = link.first(SELECT, Vec::new()).await?;
                row.ok_or(StoreError::NotLocked)?
            }
        };
        read_row(&row, &link.server.identity)
    }
}

fn read_row(row: &Row, server: &str) -> Result<LeaseRow, StoreError> {
    let owner: Option<String> = column(row, "owner")?;
    let address: Option<String> = column(row, "address")?;
    Ok(LeaseRow {
        renewal: Renewal {
            server: server.to_owned(),
            epoch: column(row, "epoch")?,
            number: column(row, "renewal")?,
        },
        holder: match owner {
            None => Holder::Nobody,
            Some(owner) => Holder::Program {
                owner,
                address: address.unwrap_or_default(),
                ttl_ms: column(row, "ttl_ms")?,
            },
        },
    })
}

/// Takes the lease, if the renewal still stands that was seen last, on the server that said so. Whether it did.
#[derive(Debug)]
pub(crate) struct TakeOver<'a> {
    pub(crate) right: OrderRight<'a>,
    pub(crate) seen: &'a Renewal,
    pub(crate) holder: &'a str,
    pub(crate) address: &'a str,
    pub(crate) ttl_ms: u64,
}

impl Transaction<bool> for TakeOver<'_> {
    async fn run(&self, link: &mut Link) -> Result<bool, StoreError> {
        link.begin().await?;
        if link.server.identity != self.seen.server {
            link.rollback().await?;
            return Ok(false);
        }
        let update = "UPDATE keywright_order_lease SET owner = ?, holder = ?, address = ?, epoch = ?, renewal = renewal + 1, ttl_ms = ? \
                      WHERE id = 1 AND epoch = ? AND renewal = ?";
        let values = values![
            self.right.owner,
            self.holder,
            self.address,
            self.right.epoch,
            self.ttl_ms,
            self.seen.epoch,
            self.seen.number,
        ];
        let changed = link.change(update, values).await?;
        link.end(changed == 1).await?;
        Ok(changed == 1)
    }
}

/// Renews the lease, if it still is this program's. Whether it is. One statement, so that a program that is stopped meanwhile holds no lock.
#[derive(Debug)]
pub(crate) struct Renew<'a> {
    pub(crate) right: OrderRight<'a>,
}

impl Transaction<bool> for Renew<'_> {
    async fn run(&self, link: &mut Link) -> Result<bool, StoreError> {
        let values = values![self.right.owner, self.right.epoch];
        Ok(link.change(RENEW, values).await? == 1)
    }
}

/// What became of a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// It stands.
    Stands,
    /// Another program has the lease, or another server says so: it does not, for certain.
    Lost,
    /// Whether it stands does not matter: the store may lose what it has acknowledged.
    MayLose(String),
}

/// Confirms that the lease still is this program's, on the server that granted it: durable before it is answered, and renewed by that.
#[derive(Debug)]
pub(crate) struct Confirm<'a> {
    pub(crate) right: OrderRight<'a>,
    pub(crate) server: &'a str,
}

impl Transaction<Confirmed> for Confirm<'_> {
    async fn run(&self, link: &mut Link) -> Result<Confirmed, StoreError> {
        if let Some(why) = link.may_lose().await? {
            return Ok(Confirmed::MayLose(why));
        }
        let values = values![self.right.owner, self.right.epoch];
        match link.change_on(self.server, RENEW, values).await? {
            Some(1) => {}
            Some(_) | None => return Ok(Confirmed::Lost),
        }
        // A server that waits for no replica any more says so only behind a commit.
        Ok(match link.may_lose().await? {
            Some(why) => Confirmed::MayLose(why),
            None => Confirmed::Stands,
        })
    }
}

/// Whether the store may lose what it has acknowledged, and why.
#[derive(Debug)]
pub(crate) struct LookForLoss;

impl Transaction<Option<String>> for LookForLoss {
    async fn run(&self, link: &mut Link) -> Result<Option<String>, StoreError> {
        link.may_lose().await
    }
}

/// Why the store has no strict tags.
pub(crate) fn may_lose(why: &str) -> Failure {
    let failure = Failure::new(
        Cause::StoreMayLose,
        format!(
            "the store may lose what it has acknowledged, so no ids of strict tags are issued: {why}"
        ),
    );
    failure.hint(
        "have commits wait for a synchronous standby (PostgreSQL), a semi-synchronous replica or a group (MySQL, MariaDB), or use etcd or a file",
    )
}

/// Gives the lease back, if it still is this program's.
#[derive(Debug)]
pub(crate) struct Release<'a> {
    pub(crate) right: OrderRight<'a>,
}

impl Transaction<bool> for Release<'_> {
    async fn run(&self, link: &mut Link) -> Result<bool, StoreError> {
        let update = "UPDATE keywright_order_lease SET owner = NULL, renewal = renewal + 1 WHERE id = 1 AND owner = ? AND epoch = ?";
        let values = values![self.right.owner, self.right.epoch];
        Ok(link.change(update, values).await? == 1)
    }
}

/// Whether a program is the active one at this moment. Without a lock, which would keep others from taking over while a program is stopped: what
/// it reserves after all it may not issue any more.
pub(super) async fn is_active(right: &OrderRight<'_>, link: &mut Link) -> Result<bool, StoreError> {
    let Some(row) = link.first(SELECT, Vec::new()).await? else {
        return Ok(false);
    };
    let owner: Option<String> = column(&row, "owner")?;
    let epoch: u64 = column(&row, "epoch")?;
    Ok(owner.as_deref() == Some(right.owner) && epoch == right.epoch)
}

/// A program that may issue ids of ordered tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeRow {
    pub(crate) program: String,
    pub(crate) address: String,
}

/// Notes that a program is there, and reads which are.
#[derive(Debug)]
pub(crate) struct NoteNode<'a> {
    pub(crate) program: &'a str,
    pub(crate) holder: &'a str,
    pub(crate) address: &'a str,
    /// Who was not seen for longer is not there, milliseconds.
    pub(crate) silent_ms_max: u64,
}

impl Transaction<Vec<NodeRow>> for NoteNode<'_> {
    async fn run(&self, link: &mut Link) -> Result<Vec<NodeRow>, StoreError> {
        let words = link.words();
        let (now, or_update) = (words.now(), words.or_update("program"));
        let write = format!(
            "INSERT INTO keywright_order_node (program, holder, address, seen_at) VALUES (?, ?, ?, {now}) {or_update} seen_at = {now}"
        );
        link.change(write, values![self.program, self.holder, self.address])
            .await?;
        let read = format!(
            "SELECT program, address, {} AS silent_ms FROM keywright_order_node ORDER BY program",
            words.since_ms("seen_at")
        );
        let mut nodes = Vec::new();
        let mut is_old = false;
        for row in link.rows(read, Vec::new()).await? {
            let silent_ms: u64 = column(&row, "silent_ms")?;
            is_old |= silent_ms > FORGET_H.saturating_mul(3_600_000);
            if silent_ms <= self.silent_ms_max {
                nodes.push(NodeRow {
                    program: column(&row, "program")?,
                    address: column(&row, "address")?,
                });
            }
        }
        if is_old {
            let forget = format!(
                "DELETE FROM keywright_order_node WHERE seen_at < {}",
                words.hours_ago(FORGET_H)
            );
            link.change(forget, Vec::new()).await?;
        }
        Ok(nodes)
    }
}

/// A program ends.
#[derive(Debug)]
pub(crate) struct ForgetNode<'a> {
    pub(crate) program: &'a str,
}

impl Transaction<()> for ForgetNode<'_> {
    async fn run(&self, link: &mut Link) -> Result<(), StoreError> {
        let delete = "DELETE FROM keywright_order_node WHERE program = ?";
        link.change(delete, values![self.program]).await.map(drop)
    }
}
