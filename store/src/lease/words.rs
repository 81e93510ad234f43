//! The words of one lease: that of its worker id, and the spare one where the layout has the bit.
//!
//! Both begin where the lease does and end at its bound, so whoever takes the lease over begins above both: the spare word needs no row of its
//! own. No other worker id sets the spare bit over this one's, so the ids of the two are apart.

use keywright_core::{ClockDecision, Layout, SnowflakeWord, TakeoverPlan, WorkerId};

/// The words of one lease. When the lease is lost, a taker that still holds them finds them drained, or takes states that were
/// durably its own before it was lost: whoever took over begins at the bound, above them.
#[derive(Debug)]
pub struct Words {
    own: PartedWord,
    /// For while the clock reads earlier than it did, where the policy says so.
    spare: Option<PartedWord>,
}

/// A word, and what its ids carry beside the state.
#[derive(Debug)]
pub struct PartedWord {
    /// To be composed with each state of the word.
    pub part: u64,
    /// The states.
    pub word: SnowflakeWord,
}

impl PartedWord {
    fn new(part: u64) -> Self {
        Self {
            part,
            word: SnowflakeWord::new(),
        }
    }
}

impl Words {
    /// Of a lease that was taken over, from where it begins up to its bound. `worker`: `None` for buckets of readable ids, which carry theirs as text.
    #[must_use]
    pub fn new(worker: Option<WorkerId>, layout: &Layout, plan: &TakeoverPlan) -> Self {
        let own = worker.map_or(0, |worker| layout.worker_part(worker, false));
        let words = Self {
            own: PartedWord::new(own),
            spare: worker
                .filter(|_| layout.has_spare())
                .map(|worker| PartedWord::new(layout.worker_part(worker, true))),
        };
        words.publish(plan.start_state, plan.hi_state);
        words
    }

    fn all(&self) -> impl Iterator<Item = &SnowflakeWord> {
        std::iter::once(&self.own)
            .chain(&self.spare)
            .map(|its| &its.word)
    }

    /// The one that keys come from now; `None`: none do.
    #[inline]
    #[must_use]
    pub fn of(&self, decision: ClockDecision) -> Option<&PartedWord> {
        match decision {
            ClockDecision::Issue => Some(&self.own),
            ClockDecision::IssueSpare => self.spare.as_ref(),
            ClockDecision::WaitMs(_) | ClockDecision::Refuse { behind_ms: _ } => None,
        }
    }

    /// Allows states up to a bound that is durable, none below `start_state`.
    pub fn publish(&self, start_state: u64, hi_state: u64) {
        self.all()
            .for_each(|word| word.publish(start_state, hi_state));
    }

    /// Nothing more is taken. The first state above all that was.
    pub fn drain(&self) -> u64 {
        self.all().for_each(|word| {
            word.drain();
        });
        self.next()
    }

    /// The first state above all that was taken.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.all().map(SnowflakeWord::next).max().unwrap_or(0)
    }

    /// The bound.
    #[must_use]
    pub fn hi(&self) -> u64 {
        self.own.word.hi()
    }
}
