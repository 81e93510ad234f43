//! What was seen.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What a soak without a fault saw.
#[derive(Debug, Clone)]
pub struct KeySpaceReport {
    /// Plays it again.
    pub seed: u64,
    /// How long it took.
    pub took: Duration,
    /// Ids that clients saw, all distinct in their key spaces.
    pub ids: u64,
    /// Runs of consecutive ones that they were kept as.
    pub runs: usize,
    /// Rows of all tables at the end.
    pub rows: u64,
    /// What happened, and how often.
    pub events: BTreeMap<&'static str, u32>,
    /// SQLSTATEs, error numbers and codes that clients met, all legitimate, and how often.
    pub refusals: BTreeMap<String, u64>,
}

impl fmt::Display for KeySpaceReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "seed          {}", self.seed)?;
        writeln!(out, "seconds       {}", self.took.as_secs())?;
        writeln!(out, "ids           {} (in {} runs)", self.ids, self.runs)?;
        writeln!(out, "rows          {}", self.rows)?;
        let events = self.events.iter();
        let events: Vec<String> = events
            .map(|(kind, times)| format!("{kind} {times}"))
            .collect();
        writeln!(out, "events        {}", events.join(", "))?;
        let refusals = self.refusals.iter();
        let refusals: Vec<String> = refusals
            .map(|(state, times)| format!("{state} × {times}"))
            .collect();
        writeln!(out, "refusals      {}", refusals.join(", "))?;
        write!(out, "duplicates    0")
    }
}
