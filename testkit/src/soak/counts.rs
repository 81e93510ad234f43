//! What happened, counted.

use std::fmt;
use std::time::Duration;

/// How often each kind of event happened.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// The server or a backend killed, or stopped without a checkpoint; promotions and crashes before a commit are among them.
    pub crashes: u32,
    /// The clock set, running or before a start.
    pub clock_steps: u32,
    /// Changes of identity that were rolled back, by whatever.
    pub rollbacks: u32,
    /// Changes of identity that were committed.
    pub commits: u32,
    /// Time zones of readable ids that were changed for good; among those that were committed.
    pub zones: u32,
    /// Changes that the server refused.
    pub refused: u32,
    /// Databases dropped.
    pub drops: u32,
    /// Databases copied.
    pub copies: u32,
    /// Standbys promoted.
    pub promotions: u32,
    /// Statements cancelled and sessions terminated.
    pub interrupts: u32,
}

/// What a soak without a fault saw.
#[derive(Debug, Clone)]
pub struct Report {
    /// Plays it again.
    pub seed: u64,
    /// How long it took.
    pub took: Duration,
    /// Ids that clients saw, all distinct in their key spaces.
    pub ids: u64,
    /// Runs of consecutive ones that they were kept as.
    pub runs: usize,
    /// What happened.
    pub counts: Counts,
    /// SQLSTATEs that clients met, all legitimate, and how often.
    pub refusals: Vec<(String, u64)>,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        writeln!(out, "seed          {}", self.seed)?;
        writeln!(out, "seconds       {}", self.took.as_secs())?;
        writeln!(out, "ids           {} (in {} runs)", self.ids, self.runs)?;
        writeln!(out, "crashes       {}", counts.crashes)?;
        writeln!(out, "clock steps   {}", counts.clock_steps)?;
        writeln!(
            out,
            "identities    {} rolled back, {} committed ({} of them time zones), {} refused",
            counts.rollbacks, counts.commits, counts.zones, counts.refused
        )?;
        writeln!(out, "drops         {}", counts.drops)?;
        writeln!(out, "copies        {}", counts.copies)?;
        writeln!(out, "promotions    {}", counts.promotions)?;
        writeln!(out, "interrupts    {}", counts.interrupts)?;
        let refusals: Vec<_> = self
            .refusals
            .iter()
            .map(|(state, times)| format!("{state} × {times}"))
            .collect();
        writeln!(out, "refusals      {}", refusals.join(", "))?;
        write!(out, "duplicates    0")
    }
}
