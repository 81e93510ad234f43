//! Who a cluster is, and how far it has come: what tells a restored one from the one that was.

use std::sync::{Mutex, OnceLock, PoisonError};

use etcd_client::ResponseHeader;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::EtcdError;
use super::gone_back::{Counter, GoneBack};

/// Behind the prefix: the key that says who the store is.
pub(super) const RECORD_KEY: &str = "store";
/// How rows are written; another one is not read.
const FORMAT: u32 = 1;

/// Where a cluster was when it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) cluster_id: u64,
    /// Counts what was written.
    pub(super) revision: i64,
    /// Counts elections.
    pub(super) raft_term: u64,
}

impl Position {
    pub(super) fn of(header: Option<&ResponseHeader>) -> Result<Self, EtcdError> {
        let header = header
            .ok_or_else(|| EtcdError::Other("an answer does not say whose it is".to_owned()))?;
        Ok(Self {
            cluster_id: header.cluster_id(),
            revision: header.revision(),
            raft_term: header.raft_term(),
        })
    }
}

/// Who the store is, as it is written: with each transaction anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    format: u32,
    /// Drawn when the store was made, and when it was restored.
    store_id: String,
    /// 16 hexadecimal digits, as `etcdctl` shows it.
    cluster_id: String,
    /// What the transaction had read that wrote this.
    revision: i64,
    raft_term: u64,
    /// When that was, by the store's clock, unix milliseconds.
    pub(super) moment_ms: i64,
    /// A program that had seen more has found it so: nobody uses the store before somebody has said how much it may have lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone_back: Option<GoneBack>,
}

impl Record {
    pub(super) fn new(id: Uuid, position: &Position, moment_ms: i64) -> Self {
        Self {
            moment_ms,
            format: FORMAT,
            store_id: id.simple().to_string(),
            cluster_id: hex(position.cluster_id),
            revision: position.revision,
            raft_term: position.raft_term,
            gone_back: None,
        }
    }

    pub(super) fn written_at(&self, position: &Position, moment_ms: i64) -> Self {
        Self {
            moment_ms,
            revision: position.revision,
            raft_term: position.raft_term,
            ..self.clone()
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, EtcdError> {
        let damaged = |what: String| EtcdError::Damaged(format!("key {RECORD_KEY:?}: {what}"));
        let record: Self =
            serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        match record.format {
            FORMAT => Ok(record),
            other => Err(damaged(format!(
                "its rows are of format {other}, not {FORMAT}"
            ))),
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::json!(self).to_string()
    }

    /// Different for stores with data of their own.
    pub(super) fn identity(&self) -> String {
        format!("etcd={}/{}", self.cluster_id, self.store_id)
    }
}

fn hex(cluster_id: u64) -> String {
    format!("{cluster_id:016x}")
}

/// The highest position that this program has seen of the store; and why it asks nothing of it any more.
#[derive(Debug, Default)]
pub(super) struct Seen {
    highest: Mutex<Highest>,
    suspended: OnceLock<EtcdError>,
}

/// The same, at a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Highest(Option<(String, Position)>);

impl Seen {
    pub(super) fn highest(&self) -> Highest {
        self.highest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// A store that has gone back once may come as far again as it was, with other ids: that is not waited for.
    pub(super) fn check(
        &self,
        before: &Highest,
        record: &Record,
        position: &Position,
    ) -> Result<(), EtcdError> {
        if let Some(error) = self.suspended.get() {
            return Err(error.clone());
        }
        before.check(record, position).inspect_err(|error| {
            let _ = self.suspended.set(error.clone());
        })
    }

    /// Whether nothing is asked of the store any more, because it has gone back.
    pub(super) fn has_gone_back(&self) -> bool {
        self.gone_back().is_some()
    }

    fn gone_back(&self) -> Option<&GoneBack> {
        match self.suspended.get() {
            Some(EtcdError::GoneBack(gone_back)) => Some(gone_back),
            Some(_) | None => None,
        }
    }

    /// What the record of the same store has to say to everybody; nothing: it says so already, or is another one's.
    pub(super) fn to_tell(&self, record: &Record) -> Option<Record> {
        let gone_back = self.gone_back()?;
        let Highest(Some((store_id, _))) = self.highest() else {
            return None;
        };
        let is_untold = record.store_id == store_id && record.gone_back.is_none();
        is_untold.then(|| Record {
            gone_back: Some(*gone_back),
            ..record.clone()
        })
    }

    pub(super) fn note(&self, record: &Record, position: &Position) {
        let mut seen = self.highest.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut seen.0 {
            Some((store_id, highest)) if *store_id == record.store_id => {
                highest.revision = highest.revision.max(position.revision);
                highest.raft_term = highest.raft_term.max(position.raft_term);
            }
            Some(_) | None => seen.0 = Some((record.store_id.clone(), *position)),
        }
    }
}

impl Highest {
    /// Whether an answer to a question that was asked later can be the same store's.
    fn check(&self, record: &Record, position: &Position) -> Result<(), EtcdError> {
        let cluster_id = hex(position.cluster_id);
        if cluster_id != record.cluster_id {
            return Err(EtcdError::AnotherCluster {
                was: record.cluster_id.clone(),
                is: cluster_id,
            });
        }
        if let Some(gone_back) = record.gone_back {
            return Err(EtcdError::GoneBack(gone_back));
        }
        let mut revision_min = record.revision;
        let mut raft_term_min = record.raft_term;
        // Another store, made anew or restored by somebody's word, begins where it is; its tags say whose ranges are worth something there.
        if let Some((store_id, seen)) = &self.0
            && *store_id == record.store_id
        {
            revision_min = revision_min.max(seen.revision);
            raft_term_min = raft_term_min.max(seen.raft_term);
        }
        for (what, is, was) in [
            (
                Counter::Revision,
                position.revision.cast_unsigned(),
                revision_min.cast_unsigned(),
            ),
            (Counter::RaftTerm, position.raft_term, raft_term_min),
        ] {
            if is < was {
                return Err(EtcdError::GoneBack(GoneBack { what, was, is }));
            }
        }
        Ok(())
    }
}
