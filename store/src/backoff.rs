//! How long to wait before the store is asked again.

/// Doubling pauses between two limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    ms_min: u64,
    ms_max: u64,
    next_ms: u64,
}

impl Backoff {
    /// Begins with `ms_min` and doubles up to `ms_max`.
    pub fn new(ms_min: u64, ms_max: u64) -> Self {
        Self {
            ms_min,
            ms_max: ms_max.max(ms_min),
            next_ms: ms_min,
        }
    }

    /// The pause after one more failure, milliseconds.
    pub fn failed(&mut self) -> u64 {
        let pause_ms = self.next_ms;
        self.next_ms = pause_ms.saturating_mul(2).clamp(self.ms_min, self.ms_max);
        pause_ms
    }

    /// The store answered: the next failure begins anew.
    pub fn succeeded(&mut self) {
        self.next_ms = self.ms_min;
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;

    #[test]
    fn doubles_up_to_its_limit_and_begins_anew() {
        let mut backoff = Backoff::new(50, 300);
        let pauses: Vec<u64> = (0..5).map(|_| backoff.failed()).collect();
        assert_eq!(pauses, [50, 100, 200, 300, 300]);
        backoff.succeeded();
        assert_eq!(backoff.failed(), 50);
    }
}
