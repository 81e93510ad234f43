//! How much the benchmark of the extension measures.

/// How much each part measures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) rounds: u16,
    /// Calls per function and round.
    pub(super) calls: u32,
    /// The same for the function that takes microseconds.
    pub(super) calls_slow: u32,
    /// Ids that all connections make together per function and round.
    pub(super) ids_together: u32,
    /// Duration of one run of inserts, seconds.
    pub(super) insert_s: u32,
    /// Duration of one run under load, seconds.
    pub(super) latency_s: u32,
}

impl Sizes {
    pub(super) fn new(quick: bool, rounds: Option<u16>) -> Sizes {
        if quick {
            Sizes {
                rounds: rounds.unwrap_or(3),
                calls: 500_000,
                calls_slow: 10_000,
                ids_together: 400_000,
                insert_s: 1,
                latency_s: 1,
            }
        } else {
            Sizes {
                rounds: rounds.unwrap_or(7),
                calls: 5_000_000,
                calls_slow: 50_000,
                ids_together: 4_000_000,
                insert_s: 1,
                latency_s: 2,
            }
        }
    }
}
