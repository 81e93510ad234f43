//! What connections draw on: keys, counters, memory.

use std::sync::Arc;

use keywright_core::{Cause, KeyBatch};
use keywright_session::{KeyFailure, KeyRequest, SessionFacts};
use keywright_store::Source as KeySource;

use crate::connection::buffers::Buffers;
use crate::connection::memory::Memory;
use crate::in_force::updates::SnapshotReceiver;
use crate::metrics::Tally;
use crate::schema::NewTables;
use crate::status::Status;
use crate::status::clients::Entered;

/// What a connection draws on.
#[derive(Clone, Default)]
pub struct ListenerContext {
    /// By the rule's index; nothing where it gives no keys.
    pub sources: Arc<[Option<KeySource>]>,
    /// By the rule's index: its name, if the keys that it gives are logged. Empty if no rule's are.
    pub logged: Arc<[Option<String>]>,
    /// What became of statements is counted here.
    pub tally: Arc<Tally>,
    /// What `SHOW KEYWRIGHT` shows of the proxy.
    pub status: Option<Arc<Status>>,
    /// What statements that are gathered take.
    pub memory: Arc<Memory>,
    /// A server that was silent for so long is asked whether it is there, seconds; 0: never.
    pub keepalive_s: u32,
    /// What is read goes there first.
    pub buffers: Arc<Buffers>,
    /// That the client is listed.
    pub entered: Option<Arc<Entered>>,
    /// Where newer rules come from, if any do.
    pub updates: Option<SnapshotReceiver>,
    /// Where statements on tables that are new wait.
    pub new_tables: Arc<NewTables>,
}

impl ListenerContext {
    /// Whether a client may see the proxy's status.
    pub(crate) fn allows_status(&self, facts: &SessionFacts) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| status.allows(&facts.user))
    }

    /// The name of a rule whose keys are logged.
    pub(crate) fn logged(&self, rule: usize) -> Option<&str> {
        self.logged.get(rule)?.as_deref()
    }

    /// The keys that are there.
    pub(crate) fn try_keys(&self, request: KeyRequest) -> Option<KeyBatch> {
        let source = self.sources.get(request.rule)?.as_ref()?;
        source.try_take(request.count, request.contiguous).ok()
    }

    /// Waits for keys.
    pub(crate) async fn keys(&self, request: KeyRequest) -> Result<KeyBatch, KeyFailure> {
        let Some(Some(source)) = self.sources.get(request.rule) else {
            return Err(KeyFailure {
                cause: Cause::TagUnknown,
                message: "the rule has no source of keys".to_owned(),
            });
        };
        source
            .take(request.count, request.contiguous)
            .await
            .map_err(|failure| KeyFailure {
                cause: failure.cause(),
                message: failure.message().to_owned(),
            })
    }
}
