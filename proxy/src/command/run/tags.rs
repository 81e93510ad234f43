//! What must be so of a configuration's tags in the store before it is put in force.

use anyhow::{Result, bail};
use keywright_core::{Tag, nearest};
use keywright_proxy::config::Config;
use keywright_store::Keys;

use crate::command::{hidden, ordered};

/// Whether the store gives keys of the tags as the configuration has them. `in_force`: the tags of the configuration that is.
pub(super) async fn are_usable(
    keys: &Keys,
    config: &Config,
    in_force: Option<&[Tag]>,
) -> Result<()> {
    are_there(keys, &config.tags(), in_force).await?;
    are_at_home(keys, &config.tags()).await?;
    are_not_ordered(keys, config).await?;
    hidden::are_alike(keys, config).await
}

/// Whether the store has the tags. One that does not answer holds nobody up: keys that are reserved need none, and those that are not
/// are waited for. But a tag that comes into force while others are must be known.
async fn are_there(keys: &Keys, tags: &[Tag], in_force: Option<&[Tag]>) -> Result<()> {
    match keys.missing(tags).await {
        Ok(missing) if missing.is_empty() => Ok(()),
        Ok(missing) => {
            let names: Vec<String> = missing.iter().map(|tag| format!("\"{tag}\"")).collect();
            let names = names.join(", ");
            if keys.gives_ranges_only() {
                bail!("the store has no tag {names}: keywright check says more");
            }
            bail!(
                "the store has no tag {names}: keywright init makes it{}",
                meant(keys, &missing).await
            )
        }
        Err(failure) if in_force.is_none_or(|known| tags.iter().all(|tag| known.contains(tag))) => {
            tracing::warn!(%failure, "whether the store has the configuration's tags is not known");
            Ok(())
        }
        Err(failure) => bail!("whether the store has the new rules' tags is not known: {failure}"),
    }
}

/// The tag of the store that was probably meant.
async fn meant(keys: &Keys, missing: &[Tag]) -> String {
    let listings = keys.tags().await.unwrap_or_default();
    let known = listings.iter().map(|listing| listing.tag.as_str());
    let near = missing.iter().find_map(|tag| {
        nearest::nearest(tag.as_str(), known.clone())
            .into_iter()
            .next()
    });
    near.map_or_else(String::new, |near| format!(". Did you mean \"{near}\"?"))
}

/// Whether each tag is open in its store and in no other, as far as the stores answer; those that do not refuse it later.
async fn are_at_home(keys: &Keys, tags: &[Tag]) -> Result<()> {
    let refused = keys.not_at_home(tags).await;
    let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => bail!(lines.join("\n")),
    }
}

async fn are_not_ordered(keys: &Keys, config: &Config) -> Result<()> {
    match ordered::in_tables(config, keys).await {
        None => Ok(()),
        Some(problem) => bail!(problem),
    }
}
