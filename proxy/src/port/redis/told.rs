//! Requests for keys over the Redis protocol: what they ask for, and how keys are told.

use std::time::Duration;

use keywright_core::{Cause, KeyBatch, slot};
use keywright_resp::reply::Writer;
use keywright_store::{Failure, KeySpec};

use crate::port::issue::{self, Issued, KeyRequest, Wants};
use crate::port::keys::{NamedKeys, PortKeys};
use crate::port::redis::refused;

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
    /// The last that was given, as bytes; none is taken.
    Recent,
}

impl Form {
    fn wants(self) -> Wants {
        match self {
            Self::Last => Wants::Run,
            Self::One | Self::List => Wants::List,
            Self::Recent => Wants::Last,
        }
    }
}

/// Why a client gets nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Away {
    /// Another program gives the keys of the slot.
    Moved(Moved),
    /// So does one at this program's own address: a new connection leads to it.
    Gone,
}

/// A slot whose keys another program gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moved {
    /// The slot.
    pub(super) slot: u16,
    address: String,
}

impl Moved {
    pub(super) fn new(name: &[u8], address: String) -> Self {
        let slot = slot::of(name);
        Self { slot, address }
    }

    /// Tells a client where to ask.
    pub(super) fn tell(&self, to: &mut Writer<'_>) {
        // As Redis writes it and clients read it: the port is behind the last colon, and an address of IPv6 has no brackets.
        let address = self.address.replace(['[', ']'], "");
        to.error("MOVED", &format!("{} {address}", self.slot));
    }
}

/// A request for keys, and how they are told.
#[derive(Debug, Clone)]
pub(super) struct AskedKeys {
    /// The request.
    pub(super) request: KeyRequest,
    form: Form,
}

impl AskedKeys {
    /// What a client asks for, looked at. `output_bytes_max`: what a list may take.
    ///
    /// # Errors
    /// There is no such name, or it does not give such keys, or so many.
    pub(super) fn new(
        keys: &PortKeys,
        name: &[u8],
        (count, form): (i64, Form),
        output_bytes_max: usize,
    ) -> Result<Self, Failure> {
        let Some(named) = keys.name(name) else {
            return Err(issue::unknown(name, keys));
        };
        let count = checked(named, (count, form), output_bytes_max)?;
        Ok(Self {
            request: KeyRequest::new(named, count, form.wants()),
            form,
        })
    }

    /// The name whose keys are asked for.
    pub(super) fn name(&self) -> &str {
        &self.request.named().name
    }

    /// What a list of them takes at most, bytes; nothing for a reply that is no list, which is short.
    pub(super) fn listed_bytes(&self) -> usize {
        match self.form {
            Form::List => {
                let count = usize::try_from(self.request.count()).unwrap_or(usize::MAX);
                count.saturating_mul(LISTED_BYTES_MAX)
            }
            Form::Last | Form::One | Form::Recent => 0,
        }
    }

    /// Whether it asks for keys of the same name.
    pub(super) fn is_of_same_name(&self, other: &Self) -> bool {
        std::ptr::eq(self.request.named(), other.request.named())
    }

    /// So many requests for keys of the name took so long each.
    pub(super) fn took(&self, count: u64, each: Duration) {
        self.request.named().figures.took(count, each);
    }

    /// Tells what was found. Inside: the client is to ask another program, or to come again.
    pub(super) fn tell(
        &self,
        issued: Issued,
        keys: &PortKeys,
        to: &mut Writer<'_>,
    ) -> Result<(), Away> {
        match issued {
            Issued::Keys(taken) => {
                if let Err(failure) = self.write(&taken, to) {
                    refused::refuse(keys, self.name().as_bytes(), &failure, to);
                }
            }
            Issued::Last(0) => to.null(),
            Issued::Last(last) => to.bulk_number(last),
            Issued::Elsewhere(address) => {
                let moved = Moved::new(self.name().as_bytes(), address);
                moved.tell(to);
                return Err(Away::Moved(moved));
            }
            Issued::BySuccessor => return Err(Away::Gone),
        }
        Ok(())
    }

    /// They count as used, whatever becomes of the reply.
    fn write(&self, keys: &KeyBatch, to: &mut Writer<'_>) -> Result<(), Failure> {
        let named = self.request.named();
        named.figures.gave(keys.len());
        let last = match (self.form, keys) {
            (Form::Last, KeyBatch::Numbers { spacing, count, .. })
                if *spacing != 1 && *count > 1 =>
            {
                return Err(not_consecutive(named));
            }
            (Form::Last | Form::One | Form::Recent, _) => {
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
            named.figures.gave_last(last);
        }
        Ok(())
    }
}

/// How many keys a request is for.
fn checked(
    named: &NamedKeys,
    (count, form): (i64, Form),
    output_bytes_max: usize,
) -> Result<u64, Failure> {
    if (form == Form::Last || form == Form::Recent) && !named.is_number() {
        return Err(no_number(named));
    }
    let count = issue::count(named, count)?;
    if form == Form::Last && count > named.run_max {
        let message = format!(
            "one run of \"{}\" has at most {} keys, not {count}",
            named.name, named.run_max
        );
        let failure = Failure::new(Cause::ArgumentOutOfRange, message);
        return Err(failure.hint(match named.spec {
            KeySpec::Segment(_) | KeySpec::Stride(_) => "ask several times, or raise range_ids_max",
            KeySpec::Snowflake | KeySpec::Uuid { .. } | KeySpec::Readable(_) => "ask several times",
        }));
    }
    let listed_max = output_bytes_max / LISTED_BYTES_MAX;
    let listed_max = u64::try_from(listed_max).unwrap_or(u64::MAX).max(1);
    if form == Form::List && count > listed_max {
        let message =
            format!("one list has at most {listed_max} keys on this listener, not {count}");
        let failure = Failure::new(Cause::ArgumentOutOfRange, message);
        return Err(failure.hint("ask several times, use INCRBY, or raise output_bytes_max"));
    }
    Ok(count)
}

/// Keys that are no numbers, where one is asked for.
pub(super) fn no_number(named: &NamedKeys) -> Failure {
    let failure = Failure::new(
        Cause::KeyKind,
        format!("the keys of \"{}\" are no numbers", named.name),
    );
    failure.hint("KEYWRIGHT NEXT gives them")
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
