//! Keys as they are asked for, and as they are spread over a statement's rows.

use keywright_core::{Cause, KeyBatch};

use crate::connection::Connection;
use crate::job::Turn;
use crate::rules::{Rule, SeveralRows};
use crate::step::{KeyFailure, KeyRequest, Step};

/// The keys of a statement that goes out once it has them.
#[derive(Debug)]
pub(crate) enum Awaited {
    /// The driver looks for them.
    Asked,
    /// It has them, or knows why there are none.
    Here(Result<KeyBatch, KeyFailure>),
}

impl Awaited {
    /// Whose turn it is meanwhile.
    pub(crate) fn turn(&self) -> Turn {
        match self {
            Self::Asked => Turn::Keys,
            Self::Here(_) => Turn::Command,
        }
    }

    /// What the driver has found; `None`: it has not found anything yet.
    pub(crate) fn take(&mut self) -> Option<Result<KeyBatch, KeyFailure>> {
        match std::mem::replace(self, Self::Asked) {
            Self::Asked => None,
            Self::Here(keys) => Some(keys),
        }
    }
}

impl Connection {
    /// Keys for so many rows, spaced as the session's auto_increment_increment says, unless they have no spacing.
    pub(crate) fn keys_step(&self, rule: usize, rows: u64) -> Step {
        let contiguous = self.has_spaced_keys(rule);
        let increment = match contiguous {
            true => self.context.increment,
            false => 1,
        };
        let count = rows
            .saturating_sub(1)
            .saturating_mul(increment)
            .saturating_add(1);
        Step::Keys(KeyRequest {
            rule: self.rules.configured(rule),
            count,
            contiguous,
        })
    }

    /// Whether several keys of a rule may be asked for only if they follow from the first.
    fn has_spaced_keys(&self, rule: usize) -> bool {
        let rule = self.rules.rules().get(rule);
        rule.is_none_or(|rule| match rule.several_rows {
            SeveralRows::Spaced | SeveralRows::Refused => true,
            SeveralRows::Apart => false,
        })
    }

    /// The spacing of one statement's keys, if it is known: a rule may leave room for others' keys between its own.
    pub(crate) fn spacing_of(&self, rule: usize) -> u64 {
        let apart = self.apart.get(&rule).copied().unwrap_or(1);
        common_multiple(apart, self.context.increment)
    }

    /// The keys as they are spread over the rows, checked against the rule.
    pub(crate) fn spread(
        &self,
        rule: &Rule,
        keys: KeyBatch,
        rows: u64,
    ) -> Result<KeyBatch, KeyFailure> {
        let keys = match keys {
            KeyBatch::Numbers { first, spacing, .. } => KeyBatch::Numbers {
                first,
                spacing: common_multiple(spacing, self.context.increment),
                count: rows,
            },
            KeyBatch::Listed(mut numbers) => {
                numbers.truncate(usize::try_from(rows).unwrap_or(usize::MAX));
                KeyBatch::Listed(numbers)
            }
            KeyBatch::Texts(mut texts) => {
                texts.truncate(usize::try_from(rows).unwrap_or(usize::MAX));
                KeyBatch::Texts(texts)
            }
            KeyBatch::Bytes(mut bytes) => {
                bytes.truncate(usize::try_from(rows).unwrap_or(usize::MAX));
                KeyBatch::Bytes(bytes)
            }
        };
        self.in_bits(rule, keys, rows)
    }

    /// The keys of so many rows, if they are not too large for the rule.
    pub(crate) fn in_bits(
        &self,
        rule: &Rule,
        keys: KeyBatch,
        rows: u64,
    ) -> Result<KeyBatch, KeyFailure> {
        let largest = match &keys {
            KeyBatch::Listed(numbers) => numbers.iter().max().copied(),
            KeyBatch::Numbers { .. } | KeyBatch::Texts(_) | KeyBatch::Bytes(_) => {
                keys.number(rows.saturating_sub(1))
            }
        };
        match largest.filter(|key| key.checked_shr(rule.bits_max).unwrap_or(0) > 0) {
            None => Ok(keys),
            Some(key) => Err(KeyFailure {
                cause: Cause::TagExhausted,
                message: format!("keywright: key {key} has more than {} bits", rule.bits_max),
            }),
        }
    }
}

/// The spacing of keys where the source's is `apart` and a driver expects `increment`. If the source's does not divide the driver's,
/// no spacing suits the driver, and the source's is taken.
fn common_multiple(apart: u64, increment: u64) -> u64 {
    let (apart, increment) = (apart.max(1), increment.max(1));
    let (mut divisor, mut rest) = (apart, increment);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (apart / divisor).saturating_mul(increment)
}
