//! `init`: the store's tables and tags.

use anyhow::Result;
use keywright_core::{Step, Tag};
use keywright_proxy::config::Configured;
use keywright_proxy::highest::{self, Highest, Unknown};
use keywright_store::TagOptions;

use super::{File, runtime};

/// Step of tags that are made.
const STEP: i64 = 1_000;
/// But no more than such a part of a small key space: each proxy that is killed loses what it has reserved.
const STEP_PART: i64 = 1_000;

/// The largest key that any of a tag's rules takes.
fn largest_of(rules: &[Configured], tag: &Tag) -> i64 {
    let of_tag = rules.iter().filter(|rule| rule.spec.tag() == Some(tag));
    let bits = of_tag.map(|rule| rule.rule.bits_max).max();
    i64::MAX >> 63_u32.saturating_sub(bits.unwrap_or(63))
}

fn options(largest: i64, highest: u64) -> Result<TagOptions> {
    let step = Step::new((largest / STEP_PART).clamp(1, STEP))?;
    Ok(TagOptions {
        start: highest.saturating_add(1),
        id_max: largest.cast_unsigned(),
        ..TagOptions::with_step(step)
    })
}

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
        let (highest, unknown) = highest::by_tag(&config).await;
        let mut made: Vec<&Tag> = Vec::new();
        for configured in &config.rules {
            let Some(tag) = configured.spec.tag() else {
                continue;
            };
            if there.iter().any(|name| name == tag.as_str()) || made.contains(&tag) {
                continue;
            }
            let there = highest.iter().find(|highest| highest.tag == *tag);
            let there = there.filter(|highest| highest.id > 0);
            let options = options(
                largest_of(&config.rules, tag),
                there.map_or(0, |highest| highest.id),
            )?;
            keys.create_tag(tag, &options).await.map_err(failed)?;
            match there {
                Some(Highest { id, table, .. }) => {
                    println!("created tag \"{tag}\", above {id}, the highest id in {table}");
                }
                None => println!("created tag \"{tag}\""),
            }
            let concerns = |unknown: &&Unknown| unknown.tag.as_ref().is_none_or(|its| its == tag);
            for Unknown { what, .. } in unknown.iter().filter(concerns) {
                println!("note: whether tables have higher ids is not known of {what}");
            }
            made.push(tag);
        }
        Ok(())
    })
}
