//! `KEYWRIGHT CREATE` and `ADVANCE`: tags, for users who may make and raise them.

use keywright_core::{Cause, Tag};
use keywright_resp::reply::Writer;
use keywright_store::users::Right;
use keywright_store::{Failure, KeySpec};

use crate::port::access::Who;
use crate::port::issue;
use crate::port::keys::PortKeys;
use crate::port::redis::manage::{refuse, users_of};
use crate::port::redis::outcome::{Done, Outcome};

/// Makes the tag of a name: the one that its keys come from or, where the listener has no such name, the tag that is called so.
pub(super) fn create(name: &[u8], who: &Who, keys: &PortKeys, to: &mut Writer<'_>) -> Outcome {
    let wanted = users_of(keys, who.may_manage(Right::Create, name));
    let wanted = wanted.and_then(|users| Ok((users, tag_to_make(name, keys)?)));
    match wanted {
        Ok((users, tag)) => {
            let users = users.clone();
            Outcome::Doing(Box::pin(async move {
                let made = users.create(&tag).await;
                made.map(|()| Done::Ok).map_err(made_by_init)
            }))
        }
        Err(failure) => refuse(keys, name, &failure, to),
    }
}

/// Has all later keys of a name lie above a number.
pub(super) fn advance(
    (name, above): (&[u8], i64),
    who: &Who,
    keys: &PortKeys,
    to: &mut Writer<'_>,
) -> Outcome {
    let wanted = users_of(keys, who.may_manage(Right::Manage, name));
    let wanted = wanted.and_then(|users| Ok((users, tag_of(name, keys)?, number(above)?)));
    match wanted {
        Ok((users, tag, above)) => {
            let users = users.clone();
            Outcome::Doing(Box::pin(async move {
                users.advance(tag, above).await.map(Done::Number)
            }))
        }
        Err(failure) => refuse(keys, name, &failure, to),
    }
}

fn number(above: i64) -> Result<u64, Failure> {
    let negative = |_| {
        let message = format!("a key is 0 or more, not {above}");
        Failure::new(Cause::ArgumentOutOfRange, message)
    };
    u64::try_from(above).map_err(negative)
}

/// What a name's tag is or, where the listener has no such name, the tag that is called so. It begins at 1, so it is none that was in use
/// before.
fn tag_to_make(name: &[u8], keys: &PortKeys) -> Result<Tag, Failure> {
    let tag = match keys.name(name) {
        Some(_) => tag_of(name, keys)?,
        None => {
            let invalid = |message: String| Failure::new(Cause::TagInvalid, message);
            let text = std::str::from_utf8(name).map_err(|error| invalid(error.to_string()))?;
            Tag::parse(text).map_err(|error| invalid(error.to_string()))?
        }
    };
    keys.tags_in_use.check(&tag).map_err(made_by_init)?;
    Ok(tag)
}

/// With what is to be done about a tag that somebody has used.
fn made_by_init(failure: Failure) -> Failure {
    match failure.cause() == Cause::TagInUse {
        true => failure.hint(
            "keywright init makes it, above the ids that tables have; then keywright advance above those that were given elsewhere",
        ),
        false => failure,
    }
}

fn tag_of(name: &[u8], keys: &PortKeys) -> Result<Tag, Failure> {
    let named = keys.name(name);
    let named = named.ok_or_else(|| issue::unknown(name, keys))?;
    match &named.spec {
        KeySpec::Segment(tag) => Ok(tag.clone()),
        KeySpec::Snowflake | KeySpec::Stride(_) | KeySpec::Readable(_) | KeySpec::Uuid { .. } => {
            let message = format!("the keys of \"{}\" come from no tag", named.name);
            let failure = Failure::new(Cause::KeyKind, message);
            Err(failure
                .hint("keywright advance raises snowflake and readable ids, of all programs"))
        }
    }
}
