//! Tags that hide how many keys there are: that the store has them as the configuration does; the number of a key.

use anyhow::{Result, bail};
use keywright_core::{Cause, Tag};
use keywright_proxy::config::{Config, Configured};
use keywright_proxy::schema::{self, Snapshot};
use keywright_session::Mode;
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

/// Tables of rules in force that get no keys, since they have got ids without their fence. `config`: as it is in force.
pub(super) fn stuck(config: &Config, snapshot: &Snapshot) -> Vec<String> {
    let gives_hidden = |rule: &&Configured| {
        let is_hidden = |tag| config.store.hidden_tags().of(tag).is_some();
        let gives_keys = rule.is_switched && rule.rule.mode == Mode::Rewrite;
        gives_keys && rule.spec.tag().is_some_and(is_hidden)
    };
    let columns = schema::key_columns(snapshot, config).into_iter();
    let is_stuck = |column: &schema::KeyColumn| {
        let rule = config.rules.get(column.rule).filter(gives_hidden);
        let has_ids = column.counter.is_some_and(|next| next > 1);
        let lacks_fence = column.auto_increment && column.can_have_fence() && !column.fenced;
        rule.is_some() && lacks_fence && has_ids
    };
    columns
        .filter(is_stuck)
        .map(|column| {
            format!(
                "{} gets no keys: it has ids and no fence, and hidden keys may be any. If all its ids are keys of its tag, as after TRUNCATE \
                 or in a copy: {}",
                column.quoted_table(),
                column.fence_statement()
            )
        })
        .collect()
}
