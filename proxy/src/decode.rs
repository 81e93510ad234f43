//! What a key says of itself.

use anyhow::{Context, Result};
use keywright_core::{Layout, Zone, readable};

/// The parts of a snowflake or readable id, one on a line.
///
/// # Errors
/// It is neither.
pub fn decode(id: &str, layout: &Layout) -> Result<String> {
    if !id.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        let parts = readable::parse(id, Zone::UTC)?;
        return Ok(format!(
            "kind        readable\nissued_ms   {}\nbiz         {}\nbucket      {}\nsequence    {}",
            parts.unix_ms,
            parts.biz.as_str(),
            parts.bucket,
            parts.sequence
        ));
    }
    let number = id
        .parse()
        .with_context(|| format!("{id} is not a 64-bit number"))?;
    let parts = layout.decode(number)?;
    let datacenter = parts
        .datacenter_id
        .map_or_else(|| "-".to_owned(), |datacenter| datacenter.to_string());
    Ok(format!(
        "kind        snowflake\nissued_ms   {}\ndatacenter  {datacenter}\nworker      {}\nsequence    {}",
        parts.issued_at_ms, parts.worker_id, parts.sequence
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_id_is_decoded() -> Result<()> {
        // Twitter's epoch is 1288834974657; one millisecond later, datacenter 1, worker 2, sequence 3.
        let id = (1_u64 << 22 | 1 << 17 | 2 << 12 | 3).to_string();
        let report = decode(&id, &Layout::parse("twitter")?)?;
        for part in [
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
    fn what_is_no_id_is_refused() -> Result<()> {
        let layout = Layout::parse("twitter")?;
        for text in ["", "-1", "99999999999999999999", "hello"] {
            assert!(decode(text, &layout).is_err(), "{text:?}");
        }
        Ok(())
    }
}
