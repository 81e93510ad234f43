//! `advance`: bounds of the store raised by the word of somebody who knows how far ids were given.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;
use keywright_core::{Layout, Tag};
use keywright_store::{Above, TagBound};

use super::{File, of_store, runtime};

/// A moment further ahead of the clock is taken for a mistake, milliseconds: until it has come there would be no keys.
const AHEAD_MS_MAX: i64 = 86_400_000;

/// Less than one in so many of the ids that a tag has left is taken for a mistake, too: a bound never goes down.
const LEFT_PARTS_MAX: u64 = 100;

/// The largest id of a tag whose table does not say one.
const ID_MAX: u64 = i64::MAX.unsigned_abs();

#[derive(Args)]
pub(crate) struct Advance {
    #[command(flatten)]
    file: File,
    /// A tag, or "snowflake", or "readable".
    of: String,
    /// With several stores: the one in which the tag is raised; default: the tag's store by the configuration.
    #[arg(long, value_name = "NAME")]
    store: Option<String>,
    /// Every later id of the tag, or snowflake id, is greater than this one.
    #[arg(
        long,
        value_name = "ID",
        conflicts_with = "above_ms",
        required_unless_present = "above_ms"
    )]
    above: Option<u64>,
    /// No later snowflake or readable id has a time before this one, unix milliseconds.
    #[arg(long, value_name = "UNIX_MS")]
    above_ms: Option<i64>,
    /// With --above: raise a tag also where that leaves it none of its ids, or almost none.
    #[arg(long, requires = "above")]
    use_up: bool,
}

impl Advance {
    pub(crate) fn run(&self) -> Result<()> {
        let (config, keys) = self.file.open()?;
        let above = self.above(&config.store.layout(), now_ms())?;
        let keys = match (&above, self.store.as_deref()) {
            (_, None) => keys,
            (Above::Tag { .. }, Some(_)) => of_store(&keys, self.store.as_deref())?.by_itself(),
            (
                Above::Snowflake { .. }
                | Above::SnowflakeMoment { .. }
                | Above::ReadableMoment { .. },
                Some(_),
            ) => bail!("--store is for a tag: all else is in the store that has no tags"),
        };
        let runtime = runtime()?;
        let bound = match &above {
            Above::Tag { tag, id: _ } => match runtime.block_on(keys.tag_bound(tag)) {
                Ok(bound) => bound,
                // It is not asked for anything that matters then.
                Err(_) if self.use_up => None,
                Err(failure) => bail!("{failure}"),
            },
            Above::Snowflake { .. }
            | Above::SnowflakeMoment { .. }
            | Above::ReadableMoment { .. } => None,
        };
        if let (Above::Tag { tag, id }, Some(bound), false) = (&above, &bound, self.use_up) {
            leave_enough(tag, *id, bound)?;
        }
        let next = runtime.block_on(keys.advance(&above));
        let next = next.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        let largest = bound.as_ref().map_or(ID_MAX, largest_of);
        match above {
            Above::Tag { tag, id: _ } if next > largest => {
                println!(
                    "tag \"{tag}\" has no ids left: {largest} is its largest; programs use up first what they have reserved before"
                );
            }
            Above::Tag { tag, id: _ } => {
                println!(
                    "tag \"{tag}\" goes on at {next}; programs use up first what they have reserved before"
                );
                if config.store.keeps_ranges() {
                    println!(
                        "one that was killed, or stopped while the store was away, may go on with its kept_ranges_file, which is of before: delete it"
                    );
                }
            }
            Above::Snowflake { .. }
            | Above::SnowflakeMoment { .. }
            | Above::ReadableMoment { .. } => {
                println!(
                    "{} ids go on at {next} ms or now, whichever is later",
                    self.of
                );
            }
        }
        Ok(())
    }

    fn above(&self, layout: &Layout, now_ms: i64) -> Result<Above> {
        let moment = |unix_ms: i64| {
            if unix_ms > now_ms.saturating_add(AHEAD_MS_MAX) {
                bail!(
                    "{unix_ms} ms is more than a day ahead of the clock: until then there would be no keys"
                );
            }
            Ok(unix_ms)
        };
        match (self.of.as_str(), self.above, self.above_ms) {
            ("snowflake", Some(id), None) => {
                let id = i64::try_from(id).with_context(|| format!("{id} is no snowflake id"))?;
                moment(layout.unix_ms_of(layout.tick_above(id)))?;
                Ok(Above::Snowflake { id })
            }
            ("snowflake", _, Some(unix_ms)) => Ok(Above::SnowflakeMoment {
                unix_ms: moment(unix_ms)?,
            }),
            ("readable", _, Some(unix_ms)) => Ok(Above::ReadableMoment {
                unix_ms: moment(unix_ms)?,
            }),
            ("readable", Some(_), None) => {
                bail!("readable ids are advanced with --above-ms: `decode` shows an id's moment")
            }
            (tag, Some(id), None) => Ok(Above::Tag {
                tag: Tag::parse(tag.strip_prefix("segment:").unwrap_or(tag))?,
                id,
            }),
            (tag, _, Some(_)) => bail!("ids of tag \"{tag}\" carry no moment: say --above ID"),
            (_, None, None) => bail!("say --above ID"),
        }
    }
}

fn largest_of(bound: &TagBound) -> u64 {
    bound.id_max.unwrap_or(ID_MAX)
}

/// Refuses what would use up a tag. What is beyond its end the store refuses. Where the store has gone back, ids up to what a program has seen were
/// given: the log names that one.
fn leave_enough(tag: &Tag, id: u64, bound: &TagBound) -> Result<()> {
    if bound.gone_back_from.is_some_and(|seen| id < seen) {
        return Ok(());
    }
    let largest = largest_of(bound);
    let left = largest.saturating_add(1).saturating_sub(bound.next);
    let then = largest.saturating_sub(id).min(left);
    let uses_up = then == 0 || then < left / LEFT_PARTS_MAX;
    if id <= largest && then < left && uses_up {
        bail!(
            "{id} would leave tag \"{tag}\" {then} of the {left} ids that it has left, and a tag never goes back: say --use-up if that is meant"
        );
    }
    Ok(())
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use keywright_core::{Layout, Tag};
    use keywright_store::{Above, TagBound};

    use super::{AHEAD_MS_MAX, Advance, File, leave_enough};

    const NOW_MS: i64 = 1_795_219_200_000;

    fn above(of: &str, above: Option<u64>, above_ms: Option<i64>) -> anyhow::Result<Above> {
        let advance = Advance {
            file: File {
                config: PathBuf::new(),
            },
            of: of.to_owned(),
            store: None,
            above,
            above_ms,
            use_up: false,
        };
        advance.above(&Layout::parse("twitter")?, NOW_MS)
    }

    #[test]
    fn what_is_named_is_what_is_raised() -> anyhow::Result<()> {
        for name in ["orders", "segment:orders"] {
            let found = above(name, Some(7), None)?;
            assert!(matches!(found, Above::Tag { id: 7, .. }), "{found:?}");
        }
        let found = above("snowflake", Some(1 << 40), None)?;
        assert_eq!(found, Above::Snowflake { id: 1 << 40 });
        let unix_ms = NOW_MS + AHEAD_MS_MAX;
        let found = above("readable", None, Some(unix_ms))?;
        assert_eq!(found, Above::ReadableMoment { unix_ms });
        Ok(())
    }

    #[test]
    fn what_would_stop_ids_for_days_is_refused() {
        let late = NOW_MS + AHEAD_MS_MAX + 1;
        for (of, id, unix_ms) in [
            ("snowflake", None, Some(late)),
            ("snowflake", Some(u64::MAX >> 1), None),
            ("snowflake", Some(u64::MAX), None),
            ("readable", None, Some(late)),
            ("readable", Some(5), None),
            ("orders", None, Some(NOW_MS)),
            ("or ders", Some(5), None),
        ] {
            assert!(above(of, id, unix_ms).is_err(), "{of} {id:?} {unix_ms:?}");
        }
    }

    #[test]
    fn what_would_use_a_tag_up_is_refused() -> anyhow::Result<()> {
        const LARGEST: u64 = i64::MAX.unsigned_abs();
        let tag = Tag::parse("orders")?;
        for (next, id_max, id, is_refused) in [
            (5, Some(2_147_483_647), 2_147_483_647, true),
            (5, Some(2_147_483_647), 2_147_483_640, true),
            (5, Some(2_147_483_647), 2_000_000_000, false),
            (5, None, LARGEST, true),
            (5, None, LARGEST - 300, true),
            // Near its end already, or at it.
            (140, Some(150), 149, false),
            (140, Some(150), 150, true),
            (150, Some(150), 149, false),
            (151, Some(150), 150, false),
            (1_000, Some(150), 150, false),
            // The store has a better answer.
            (5, Some(150), 151, false),
        ] {
            let bound = TagBound {
                next,
                id_max,
                gone_back_from: None,
            };
            let refused = leave_enough(&tag, id, &bound).is_err();
            assert_eq!(refused, is_refused, "{next} {id_max:?} {id}");
        }
        Ok(())
    }

    /// The log says `advance orders --above 148`.
    #[test]
    fn what_programs_have_seen_is_not_refused() -> anyhow::Result<()> {
        let tag = Tag::parse("orders")?;
        let bound = TagBound {
            next: 5,
            id_max: Some(150),
            gone_back_from: Some(149),
        };
        for (id, is_refused) in [(5, false), (148, false), (150, true)] {
            let refused = leave_enough(&tag, id, &bound).is_err();
            assert_eq!(refused, is_refused, "{id}");
        }
        Ok(())
    }
}
