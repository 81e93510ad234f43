//! Requests for keys: how they are taken.

use std::sync::Arc;
use std::time::Duration;

use keywright_core::{Cause, KeyBatch};
use keywright_store::Failure;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::in_force::snapshot::ConfigSnapshot;
use crate::port::keys::{Gives, NamedKeys, PortKeys};

/// A request for keys that may be had.
#[derive(Debug, Clone)]
pub(super) struct KeyRequest {
    named: Arc<NamedKeys>,
    count: u64,
    is_run: bool,
}

/// How many keys a client asks for: one at least, as a number.
///
/// # Errors
/// It is none.
pub(super) fn count(named: &NamedKeys, count: i64) -> Result<u64, Failure> {
    match u64::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        Ok(_) | Err(_) => {
            let message = format!(
                "\"{}\" gives 1 key or more, not {count}: keys are given once and in ascending order",
                named.name
            );
            Err(Failure::new(Cause::ArgumentOutOfRange, message))
        }
    }
}

/// A name that is not there.
pub(super) fn unknown(name: &[u8], keys: &PortKeys) -> Failure {
    let shown = name.get(..64).unwrap_or(name).escape_ascii();
    let failure = Failure::new(
        Cause::TagUnknown,
        format!("no keys are given under \"{shown}\" here"),
    );
    let listed_by = keys.listed_by();
    failure.hint(format!(
        "{listed_by} shows the names; keys of the [[listener]] says them"
    ))
}

impl KeyRequest {
    /// So many keys of a name. `is_run`: their numbers have equal distances.
    pub(super) fn new(named: &Arc<NamedKeys>, count: u64, is_run: bool) -> Self {
        Self {
            named: Arc::clone(named),
            count,
            is_run,
        }
    }

    /// The name whose keys are asked for.
    pub(super) fn named(&self) -> &NamedKeys {
        &self.named
    }

    /// How many are asked for.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The keys, if they are there.
    pub(super) fn try_take(&self) -> Option<KeyBatch> {
        match &self.named.gives {
            Gives::Keys(source) => source.try_take(self.count, self.is_run).ok(),
            Gives::Unknown | Gives::Held | Gives::Left => None,
        }
    }

    /// Waits for them: for the store, and for the end of a switch.
    pub(super) fn take(
        &self,
        mut snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
        port: usize,
    ) -> impl Future<Output = Result<KeyBatch, Failure>> + Send + use<> {
        let request = self.clone();
        async move {
            let began = Instant::now();
            loop {
                let Some(keys) = snapshot.borrow_and_update().port(port) else {
                    return Err(Failure::new(Cause::Draining, "the key port is gone"));
                };
                let Some(named) = keys.name(request.named.name.as_bytes()) else {
                    return Err(unknown(request.named.name.as_bytes(), &keys));
                };
                let (ms, failure) = match &named.gives {
                    Gives::Keys(source) => {
                        return source.take(request.count, request.is_run).await;
                    }
                    Gives::Unknown => (keys.wait_ms_max, not_known(named)),
                    Gives::Held => (keys.held_ms_max, held(named)),
                    Gives::Left => return Err(left(named)),
                };
                let end = began + Duration::from_millis(ms);
                match timeout_at(end, snapshot.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return Err(failure),
                }
            }
        }
    }
}

fn not_known(named: &NamedKeys) -> Failure {
    let failure = Failure::new(
        Cause::StoreUnavailable,
        format!(
            "the store has not answered since the program began, so no keys of \"{}\" are given",
            named.name
        ),
    );
    failure.hint("the log says why; keywright check looks at it")
}

fn held(named: &NamedKeys) -> Failure {
    Failure::new(
        Cause::RefillTimeout,
        format!(
            "tables go over to the keys of \"{}\", or leave them, and that took too long",
            named.name
        ),
    )
}

fn left(named: &NamedKeys) -> Failure {
    let failure = Failure::new(
        Cause::KeysLeft,
        format!(
            "tables have left {}, and their native ids go on where these keys ended",
            named.spec
        ),
    );
    failure.hint("give the name keys that no table has left")
}
