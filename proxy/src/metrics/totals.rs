//! Totals without labels. Each has its row here, and is counted where it happens, with [`Counters::count`](super::Counters::count).

use std::sync::atomic::{AtomicU64, Ordering};

/// Something that is counted from the start of the program on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Total {
    /// Clients that were accepted.
    Accepted,
    /// Clients that were turned away.
    TurnedAway,
    /// Schema refreshes that failed, each of one server.
    SchemaRefreshFailures,
}

impl Total {
    /// All of them, in the order in which they are served.
    pub const ALL: [Self; 3] = [
        Self::Accepted,
        Self::TurnedAway,
        Self::SchemaRefreshFailures,
    ];

    /// The name of the metric, and what it means.
    pub(super) const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Accepted => ("connections_total", "Clients that were accepted."),
            Self::TurnedAway => (
                "connections_refused_total",
                "Clients turned away at connections_max.",
            ),
            Self::SchemaRefreshFailures => (
                "schema_refresh_failures_total",
                "Times that a server's tables could not be read again.",
            ),
        }
    }
}

/// The values.
#[derive(Debug, Default)]
pub(super) struct Totals([AtomicU64; Total::ALL.len()]);

impl Totals {
    fn at(&self, total: Total) -> Option<&AtomicU64> {
        let place = Total::ALL.iter().position(|of| *of == total)?;
        self.0.get(place)
    }

    pub(super) fn count(&self, total: Total) {
        if let Some(value) = self.at(total) {
            value.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn value(&self, total: Total) -> u64 {
        self.at(total)
            .map_or(0, |value| value.load(Ordering::Relaxed))
    }
}
