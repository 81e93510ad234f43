//! Requests for keys: how they are taken.

use std::sync::Arc;
use std::time::Duration;

use keywright_core::{Cause, KeyBatch};
use keywright_store::{Confirmation, Failure, Ordered, Source, Unconfirmed};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::in_force::snapshot::ConfigSnapshot;
use crate::port::keys::{Gives, NamedKeys, PortKeys};

/// A request for keys that may be had.
#[derive(Debug, Clone)]
pub(super) struct KeyRequest {
    named: Arc<NamedKeys>,
    count: u64,
    wants: Wants,
}

/// What is asked of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// Numbers at equal distances.
    Run,
    /// Keys.
    List,
    /// The last number that was given.
    Last,
}

/// What a request gets.
#[derive(Debug, Clone)]
pub(super) enum Issued {
    /// Keys.
    Keys(KeyBatch),
    /// The last number that was given; 0: none was.
    Last(u64),
    /// Keys of ordered tags are given by the program at this address.
    Elsewhere(String),
    /// They are by the one that has taken this one's place, and its address.
    BySuccessor,
}

/// What is there for a request.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// What it gets.
    pub(super) issued: Issued,
    /// What the reply waits for, where its tag is strict.
    pub(super) unconfirmed: Option<Unconfirmed>,
}

impl From<Issued> for Found {
    fn from(issued: Issued) -> Self {
        Self {
            issued,
            unconfirmed: None,
        }
    }
}

/// How many keys a client asks for: one at least, as a number.
///
/// # Errors
/// It is none.
pub(super) fn count(named: &NamedKeys, count: i64) -> Result<u64, Failure> {
    match u64::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        Ok(_) | Err(_) => {
            let message = format!("\"{}\" gives 1 key or more, not {count}", named.name);
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
    /// So many keys of a name.
    pub(super) fn new(named: &Arc<NamedKeys>, count: u64, wants: Wants) -> Self {
        Self {
            named: Arc::clone(named),
            count,
            wants,
        }
    }

    /// The name whose keys are asked for.
    pub(super) fn named(&self) -> &NamedKeys {
        &self.named
    }

    /// Whether they are keys of an ordered tag, or may be.
    pub(super) fn is_ordered(&self) -> bool {
        self.named.is_ordered()
    }

    /// How many are asked for.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The keys, if they are there.
    pub(super) fn try_take(&self) -> Option<KeyBatch> {
        match &self.named.gives {
            Gives::Keys(source) => source.try_take(self.count, self.wants == Wants::Run).ok(),
            Gives::Unknown | Gives::Held | Gives::Left => None,
        }
    }

    /// What it gets, if that is there, where keys of ordered tags are given, too. The request was read before.
    pub(super) fn try_issue(&self) -> Option<Found> {
        let Gives::Keys(source) = &self.named.gives else {
            return None;
        };
        if self.named.is_misplaced() {
            return None;
        }
        if self.wants == Wants::Last {
            return self.last(source.try_last_ordered());
        }
        match self.try_take() {
            Some(keys) => Some(Issued::Keys(keys).into()),
            None => found(source.try_ordered(self.count), Issued::Keys),
        }
    }

    fn last(&self, of_ordered: Ordered<u64>) -> Option<Found> {
        match of_ordered {
            Ordered::Distinct => {
                let last = self.named.figures.last();
                Some(Issued::Last(last.unwrap_or(0)).into())
            }
            of_ordered => found(of_ordered, Issued::Last),
        }
    }

    /// Waits until what was found of a strict tag may be told, or is given up. `since`: when the request was read.
    pub(super) async fn confirm(
        &self,
        unconfirmed: Unconfirmed,
        since: Instant,
    ) -> Result<Confirmation, Failure> {
        match &self.named.gives {
            Gives::Keys(source) => source.confirm(unconfirmed, since).await,
            Gives::Unknown | Gives::Held | Gives::Left => Ok(Confirmation::GivenUp),
        }
    }

    /// The same, and waits as [`KeyRequest::take`] does.
    pub(super) fn issue(
        &self,
        snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
        port: usize,
    ) -> impl Future<Output = Result<Issued, Failure>> + Send + use<> {
        let request = self.clone();
        async move {
            let source = request.source(snapshot, port).await?;
            request.check_place()?;
            if request.wants == Wants::Last {
                let last = request.last(source.last_ordered().await?);
                request.check_place()?;
                return confirmed(last);
            }
            let taken = source.take_ordered(request.count).await?;
            // That the tag is ordered may be known only now.
            request.check_place()?;
            match taken {
                Ordered::Distinct => {
                    let keys = source
                        .take(request.count, request.wants == Wants::Run)
                        .await;
                    keys.map(Issued::Keys)
                }
                of_ordered => confirmed(found(of_ordered, Issued::Keys)),
            }
        }
    }

    /// That clients who ask for the name come to the program that gives keys of its tag.
    fn check_place(&self) -> Result<(), Failure> {
        self.named.misplaced().map_or(Ok(()), Err)
    }

    /// Waits for them: for the store, and for the end of a switch.
    pub(super) fn take(
        &self,
        snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
        port: usize,
    ) -> impl Future<Output = Result<KeyBatch, Failure>> + Send + use<> {
        let request = self.clone();
        async move {
            let source = request.source(snapshot, port).await?;
            source
                .take(request.count, request.wants == Wants::Run)
                .await
        }
    }

    /// Waits until the name has a source.
    async fn source(
        &self,
        mut snapshot: watch::Receiver<Arc<ConfigSnapshot>>,
        port: usize,
    ) -> Result<Source, Failure> {
        let began = Instant::now();
        loop {
            let Some(keys) = snapshot.borrow_and_update().port(port) else {
                return Err(Failure::new(Cause::Draining, "the key port is gone"));
            };
            let Some(named) = keys.name(self.named.name.as_bytes()) else {
                return Err(unknown(self.named.name.as_bytes(), &keys));
            };
            let (ms, failure) = match &named.gives {
                Gives::Keys(source) => return Ok(source.clone()),
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

/// What was found of an ordered tag; nothing yet, or that it is not ordered.
fn found<T>(of_ordered: Ordered<T>, have: impl FnOnce(T) -> Issued) -> Option<Found> {
    match of_ordered {
        Ordered::Have(what) => Some(have(what).into()),
        Ordered::Unconfirmed(what, unconfirmed) => Some(Found {
            issued: have(what),
            unconfirmed: Some(unconfirmed),
        }),
        Ordered::Elsewhere(address) => Some(Issued::Elsewhere(address).into()),
        Ordered::BySuccessor => Some(Issued::BySuccessor.into()),
        Ordered::Wait | Ordered::Distinct => None,
    }
}

/// What has been waited for. Nobody is told of what is not confirmed.
fn confirmed(found: Option<Found>) -> Result<Issued, Failure> {
    match found {
        Some(Found {
            issued,
            unconfirmed: None,
        }) => Ok(issued),
        Some(Found {
            unconfirmed: Some(_),
            ..
        })
        | None => Err(nobody()),
    }
}

/// Nobody gives keys of ordered tags.
pub(super) fn nobody() -> Failure {
    let failure = Failure::new(
        Cause::NobodyActive,
        "it is not known which program gives keys of ordered tags",
    );
    failure.hint("ask again; the log says what is in the way if that lasts")
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
