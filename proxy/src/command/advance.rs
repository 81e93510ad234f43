//! `advance`: bounds of the store raised by the word of somebody who knows how far ids were given.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;
use keywright_core::{Layout, Tag};
use keywright_store::Above;

use super::{File, of_store, runtime};

/// A moment further ahead of the clock is taken for a mistake, milliseconds: until it has come there would be no keys.
const AHEAD_MS_MAX: i64 = 86_400_000;

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
        let next = runtime.block_on(async {
            match (&above, self.use_up) {
                (Above::Tag { tag, id }, true) => keys.advance_using_up(tag, *id).await,
                (above, _) => keys.advance(above).await,
            }
        });
        let next = next.map_err(|failure| anyhow::anyhow!("{failure}"))?;
        match above {
            Above::Tag { tag, id: _ } => {
                // It is raised already, whatever the store says to this.
                let bound = runtime.block_on(keys.tag_bound(&tag)).unwrap_or_default();
                let largest = bound.and_then(|its| its.id_max).unwrap_or(ID_MAX);
                if next > largest {
                    println!(
                        "tag \"{tag}\" has no ids left: {largest} is its largest; programs use up first what they have reserved before"
                    );
                    return Ok(());
                }
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

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use keywright_core::Layout;
    use keywright_store::Above;

    use super::{AHEAD_MS_MAX, Advance, File};

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
}
