//! Requests for keys: what they ask for, how they are taken, and how they are told.

use std::sync::Arc;
use std::time::Duration;

use keywright_core::{Cause, KeyBatch};
use keywright_resp::reply::Writer;
use keywright_store::Failure;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::in_force::snapshot::ConfigSnapshot;
use crate::port::keys::{Gives, NamedKeys, PortKeys};

/// Most bytes that one key of a list takes: a UUID with what the protocol adds.
const LISTED_BYTES_MAX: usize = 48;

/// How keys are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The last number of a run, from which the client counts back.
    Last,
    /// One, as it is.
    One,
    /// All, in an array.
    List,
}

/// A request for keys that may be had.
#[derive(Debug, Clone)]
pub(super) struct KeyRequest {
    named: Arc<NamedKeys>,
    count: u64,
    form: Form,
}

/// What a client asks for, looked at.
///
/// # Errors
/// There is no such name, or it does not give such keys, or so many; the name is given where there is one.
pub(super) fn request(
    keys: &PortKeys,
    name: &[u8],
    (count, form): (i64, Form),
) -> Result<KeyRequest, (Option<Arc<NamedKeys>>, Failure)> {
    let Some(named) = keys.name(name) else {
        return Err((None, unknown(name)));
    };
    let refused = |failure| Err((Some(Arc::clone(named)), failure));
    if form == Form::Last && !named.is_number() {
        return refused(no_number(named));
    }
    let count = match u64::try_from(count) {
        Ok(count) if count > 0 => count,
        Ok(_) | Err(_) => {
            let message = format!(
                "\"{}\" gives 1 key or more, not {count}: keys are given once and in ascending order",
                named.name
            );
            return refused(Failure::new(Cause::ArgumentOutOfRange, message));
        }
    };
    if form == Form::Last && count > named.run_max {
        let message = format!(
            "one run of \"{}\" has at most {} keys, not {count}",
            named.name, named.run_max
        );
        let failure = Failure::new(Cause::ArgumentOutOfRange, message);
        return refused(failure.hint("ask several times, or raise range_ids_max"));
    }
    let listed_max = keys.port.limits.output_bytes_max / LISTED_BYTES_MAX;
    let listed_max = u64::try_from(listed_max).unwrap_or(u64::MAX).max(1);
    if form == Form::List && count > listed_max {
        let message =
            format!("one list has at most {listed_max} keys on this listener, not {count}");
        let failure = Failure::new(Cause::ArgumentOutOfRange, message);
        return refused(failure.hint("ask several times, use INCRBY, or raise output_bytes_max"));
    }
    Ok(KeyRequest {
        named: Arc::clone(named),
        count,
        form,
    })
}

/// A name that is not there.
pub(super) fn unknown(name: &[u8]) -> Failure {
    let shown = name.get(..64).unwrap_or(name).escape_ascii();
    let failure = Failure::new(
        Cause::TagUnknown,
        format!("no keys are given under \"{shown}\" here"),
    );
    failure.hint("KEYWRIGHT LIST shows the names; keys of the [[listener]] says them")
}

/// Keys that are no numbers, where one is asked for.
pub(super) fn no_number(named: &NamedKeys) -> Failure {
    let failure = Failure::new(
        Cause::KeyKind,
        format!("the keys of \"{}\" are no numbers", named.name),
    );
    failure.hint("KEYWRIGHT NEXT gives them")
}

impl KeyRequest {
    fn is_run(&self) -> bool {
        match self.form {
            Form::Last => true,
            Form::One | Form::List => false,
        }
    }

    /// The keys, if they are there.
    pub(super) fn try_take(&self) -> Option<KeyBatch> {
        match &self.named.gives {
            Gives::Keys(source) => source.try_take(self.count, self.is_run()).ok(),
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
                let keys = snapshot.borrow_and_update().port(port);
                let named = keys.as_ref().and_then(|keys| {
                    let named = keys.name(request.named.name.as_bytes())?;
                    Some((keys, named))
                });
                let Some((keys, named)) = named else {
                    return Err(unknown(request.named.name.as_bytes()));
                };
                let (ms, failure) = match &named.gives {
                    Gives::Keys(source) => {
                        return source.take(request.count, request.is_run()).await;
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

    /// Tells keys that were taken. They count as used, whatever becomes of the reply.
    pub(super) fn write(&self, keys: &KeyBatch, to: &mut Writer<'_>) -> Result<(), Failure> {
        let figures = &self.named.figures;
        figures.gave(keys.len());
        let last = match (self.form, keys) {
            (Form::Last, KeyBatch::Numbers { spacing, count, .. })
                if *spacing != 1 && *count > 1 =>
            {
                return Err(not_consecutive(&self.named));
            }
            (Form::Last | Form::One, _) => {
                let at = keys.len().saturating_sub(1);
                write_key(keys, at, to)?;
                keys.number(at)
            }
            (Form::List, _) => {
                to.array(usize::try_from(keys.len()).unwrap_or(usize::MAX));
                for at in 0..keys.len() {
                    write_key(keys, at, to)?;
                }
                keys.number(keys.len().saturating_sub(1))
            }
        };
        if let Some(last) = last {
            figures.gave_last(last);
        }
        Ok(())
    }

    /// The name whose keys are asked for.
    pub(super) fn name(&self) -> &str {
        &self.named.name
    }
}

/// One key: a number as one, another as bytes.
fn write_key(keys: &KeyBatch, at: u64, to: &mut Writer<'_>) -> Result<(), Failure> {
    let missing = || Failure::new(Cause::IdForeign, "the key has no place in this protocol");
    let index = usize::try_from(at).unwrap_or(usize::MAX);
    match keys {
        KeyBatch::Numbers { .. } | KeyBatch::Listed(_) => {
            let number = keys.number(at).and_then(|number| number.try_into().ok());
            to.integer(number.ok_or_else(missing)?);
        }
        KeyBatch::Texts(texts) => to.bulk(texts.get(index).ok_or_else(missing)?.as_bytes()),
        KeyBatch::Bytes(all) => to.bulk(all.get(index).ok_or_else(missing)?),
    }
    Ok(())
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

fn not_consecutive(named: &NamedKeys) -> Failure {
    let failure = Failure::new(
        Cause::ArgumentOutOfRange,
        format!(
            "several keys of \"{}\" are not consecutive, and INCRBY says that they are",
            named.name
        ),
    );
    failure.hint("KEYWRIGHT NEXT name COUNT n lists them")
}
