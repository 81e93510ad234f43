//! What a key says of itself.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use keywright_core::{Layout, Zone, readable};
use serde::Serialize;

/// The parts of an id. As text, a line each; it is serialised with the same names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Decoded {
    /// A number with time, place and sequence.
    Snowflake {
        /// The layout that it is read by.
        layout: String,
        /// When it was issued, in UTC, as ISO 8601 writes it.
        issued_at: String,
        /// The same, milliseconds since 1970.
        issued_ms: i64,
        /// The datacenter, in layouts that have one.
        datacenter: Option<u32>,
        /// The worker id.
        worker: u32,
        /// Which of its tick.
        sequence: u64,
        /// That it may be something else.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'static str>,
    },
    /// A text with time, business, bucket and sequence.
    Readable {
        /// When it was issued, in UTC, as ISO 8601 writes it.
        issued_at: String,
        /// The same, milliseconds since 1970.
        issued_ms: i64,
        /// The business code.
        biz: String,
        /// The bucket of the program that issued it.
        bucket: u32,
        /// Which of its moment.
        sequence: u64,
    },
}

/// What is said of a number whose time is early in the layout, as that of small numbers, or is still to come.
const MAY_BE_OTHER: &str =
    "an id of a tag looks so, too, and carries no time; by another layout the time is another";
const DAY_MS: i64 = 86_400_000;
const YEAR_MS: i64 = 365 * DAY_MS;
/// Characters of what is no id that a message repeats.
const CHARACTERS_SHOWN_MAX: usize = 64;

/// Takes a snowflake or readable id apart. `now_ms`: the wall clock, unix milliseconds.
///
/// # Errors
/// It is neither.
pub fn decode(id: &str, layout: &Layout, now_ms: i64) -> Result<Decoded> {
    if id.len() == readable::ID_BYTES && id.is_ascii() {
        let parts = readable::parse(id, Zone::UTC)?;
        return Ok(Decoded::Readable {
            issued_at: iso(parts.unix_ms)?,
            issued_ms: parts.unix_ms,
            biz: parts.biz.as_str().to_owned(),
            bucket: parts.bucket.into(),
            sequence: parts.sequence.into(),
        });
    }
    let shown: String = id.chars().take(CHARACTERS_SHOWN_MAX).collect();
    if is_uuid(id) {
        bail!("{shown} is a UUID, and only snowflake and readable ids are decoded");
    }
    if !is_number(id) {
        bail!(
            "{shown:?} is neither a number nor a readable id, which has {} characters",
            readable::ID_BYTES
        );
    }
    let Ok(number) = id.parse() else {
        bail!("{shown} is no id: the largest is {}", i64::MAX);
    };
    let parts = layout.decode(number)?;
    let is_early = parts.issued_at_ms.saturating_sub(layout.epoch_ms()) < YEAR_MS;
    // Ids may run ahead of the clock a little.
    let is_to_come = parts.issued_at_ms.saturating_sub(now_ms) > DAY_MS;
    Ok(Decoded::Snowflake {
        layout: layout.to_string(),
        issued_at: iso(parts.issued_at_ms)?,
        issued_ms: parts.issued_at_ms,
        datacenter: parts.datacenter_id,
        worker: parts.worker_id,
        sequence: parts.sequence,
        note: (is_early || is_to_come).then_some(MAY_BE_OTHER),
    })
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// 32 hexadecimal digits, with hyphens where UUIDs have them or without any.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let has_form = lengths == [32] || lengths == [8, 4, 4, 4, 12];
    has_form && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The first moment of the year 10000: ISO 8601 has no way to write it.
const YEAR_10000_MS: i64 = 253_402_300_800_000;

/// A moment in UTC, in milliseconds since 1970.
///
/// # Errors
/// It lies beyond the year 9999, which a layout with many bits of time has ids of, or before 1970.
fn iso(unix_ms: i64) -> Result<String> {
    let since_ms = u64::try_from(unix_ms).ok();
    let within = since_ms.filter(|_| unix_ms < YEAR_10000_MS);
    let at = within.and_then(|ms| UNIX_EPOCH.checked_add(Duration::from_millis(ms)));
    let at = at.context("it would be of a moment that no calendar has")?;
    Ok(humantime::format_rfc3339_millis(at).to_string())
}

impl fmt::Display for Decoded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snowflake {
                layout,
                issued_at,
                issued_ms,
                datacenter,
                worker,
                sequence,
                note,
            } => {
                let datacenter = datacenter.map_or_else(|| "-".to_owned(), |id| id.to_string());
                write!(
                    out,
                    "kind        snowflake\nlayout      {layout}\nissued_at   {issued_at}\nissued_ms   {issued_ms}\n\
                     datacenter  {datacenter}\nworker      {worker}\nsequence    {sequence}"
                )?;
                match note {
                    Some(note) => write!(out, "\nnote        {note}"),
                    None => Ok(()),
                }
            }
            Self::Readable {
                issued_at,
                issued_ms,
                biz,
                bucket,
                sequence,
            } => write!(
                out,
                "kind        readable\nissued_at   {issued_at}\nissued_ms   {issued_ms}\nbiz         {biz}\n\
                 bucket      {bucket}\nsequence    {sequence}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21.
    const NOW_MS: i64 = 1_795_219_200_000;

    /// By Twitter's layout.
    fn refused(id: &str) -> Result<String> {
        let decoded = decode(id, &Layout::parse("twitter")?, NOW_MS);
        Ok(decoded.map_err(|error| error.to_string()).unwrap_err())
    }

    #[test]
    fn a_published_id_is_decoded() -> Result<()> {
        // Twitter's epoch is 1288834974657; two years later, datacenter 1, worker 2, sequence 3.
        let ms: u64 = 2 * 365 * 86_400_000;
        let id = (ms << 22 | 1 << 17 | 2 << 12 | 3).to_string();
        let report = decode(&id, &Layout::parse("twitter")?, NOW_MS)?.to_string();
        assert_eq!(
            report,
            "kind        snowflake\nlayout      twitter\nissued_at   2012-11-03T01:42:54.657Z\nissued_ms   1351906974657\n\
             datacenter  1\nworker      2\nsequence    3"
        );
        Ok(())
    }

    /// Every number is one of the layout.
    #[test]
    fn a_number_that_may_be_of_a_tag_is_said_to_be() -> Result<()> {
        let layout = Layout::parse("twitter")?;
        let has_note = |id: i64| -> Result<bool> {
            let decoded = decode(&id.to_string(), &layout, NOW_MS)?;
            Ok(decoded
                .to_string()
                .contains("note        an id of a tag looks so, too"))
        };
        for id in [0, 12, 5_000_000, 1_734_567_890_123, 1_000_000_000_000_000] {
            assert!(has_note(id)?, "{id}");
        }
        assert!(!has_note(2_068_951_234_567_890_944)?);
        // Ids begin up to 20 s ahead of the clock.
        assert!(!has_note(layout.floor(NOW_MS + 20_000)?)?);
        assert!(has_note(layout.floor(NOW_MS + 2 * DAY_MS)?)?);
        assert!(has_note(i64::MAX)?);
        Ok(())
    }

    #[test]
    fn programs_read_the_same() -> Result<()> {
        let layout = Layout::parse("leaf")?;
        let json = |id: &str| -> Result<String> {
            Ok(serde_json::to_string(&decode(id, &layout, NOW_MS)?)?)
        };
        let expected = r#"{"kind":"snowflake","layout":"leaf","issued_at":"2026-06-22T06:56:28.233Z","issued_ms":1782111388233,"datacenter":null,"worker":102,"sequence":2048}"#;
        assert_eq!(json("2068951234567890944")?, expected);
        let early = json("4194305")?;
        let note = format!(r#""worker":0,"sequence":1,"note":"{MAY_BE_OTHER}"}}"#);
        assert!(early.ends_with(&note), "{early}");
        Ok(())
    }

    /// What writes moments panics where ISO 8601 has none.
    #[test]
    fn a_layout_may_reach_beyond_the_calendar() -> Result<()> {
        let layout = Layout::parse("time=48,worker=5,sequence=10,epoch=1288834974657")?;
        for id in [i64::MAX, 253_402_300_800_000 << 15] {
            let refused =
                decode(&id.to_string(), &layout, NOW_MS).map_err(|error| error.to_string());
            let refused = refused.unwrap_err();
            assert!(refused.contains("no calendar has"), "{refused}");
        }
        Ok(())
    }

    #[test]
    fn what_is_no_id_is_refused_by_what_it_is() -> Result<()> {
        let neither = "is neither a number nor a readable id, which has 27 characters";
        let uuid = "is a UUID, and only snowflake and readable ids are decoded";
        for (text, told) in [
            ("", neither),
            ("-", neither),
            ("hello", neither),
            ("2068951234567890944,", neither),
            ("12-13", neither),
            ("01a22e9b-b694-7278-b6c8-0123456789ab", uuid),
            ("01a22e9bb6947278b6c80123456789ab", uuid),
            ("11111111-1111-1111-1111-111111111111", uuid),
            ("-1", "id -1 is negative"),
            ("99999999999999999999", "the largest is 9223372036854775807"),
            ("2611211230001__ORD_00000001", "is not a moment"),
        ] {
            let refused = refused(text)?;
            assert!(refused.contains(told), "{text:?}: {refused}");
        }
        let long = refused(&"x".repeat(100_000))?;
        assert!(long.len() < 200, "{long}");
        Ok(())
    }

    #[test]
    fn a_readable_id_may_have_digits_only() -> Result<()> {
        let layout = Layout::parse("twitter")?;
        let decoded = decode("261121123000123012300000001", &layout, NOW_MS)?.to_string();
        for part in [
            "kind        readable",
            "2026-11-21T12:30:00.123Z",
            "biz         0123",
        ] {
            assert!(decoded.contains(part), "{decoded}");
        }
        Ok(())
    }
}
