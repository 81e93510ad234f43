//! What a configuration wants of a tag in one of several stores, and only the one without tags has.

use keywright_store::{FeedSettings, StoreSettings};

/// What is wrong.
pub(super) fn problems(store: &StoreSettings, feeds: &[FeedSettings]) -> Vec<String> {
    let fed = feeds.iter().flat_map(|feed| {
        let by = format!("the [[feed]] of {}", feed.address());
        feed.tags().iter().map(move |tag| (by.clone(), tag))
    });
    let hidden = store.hidden_tags().tags();
    let hidden = hidden.map(|tag| ("[[hidden_tag]]".to_owned(), tag));
    fed.chain(hidden)
        .filter_map(|(what, tag)| {
            let name = store.further_store_of(tag)?;
            Some(format!(
                "{what}: tag \"{tag}\" is in store \"{name}\", and must be in the one that has no tags"
            ))
        })
        .collect()
}
