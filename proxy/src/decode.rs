//! What a key says of itself.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};
use keywright_core::{Layout, Zone, readable};
use serde::Serialize;

/// The parts of an id. As text, a line each; it is serialised with the same names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Decoded {
    /// A number with time, place and sequence.
    Snowflake {
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

/// Takes a snowflake or readable id apart.
///
/// # Errors
/// It is neither.
pub fn decode(id: &str, layout: &Layout) -> Result<Decoded> {
    if !id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        let parts = readable::parse(id, Zone::UTC)?;
        return Ok(Decoded::Readable {
            issued_at: iso(parts.unix_ms)?,
            issued_ms: parts.unix_ms,
            biz: parts.biz.as_str().to_owned(),
            bucket: parts.bucket.into(),
            sequence: parts.sequence.into(),
        });
    }
    let number = id
        .parse()
        .with_context(|| format!("{id} is no id: the largest is {}", i64::MAX))?;
    let parts = layout.decode(number)?;
    Ok(Decoded::Snowflake {
        issued_at: iso(parts.issued_at_ms)?,
        issued_ms: parts.issued_at_ms,
        datacenter: parts.datacenter_id,
        worker: parts.worker_id,
        sequence: parts.sequence,
    })
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
                issued_at,
                issued_ms,
                datacenter,
                worker,
                sequence,
            } => {
                let datacenter = datacenter.map_or_else(|| "-".to_owned(), |id| id.to_string());
                write!(
                    out,
                    "kind        snowflake\nissued_at   {issued_at}\nissued_ms   {issued_ms}\ndatacenter  {datacenter}\n\
                     worker      {worker}\nsequence    {sequence}"
                )
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

    #[test]
    fn a_published_id_is_decoded() -> Result<()> {
        // Twitter's epoch is 1288834974657; one millisecond later, datacenter 1, worker 2, sequence 3.
        let id = (1_u64 << 22 | 1 << 17 | 2 << 12 | 3).to_string();
        let report = decode(&id, &Layout::parse("twitter")?)?.to_string();
        for part in [
            "issued_at   2010-11-04T01:42:54.658Z",
            "1288834974658",
            "datacenter  1",
            "worker      2",
            "sequence    3",
        ] {
            assert!(report.contains(part), "{part} is not in\n{report}");
        }
        Ok(())
    }

    #[test]
    fn programs_read_the_same() -> Result<()> {
        let layout = Layout::parse("leaf")?;
        let json = serde_json::to_string(&decode("4194305", &layout)?)?;
        let expected = r#"{"kind":"snowflake","issued_at":"2010-11-04T01:42:54.658Z","issued_ms":1288834974658,"datacenter":null,"worker":0,"sequence":1}"#;
        assert_eq!(json, expected);
        Ok(())
    }

    /// What writes moments panics where ISO 8601 has none.
    #[test]
    fn a_layout_may_reach_beyond_the_calendar() -> Result<()> {
        let layout = Layout::parse("time=48,worker=5,sequence=10,epoch=1288834974657")?;
        for id in [i64::MAX, 253_402_300_800_000 << 15] {
            let refused = decode(&id.to_string(), &layout).map_err(|error| error.to_string());
            let refused = refused.unwrap_err();
            assert!(refused.contains("no calendar has"), "{refused}");
        }
        Ok(())
    }

    #[test]
    fn what_is_no_id_is_refused() -> Result<()> {
        let layout = Layout::parse("twitter")?;
        for text in ["", "-1", "99999999999999999999", "hello"] {
            assert!(decode(text, &layout).is_err(), "{text:?}");
        }
        Ok(())
    }
}
