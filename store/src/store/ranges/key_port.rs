//! Ranges out of a key port: its program answers for them.

use std::sync::Arc;

use keywright_core::{Cause, Tag};

use super::granting::{another_key_space, granted, misfit, size, taken};
use crate::engine::redis::RedisLink;
use crate::engine::redis::error::RedisError;
use crate::engine::redis::judge::{Misfit, range};
use crate::engine::redis::key_port::{About, GIVES_KEYS};
use crate::failure::Failure;
use crate::store::StoreError;
use crate::store::tag_request::{Denied, Granted, ReservationRequest};
use crate::tag_order::TagOrder;

/// What the keys of a name begin with that are a tag's.
const SEGMENT: &str = "segment:";

pub(super) async fn reserve(
    request: &ReservationRequest<'_>,
    link: &mut RedisLink,
) -> Result<Result<Granted, Denied>, StoreError> {
    let tag = request.tag;
    let before = link.about(tag.as_str()).await?;
    if let Err(failure) = fits(tag, &before, &link.host) {
        return Ok(Err(Denied::Other(failure)));
    }
    if is_another(request, &before) {
        return Ok(Err(another_key_space(tag, &link.host)));
    }
    let (count, row) = match size(request, before.run_max) {
        Ok(sized) => sized,
        Err(denied) => return Ok(Err(denied)),
    };
    let (last, behind) = link.increase(tag.as_str(), count).await?;
    // What the name stands for may have changed in between.
    let is_same = behind.key == before.key
        && before
            .key_space
            .is_none_or(|known| Some(&known) == behind.key_space.as_ref());
    if !is_same || is_another(request, &behind) {
        return Ok(Err(another_key_space(tag, &link.host)));
    }
    // Before, the key port may not have known it; of a tag that it has just given a range of, it does.
    if let Err(failure) = fits(tag, &behind, &link.host) {
        return Ok(Err(Denied::Other(failure)));
    }
    if behind.order.is_none() {
        let what = format!("a range of \"{tag}\", and not in which order its keys are given");
        return Err(RedisError::Answer(what).into());
    }
    let Some(key_space) = name_of(&behind) else {
        let what = format!("a range of \"{tag}\", and not which tag it is of");
        return Err(RedisError::Answer(what).into());
    };
    let range = match range(last, count, taken(request)) {
        Ok(range) => range,
        Err(why) => return Ok(Err(Denied::Other(unfit(tag, &link.host, why)))),
    };
    let granted = granted(request, row, range, (link.host.clone(), key_space));
    Ok(Ok(Granted {
        id_max: None,
        ..granted
    }))
}

/// Whether a name is one that ranges come of; that none come now, where the key port says so.
pub(super) async fn look(
    tag: &Tag,
    link: &mut RedisLink,
) -> Result<Result<Option<String>, Failure>, RedisError> {
    let about = link.about(tag.as_str()).await?;
    Ok(fits(tag, &about, &link.host).map(|()| no_keys_now(tag, &about, &link.host)))
}

/// That a name gives no keys now. Programs of earlier versions do not say.
fn no_keys_now(tag: &Tag, about: &About, host: &str) -> Option<String> {
    let state = about
        .state
        .as_deref()
        .filter(|state| *state != GIVES_KEYS)?;
    Some(format!(
        "the key port at {host} says that \"{tag}\" {state}: no range of it comes from there until it gives keys"
    ))
}

/// A range that does not fit. The program there gives first what it has.
fn unfit(tag: &Tag, host: &str, why: Misfit) -> Failure {
    let failure = misfit(tag, host, why);
    match why {
        Misfit::Lower { was, .. } => failure.hint(format!(
            "keywright advance {tag} --above {was}, or the highest id in use if that is higher, where the store is; then start the program at {host} \
             again. Where it is another of several hosts, it may just hold an older range, and goes on when that is used up"
        )),
        Misfit::TooLarge | Misfit::NotPositive => failure,
    }
}

/// Which of all tags it is: what was drawn when it was made or, where the store behind does not tell, its name there.
fn name_of(about: &About) -> Option<Arc<str>> {
    match about.key_space.as_deref() {
        Some("") => Some(Arc::from(about.key.as_str())),
        Some(key_space) => Some(Arc::from(key_space)),
        None => None,
    }
}

/// Whether it is another tag than that of which the program has had ranges.
fn is_another(request: &ReservationRequest<'_>, about: &About) -> bool {
    match (&request.key_space, name_of(about)) {
        (Some(known), Some(now)) => *known != now,
        (Some(_) | None, _) => false,
    }
}

/// Whether a name gives ranges that may be passed on.
fn fits(tag: &Tag, about: &About, host: &str) -> Result<(), Failure> {
    if !about.key.starts_with(SEGMENT) {
        let message = format!(
            "\"{tag}\" at {host} gives {}, and ranges are of a tag",
            about.key
        );
        return Err(Failure::new(Cause::TagUnknown, message));
    }
    if let Some(bits) = &about.hide_bits {
        let message = format!(
            "keys of tag \"{tag}\" at {host} hide how many there are (hide_bits = {bits}), so they are no ranges"
        );
        let failure = Failure::new(Cause::HideKeyMismatch, message);
        return Err(failure.hint("let clients ask that key port, or use another tag"));
    }
    let distinct = TagOrder::Distinct.name();
    match about.order.as_deref() {
        Some(order) if order != distinct => {
            let message = format!(
                "tag \"{tag}\" at {host} is ordered ({order}), and ranges that are given elsewhere would break its order"
            );
            let failure = Failure::new(Cause::TagOrdered, message);
            Err(failure.hint("let clients ask that key port, or use a tag that is distinct"))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_but_one_is_told() {
        let tag = Tag::parse("orders").unwrap();
        let told = |state: Option<&str>| {
            let about = About {
                key: "segment:orders".to_owned(),
                state: state.map(str::to_owned),
                order: None,
                key_space: None,
                hide_bits: None,
                run_max: 50,
            };
            assert!(fits(&tag, &about, "ids:6399").is_ok(), "{about:?}");
            no_keys_now(&tag, &about, "ids:6399")
        };
        for quiet in [None, Some(GIVES_KEYS)] {
            assert_eq!(told(quiet), None);
        }
        // Also one that this version does not know.
        for state in ["has no keys, and cannot reserve", "rests"] {
            let says = format!("the key port at ids:6399 says that \"orders\" {state}: ");
            assert!(told(Some(state)).unwrap().starts_with(&says), "{state}");
        }
    }
}
