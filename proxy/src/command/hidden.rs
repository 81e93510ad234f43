//! Tags that hide how many keys there are: that the store has them as the configuration does; the number of a key.

use anyhow::{Result, bail};
use keywright_core::{Cause, Tag};
use keywright_proxy::config::Config;
use keywright_store::{Failure, Keys};

/// Why the program cannot start: tags were made with another permutation than the configuration has for them, or with none. Where the
/// store does not answer now, it refuses them later.
pub(super) async fn are_alike(keys: &Keys, config: &Config) -> Result<()> {
    if !keys.has_own_tags() {
        return Ok(());
    }
    let refused = keys.check_hidden(&config.tags()).await.unwrap_or_default();
    match refused.is_empty() {
        true => Ok(()),
        false => bail!(lines(&refused)),
    }
}

/// The same in a program that runs, whose permutations stay as they were at the start.
pub(super) fn have_not_changed(old: &Config, new: &Config) -> Result<()> {
    if old.store.hidden_tags().are_as(new.store.hidden_tags()) {
        return Ok(());
    }
    bail!("[[hidden_tag]] sections have changed, which needs a restart")
}

fn lines(refused: &[Failure]) -> String {
    let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The number of a key, or the key of a number: by the secret of the tag's section.
pub(super) fn decoded(config: &Config, tag: &Tag, text: &str, is_number: bool) -> Result<u64> {
    let Some(hiding) = config.store.hidden_tags().of(tag) else {
        let message = format!("there is no [[hidden_tag]] section for tag \"{tag}\"");
        let failure = Failure::new(Cause::HideKeyMismatch, message);
        bail!("{failure}");
    };
    let given = text.parse().ok();
    let found = given.and_then(|given| match is_number {
        true => hiding.hide(given),
        false => hiding.reveal(given),
    });
    let largest = hiding.bits().largest();
    match found {
        Some(found) => Ok(found),
        None if is_number => bail!("tag \"{tag}\" has numbers from 1 to {largest}, not {text}"),
        None => bail!("{text} is no key of tag \"{tag}\": its keys are from 1 to {largest}"),
    }
}
