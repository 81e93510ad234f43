//! Time that databases are handed whose snowflake ids are fed: one transaction that leases a worker id, or extends a lease.

use std::time::{SystemTime, UNIX_EPOCH};

use keywright_core::{Cause, Layout};

use super::fed_recorded::Recorded;
use super::lease_rows::{all_rows, lock_all};
use super::look_back::begin_looked_at;
use super::tag_denied::{OF_ANOTHER_STORE, settling};
use super::worker_id_rows::{self, differs};
use super::worker_row::NewOwner;
use super::{Link, Store, StoreError, Transaction, column, values};
use crate::failure::Failure;
use crate::lease::fed::{Ahead, FedIds, Handed, NoTime, SPACE, TimeAsker, TimeGrant, plan_time};
use crate::lease::{BEFORE_EPOCH_HINT, LeaseRow};
use crate::worker_ids::{IdRange, WorkerIds};

/// Time for a database.
#[derive(Debug)]
pub(crate) struct GrantTime<'a> {
    pub(crate) store: &'a Store,
    pub(crate) asker: TimeAsker,
    /// The mark of the key space that it is of, if it knows.
    pub(crate) key_space: Option<u64>,
    /// The clock of its server, unix milliseconds.
    pub(crate) server_ms: i64,
    /// What it knows to have been handed before this life of its memory.
    pub(crate) known: Option<Handed>,
    /// For people: which database.
    pub(crate) holder: String,
    /// What the configuration says.
    pub(crate) ids: WorkerIds,
    pub(crate) layout: Layout,
    /// How far ahead of the store's clock.
    pub(crate) ahead_ms: i64,
    /// How far ahead of this server's clock that of another one may have been, milliseconds.
    pub(crate) skew_ms_max: u64,
}

/// Time that is durably a database's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrantedTime {
    pub(crate) grant: TimeGrant,
    /// The key space of the store's snowflake ids.
    pub(crate) key_space: String,
}

impl Transaction<Result<GrantedTime, Failure>> for GrantTime<'_> {
    /// Leases are locked first, as by those who take them.
    async fn run(&self, link: &mut Link) -> Result<Result<GrantedTime, Failure>, StoreError> {
        if !begin_looked_at(self.store, true, link).await? {
            return Ok(Err(settling()));
        }
        lock_all(link).await?;
        let lock = link.words().for_update();
        let ids = worker_id_rows::read(link, lock).await?;
        let recorded = Recorded::read(link).await?;
        let ids = ids.ok_or_else(worker_id_rows::not_recorded);
        let range = ids.and_then(|ids| {
            let layout = self.layout.to_string();
            match ids.ids.fed {
                Some(range) if ids.ids == self.ids && ids.layout == layout => Ok(range),
                Some(_) | None => Err(differs(&ids, &self.ids, &layout)),
            }
        });
        let (range, recorded) = match (range, recorded) {
            (Ok(range), Some(recorded)) => (range, recorded),
            (Err(failure), _) => return refused(link, failure).await,
            (Ok(_), None) => return refused(link, worker_id_rows::not_recorded()).await,
        };
        if self.key_space.is_some_and(|known| known != recorded.mark) {
            return refused(link, another_key_space()).await;
        }
        let clock_ms = self.clock_ms(link).await?;
        // Without a clock of the store's the earlier of two, so that one that is wrong does not use up all worker ids. What may have been handed
        // over went by a program's alone.
        let now_ms = match link.has_clock() {
            true => clock_ms,
            false => clock_ms.min(self.server_ms),
        };
        let recorded = self.note(link, recorded, clock_ms).await?;
        let rows = all_rows(link, SPACE).await?;
        let planned = match self.asker.layout == self.layout {
            true => self.plan(&rows, range, &recorded, (now_ms, &link.server.identity)),
            false => Err(NoTime::OtherLayout {
                store: self.layout.to_string(),
                database: self.asker.layout.to_string(),
            }),
        };
        let grant = match planned {
            Ok(grant) => grant,
            Err(no_time) => {
                // What was noted stays.
                link.commit().await?;
                return Ok(Err(failure(&no_time)));
            }
        };
        self.write(link, &grant, now_ms).await?;
        link.commit().await?;
        let handed = Handed {
            worker_id: grant.worker_id,
            until_ms: grant.until_ms,
        };
        self.store.note_handed(recorded.mark, handed);
        Ok(Ok(GrantedTime {
            grant,
            key_space: recorded.key_space,
        }))
    }
}

async fn refused(
    link: &mut Link,
    failure: Failure,
) -> Result<Result<GrantedTime, Failure>, StoreError> {
    link.rollback().await?;
    Ok(Err(failure))
}

impl GrantTime<'_> {
    /// The store's clock; the program's where it has none.
    async fn clock_ms(&self, link: &mut Link) -> Result<i64, StoreError> {
        if !link.has_clock() {
            let own = SystemTime::now().duration_since(UNIX_EPOCH);
            let own_ms = own.map_or(0, |since| since.as_millis());
            return Ok(i64::try_from(own_ms).unwrap_or(i64::MAX));
        }
        let select = format!("SELECT {} AS now_ms", link.words().now_ms());
        let row = link.first(select, Vec::new()).await?;
        row.as_ref().map_or(Ok(0), |row| column(row, "now_ms"))
    }

    /// Keeps how far ahead anything was ever handed over, and since when this server knows it all. What it wrote before another did is believed
    /// no more: of what came after it may know as little as any. The other's clock may have been ahead of this one's.
    async fn note(
        &self,
        link: &mut Link,
        recorded: Recorded,
        now_ms: i64,
    ) -> Result<Recorded, StoreError> {
        let identity = link.server.identity.clone();
        let is_another = recorded.unknown_server != identity;
        let noted = Recorded {
            unknown_ms: match (is_another, recorded.unknown_server.is_empty()) {
                (true, false) => {
                    let latest_ms = now_ms.saturating_add_unsigned(self.skew_ms_max);
                    latest_ms.max(recorded.unknown_ms)
                }
                (true, true) => now_ms.max(recorded.unknown_ms),
                (false, _) => recorded.unknown_ms,
            },
            unknown_server: identity,
            ahead_ms: recorded.ahead_ms.max(self.ahead_ms),
            ..recorded
        };
        if is_another || noted.ahead_ms != recorded.ahead_ms {
            let update = "UPDATE keywright_worker_ids SET unknown_ms = ?, unknown_server = ?, ahead_ms = ? WHERE id = 1";
            let values = values![
                noted.unknown_ms,
                noted.unknown_server.as_str(),
                noted.ahead_ms
            ];
            link.change_one(update, values).await?;
        }
        if is_another {
            let update = "UPDATE keywright_worker SET server = '' WHERE space = ?";
            link.change(update, values![SPACE]).await?;
        }
        Ok(noted)
    }

    fn plan(
        &self,
        rows: &[LeaseRow],
        range: IdRange,
        recorded: &Recorded,
        (now_ms, server): (i64, &str),
    ) -> Result<TimeGrant, NoTime> {
        let handed = self.store.handed();
        let (seen, elsewhere): (Vec<_>, Vec<_>) = handed
            .into_iter()
            .partition(|(mark, _)| recorded.is_of(*mark));
        let bare = |all: Vec<(u64, Handed)>| all.into_iter().map(|(_, handed)| handed);
        let elsewhere: Vec<Handed> = bare(elsewhere).collect();
        let seen: Vec<Handed> = bare(seen).chain(self.known).collect();
        let ids = FedIds {
            rows,
            range,
            unknown_until_ms: recorded.unknown_until_ms(),
            elsewhere: &elsewhere,
            server,
        };
        let ahead = Ahead {
            now_ms,
            ahead_ms: self.ahead_ms,
        };
        plan_time(&ids, &self.asker, &seen, &ahead)
    }

    async fn write(
        &self,
        link: &mut Link,
        grant: &TimeGrant,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        if let Some(left) = grant.leaves {
            let update = "UPDATE keywright_worker SET owner = NULL WHERE space = ? AND worker_id = ? AND owner = ?";
            let values = values![SPACE, left, self.asker.owner.as_str()];
            link.change(update, values).await?;
        }
        let lease_ms = grant.until_ms.saturating_sub(now_ms);
        let server = link.server.identity.clone();
        let owner = NewOwner {
            owner: &self.asker.owner,
            holder: &self.holder,
            epoch: grant.epoch,
            bound_ms: grant.until_ms,
            layout: self.layout.to_string(),
            server: &server,
            lease_ms: u64::try_from(lease_ms).unwrap_or(0),
        };
        owner
            .write(link, (SPACE, grant.worker_id), grant.found)
            .await
    }
}

fn another_key_space() -> Failure {
    Failure::new(
        Cause::HandOverRefused,
        "the database was handed time for snowflake ids out of another store, or out of this one before it was made anew",
    )
    .hint(OF_ANOTHER_STORE)
}

fn failure(no_time: &NoTime) -> Failure {
    let cause = match no_time {
        NoTime::GoneBack { .. } => Cause::BoundDamaged,
        NoTime::NoneFree { .. } => Cause::WorkersFull,
        NoTime::FarEnough { .. } => Cause::LeadExceeded,
        NoTime::BeforeEpoch(_) => Cause::ClockBehind,
        NoTime::OtherLayout { .. } => Cause::LayoutOverlap,
    };
    let failure = Failure::new(cause, no_time.to_string());
    match no_time {
        NoTime::GoneBack { .. } => failure.hint(
            "is it an old backup? keywright store restored says so to the store; then time is handed over when all that may be lost is past",
        ),
        NoTime::NoneFree {
            is_unknown: true, ..
        } => failure.hint(
            "wait: the store was made, restored or promoted a short while ago, and may not know what was handed over before; nothing else is to be done",
        ),
        NoTime::NoneFree {
            is_unknown: false, ..
        } => failure.hint(
            "wait, or have more numbers in fed_worker_ids; each start of a server takes another one until what was handed over is past",
        ),
        NoTime::FarEnough { .. } => {
            failure.hint("is the clock of the database's server ahead of the store's?")
        }
        NoTime::BeforeEpoch(_) => failure.hint(BEFORE_EPOCH_HINT),
        NoTime::OtherLayout { .. } => failure.hint(
            "SELECT keywright.set_layout(…) in the database, before it is fed, or layout in [snowflake]",
        ),
    }
}
