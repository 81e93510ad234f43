//! `init`: the store's tables and tags.

use anyhow::Result;
use keywright_core::{Step, Tag};
use keywright_store::{KeySpec, TagOptions};

use super::{File, runtime};

/// Step of tags that are made.
const STEP: i64 = 1_000;

/// Creates what is missing.
pub(crate) fn run(file: &File) -> Result<()> {
    let (config, keys) = file.open()?;
    runtime()?.block_on(async {
        let failed = |failure: keywright_store::Failure| anyhow::anyhow!("{failure}");
        for made in keys.init().await.map_err(failed)? {
            println!("created {made}");
        }
        let there: Vec<String> = keys
            .tags()
            .await
            .map_err(failed)?
            .into_iter()
            .map(|listing| listing.tag)
            .collect();
        let mut made: Vec<&Tag> = Vec::new();
        for configured in &config.rules {
            let tag = match &configured.spec {
                KeySpec::Segment(tag) => tag,
                KeySpec::Stride(stride) => stride.tag(),
                KeySpec::Snowflake | KeySpec::Uuid { .. } | KeySpec::Readable(_) => continue,
            };
            if there.iter().any(|name| name == tag.as_str()) || made.contains(&tag) {
                continue;
            }
            let options = TagOptions::with_step(Step::new(STEP)?);
            keys.create_tag(tag, &options).await.map_err(failed)?;
            println!("created tag \"{tag}\"");
            made.push(tag);
        }
        Ok(())
    })
}
