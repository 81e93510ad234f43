//! Rounds: every contender is measured once per round, and what is compared is compared within a round, so that a
//! machine that is slower for a while is slower for all.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;

/// What one round measured of each contender.
pub(super) type Round<C, V> = BTreeMap<C, V>;

/// What all rounds measured.
pub(super) struct Rounds<C, V> {
    rounds: Vec<Round<C, V>>,
}

/// Measures all contenders in turn, `count` times. Each round begins with another one: whoever always came after the
/// same neighbour would inherit its caches.
///
/// # Errors
/// The first one of `measure`.
pub(super) fn interleave<C: Copy + Ord, V>(
    contenders: &[C],
    count: u16,
    mut measure: impl FnMut(C) -> Result<V>,
) -> Result<Rounds<C, V>> {
    let mut rounds = Vec::new();
    for number in 0..usize::from(count) {
        eprintln!("    round {} of {count}", number + 1);
        let skipped = number % contenders.len().max(1);
        let order = contenders.iter().cycle().skip(skipped);
        let mut round = Round::new();
        for &contender in order.take(contenders.len()) {
            round.insert(contender, measure(contender)?);
        }
        rounds.push(round);
    }
    Ok(Rounds { rounds })
}

impl<C, V> Rounds<C, V> {
    /// A figure computed in every round.
    pub(super) fn spread(&self, figure: impl Fn(&Round<C, V>) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(figure).collect())
    }
}

/// The median of a figure over all rounds, and its extremes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spread {
    pub(super) median: f64,
    low: f64,
    high: f64,
}

/// The figure in the middle; not a number when there is none.
pub(super) fn median(figures: Vec<f64>) -> f64 {
    Spread::of(figures).median
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Spread {
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or(f64::NAN);
        let count = figures.len();
        Spread {
            median: (at(count.saturating_sub(1) / 2) + at(count / 2)) / 2.0,
            low: at(0),
            high: at(count.saturating_sub(1)),
        }
    }

    /// How far the extreme that is further away is from the median, as a part of it.
    pub(super) fn off(&self) -> f64 {
        (self.high - self.median).max(self.median - self.low) / self.median.abs()
    }

    /// The lowest and the highest round.
    pub(super) fn extremes(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// The median alone, with that many decimals.
    pub(super) fn short(&self, decimals: usize) -> String {
        format!("{:.decimals$}", self.median)
    }
}

/// Median and extremes, with three decimals unless told otherwise.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(3);
        write!(
            f,
            "{:.decimals$} ({:.decimals$} … {:.decimals$})",
            self.median, self.low, self.high
        )
    }
}
