//! `KEYWRIGHT CREATE`, `ALTER`, `ADVANCE`, `DROP`: tags, for users who may do that.

use keywright_core::{Cause, Step, Tag};
use keywright_resp::command::Altered;
use keywright_resp::reply::Writer;
use keywright_store::users::Right;
use keywright_store::{Failure, KeySpec, TagChange, TagOrder};

use crate::port::access::Who;
use crate::port::issue;
use crate::port::keys::PortKeys;
use crate::port::redis::manage::{refuse, users_of};
use crate::port::redis::outcome::{Done, Outcome};

/// Makes a tag that nobody of the program's configuration names. It begins at 1, or above one that was dropped.
pub(super) fn create(
    (name, order): (&[u8], Option<&[u8]>),
    who: &Who,
    keys: &PortKeys,
    to: &mut Writer<'_>,
) -> Outcome {
    let wanted = users_of(keys, who.may_manage(Right::Create, name));
    let wanted = wanted.and_then(|users| Ok((users, unused_tag(name, keys)?, order_of(order)?)));
    match wanted.map_err(made_by_init) {
        Ok((users, tag, order)) => {
            let users = users.clone();
            Outcome::Doing(Box::pin(async move {
                let made = users.create(&tag, order).await;
                made.map(|()| Done::Ok).map_err(made_by_init)
            }))
        }
        Err(failure) => refuse(keys, name, &failure, to),
    }
}

/// The order that was asked for.
fn order_of(order: Option<&[u8]>) -> Result<TagOrder, Failure> {
    let Some(order) = order else {
        return Ok(TagOrder::default());
    };
    let named = String::from_utf8_lossy(order).to_ascii_lowercase();
    TagOrder::parse(&named).ok_or_else(|| {
        let shown = order.get(..64).unwrap_or(order).escape_ascii();
        let message =
            format!("the order of a tag is distinct, monotonic or strict, not \"{shown}\"");
        Failure::new(Cause::ArgumentOutOfRange, message)
    })
}

/// Lets another program give keys of ordered tags, of a slot group or of all.
pub(super) fn demote(
    group: Option<i64>,
    who: &Who,
    keys: &PortKeys,
    to: &mut Writer<'_>,
) -> Outcome {
    // There is no group 0, and the store says so.
    let group = group.map(|number| u64::try_from(number).unwrap_or(0));
    match users_of(keys, who.may_administer()) {
        Ok(users) => {
            let users = users.clone();
            Outcome::Doing(Box::pin(async move {
                users.demote(group).await.map(|()| Done::Ok)
            }))
        }
        Err(failure) => refuse(keys, b"", &failure, to),
    }
}

/// Has all later keys of a name lie above a number; `use_up`: also where that leaves its tag almost no ids.
pub(super) fn advance(
    (name, above, use_up): (&[u8], i64, bool),
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
                let next = users.advance(tag, above, use_up).await;
                next.map(Done::Number)
            }))
        }
        Err(failure) => refuse(keys, name, &failure, to),
    }
}

/// Has something of a tag be otherwise: of a name's, or of one that nobody of the program's configuration names.
pub(super) fn alter(
    (name, altered): (&[u8], &Altered<'_>),
    who: &Who,
    keys: &PortKeys,
    to: &mut Writer<'_>,
) -> Outcome {
    let wanted = users_of(keys, who.may_manage(Right::Manage, name));
    let wanted = wanted.and_then(|users| {
        let tag = match keys.name(name) {
            Some(_) => tag_of(name, keys)?,
            None => unused_tag(name, keys)?,
        };
        Ok((users, tag, change(altered)?))
    });
    match wanted {
        Ok((users, tag, change)) => {
            let users = users.clone();
            Outcome::Doing(Box::pin(async move {
                users.alter(&tag, &change).await.map(|()| Done::Ok)
            }))
        }
        Err(failure) => refuse(keys, name, &failure, to),
    }
}

/// Drops a tag that nobody of the program's configuration names; where one of the same name goes on.
pub(super) fn drop_tag(name: &[u8], who: &Who, keys: &PortKeys, to: &mut Writer<'_>) -> Outcome {
    let wanted = users_of(keys, who.may_manage(Right::Manage, name));
    let wanted = wanted.and_then(|users| Ok((users, unused_tag(name, keys)?)));
    match wanted.map_err(named_no_more) {
        Ok((users, tag)) => {
            let users = users.clone();
            Outcome::Doing(Box::pin(async move {
                let dropped = users.drop_tag(&tag).await;
                dropped.map(Done::Number).map_err(named_no_more)
            }))
        }
        Err(failure) => refuse(keys, name, &failure, to),
    }
}

/// With what is to be done about a tag that somebody still uses.
fn named_no_more(failure: Failure) -> Failure {
    match failure.cause() == Cause::TagInUse {
        true => failure.hint(
            "first let no rule, feed or listener name it, and have the configuration read again",
        ),
        false => failure,
    }
}

fn change(altered: &Altered<'_>) -> Result<TagChange, Failure> {
    let out_of_range = |message: String| Failure::new(Cause::ArgumentOutOfRange, message);
    let step = |given: Option<i64>| {
        let step = given.map(Step::new).transpose();
        step.map_err(|error| out_of_range(error.to_string()))
    };
    let number = |name: &str, given: Option<i64>| {
        let number = given.map(u32::try_from).transpose();
        number.map_err(|_| out_of_range(format!("{name} cannot be {}", given.unwrap_or(0))))
    };
    let text = altered.description.map(std::str::from_utf8).transpose();
    let text = text.map_err(|_| out_of_range("a description is UTF-8".to_owned()))?;
    Ok(TagChange {
        step: step(altered.step)?,
        step_min: step(altered.step_min)?,
        step_max: step(altered.step_max)?,
        cover_s: number("cover_s", altered.cover_s)?,
        refill_percent: number("refill_percent", altered.refill_percent)?,
        description: text.map(str::to_owned),
    })
}

fn number(above: i64) -> Result<u64, Failure> {
    let negative = |_| {
        let message = format!("a key is 0 or more, not {above}");
        Failure::new(Cause::ArgumentOutOfRange, message)
    };
    u64::try_from(above).map_err(negative)
}

/// What a name's tag is or, where the listener has no such name, the tag that is called so.
///
/// # Errors
/// [`Cause::TagInUse`]: the configuration names it.
fn unused_tag(name: &[u8], keys: &PortKeys) -> Result<Tag, Failure> {
    let tag = match keys.name(name) {
        Some(_) => tag_of(name, keys)?,
        None => {
            let invalid = |message: String| Failure::new(Cause::TagInvalid, message);
            let text = std::str::from_utf8(name).map_err(|error| invalid(error.to_string()))?;
            Tag::parse(text).map_err(|error| invalid(error.to_string()))?
        }
    };
    keys.tags_in_use.check(&tag)?;
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
