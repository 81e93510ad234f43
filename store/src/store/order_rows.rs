//! The leases of those who issue ids of ordered tags, and who they are.

use keywright_core::slot::{SlotGroup, SlotGroups};
use keywright_core::{Cause, Tag};

use super::tag_request::OrderRight;
use super::{Link, Row, StoreError, Transaction, column, values};
use crate::failure::Failure;
use crate::order::{Holder, LeaseRow, Renewal};

/// Programs that were not seen for so long are forgotten, hours.
const FORGET_H: u64 = 1;

/// The number of the row that is no lease: its epoch is the number of slot groups, where that was ever said. Others are those of groups.
pub(super) const DIVISION: u64 = 0;

/// The leases there are, and into how many groups slots are divided, as of one moment.
const SELECT: &str =
    "SELECT id, owner, address, epoch, renewal, ttl_ms FROM keywright_order_lease ORDER BY id";

/// It changes the row each time: what changes nothing a server need not write.
const RENEW: &str = "UPDATE keywright_order_lease SET renewal = renewal + 1 WHERE id = ? AND owner = ? AND epoch = ?";

/// Reads all leases. Where a group of this program's has none, one is made that nobody has: whoever wants it waits as if somebody had, since a
/// store without may have been restored from a backup.
#[derive(Debug)]
pub(crate) struct ReadLeases {
    /// Into how many groups this program divides slots. Where the store says otherwise, nothing is made.
    pub(crate) groups: SlotGroups,
    /// How long a lease is looked at that is made, milliseconds.
    pub(crate) ttl_ms: u64,
}

/// What was read.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    /// Into how many groups the store divides slots.
    pub(crate) groups: u64,
    /// Whether that was ever said.
    pub(crate) is_recorded: bool,
    /// In the order of the groups.
    pub(crate) rows: Vec<GroupLease>,
}

/// The lease of a slot group.
#[derive(Debug, Clone)]
pub(crate) struct GroupLease {
    /// The number of the group.
    pub(crate) number: u64,
    /// Where the program was reached that had it last, while nobody or another one has it.
    pub(crate) address: String,
    pub(crate) row: LeaseRow,
}

impl Leases {
    /// The lease of a group.
    pub(crate) fn of(&self, group: SlotGroup) -> Option<&GroupLease> {
        let number = u64::from(group.number());
        self.rows.iter().find(|its| its.number == number)
    }
}

impl Transaction<Leases> for ReadLeases {
    async fn run(&self, link: &mut Link) -> Result<Leases, StoreError> {
        let leases = LookAtLeases.run(link).await?;
        let is_own = leases.groups == u64::from(self.groups.count());
        let mut groups = self.groups.all();
        if !is_own || groups.all(|group| leases.of(group).is_some()) {
            return Ok(leases);
        }
        make_leases(link, self.groups, self.ttl_ms).await?;
        LookAtLeases.run(link).await
    }
}

/// The same, and makes none.
#[derive(Debug)]
pub(crate) struct LookAtLeases;

impl Transaction<Leases> for LookAtLeases {
    async fn run(&self, link: &mut Link) -> Result<Leases, StoreError> {
        link.begin_to_read().await?;
        let found = link.rows(SELECT, Vec::new()).await?;
        link.rollback().await?;
        read_rows(&found, &link.server.identity)
    }
}

/// Makes the leases of groups that have none.
pub(super) async fn make_leases(
    link: &mut Link,
    groups: SlotGroups,
    ttl_ms: u64,
) -> Result<(), StoreError> {
    link.begin().await?;
    for group in groups.all() {
        let insert = link.words().insert_new(
            "keywright_order_lease (id, owner, holder, address, epoch, renewal, ttl_ms) VALUES (?, '', '', '', 0, 0, ?)",
        );
        let values = values![u64::from(group.number()), ttl_ms];
        link.change(insert, values).await?;
    }
    link.commit().await
}

fn read_rows(found: &[Row], server: &str) -> Result<Leases, StoreError> {
    let mut leases = Leases {
        // A store of which nobody has said it has one lease.
        groups: 1,
        is_recorded: false,
        rows: Vec::with_capacity(found.len()),
    };
    for row in found {
        let number: u64 = column(row, "id")?;
        if number == DIVISION {
            leases.groups = column(row, "epoch")?;
            leases.is_recorded = true;
            continue;
        }
        let address: Option<String> = column(row, "address")?;
        leases.rows.push(GroupLease {
            number,
            address: address.unwrap_or_default(),
            row: read_row(row, server)?,
        });
    }
    Ok(leases)
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
                      WHERE id = ? AND epoch = ? AND renewal = ?";
        let values = values![
            self.right.owner,
            self.holder,
            self.address,
            self.right.epoch,
            self.ttl_ms,
            self.right.id(),
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
        let values = values![self.right.id(), self.right.owner, self.right.epoch];
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
        let values = values![self.right.id(), self.right.owner, self.right.epoch];
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
        let update = "UPDATE keywright_order_lease SET owner = NULL, renewal = renewal + 1 WHERE id = ? AND owner = ? AND epoch = ?";
        let values = values![self.right.id(), self.right.owner, self.right.epoch];
        Ok(link.change(update, values).await? == 1)
    }
}

/// Whether a program is the active one of a tag's group at this moment. Without a lock, which would keep others from taking over while a program is
/// stopped: what it reserves after all it may not issue any more.
pub(super) async fn is_active(
    right: &OrderRight<'_>,
    tag: &Tag,
    link: &mut Link,
) -> Result<bool, StoreError> {
    let groups = right.group.groups();
    if groups.of(tag.as_str().as_bytes()) != right.group {
        return Ok(false);
    }
    let select = "SELECT id, owner, epoch FROM keywright_order_lease WHERE id IN (?, ?)";
    let rows = link.rows(select, values![DIVISION, right.id()]).await?;
    // Where nobody has said how many groups there are, there is one.
    let mut are_so_many = groups == SlotGroups::ONE;
    let mut is_his = false;
    for row in &rows {
        let epoch: u64 = column(row, "epoch")?;
        if column::<u64>(row, "id")? == DIVISION {
            are_so_many = epoch == u64::from(groups.count());
        } else {
            let owner: Option<String> = column(row, "owner")?;
            is_his = owner.as_deref() == Some(right.owner) && epoch == right.epoch;
        }
    }
    Ok(are_so_many && is_his)
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
