//! `KEYWRIGHT ALTER name option value …`: what of a tag is to be otherwise.

use super::refusal::Refusal;
use super::word::{Word, integer};
use crate::request::Request;

/// The arguments before the first option.
const BEFORE_OPTIONS: usize = 3;

/// What of a tag is to be otherwise, as it was asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Altered<'a> {
    /// `STEP`.
    pub step: Option<i64>,
    /// `STEP_MIN`.
    pub step_min: Option<i64>,
    /// `STEP_MAX`.
    pub step_max: Option<i64>,
    /// `COVER_S`.
    pub cover_s: Option<i64>,
    /// `REFILL_PERCENT`.
    pub refill_percent: Option<i64>,
    /// `DESCRIPTION`.
    pub description: Option<&'a [u8]>,
}

impl<'a> Altered<'a> {
    /// Reads options, each with a value: one at least, and none twice.
    pub(super) fn parse(request: &Request<'a>) -> Result<Self, Refusal<'a>> {
        let mut altered = Self::default();
        let mut rest = request.arguments(BEFORE_OPTIONS);
        while let Some(option) = rest.next() {
            let value = rest.next().ok_or(Refusal::Arity("KEYWRIGHT"))?;
            let word = Word::of(option);
            if word.bytes() == b"DESCRIPTION" && altered.description.is_none() {
                altered.description = Some(value);
                continue;
            }
            let number = match word.bytes() {
                b"STEP" => &mut altered.step,
                b"STEP_MIN" => &mut altered.step_min,
                b"STEP_MAX" => &mut altered.step_max,
                b"COVER_S" => &mut altered.cover_s,
                b"REFILL_PERCENT" => &mut altered.refill_percent,
                _ => return Err(Refusal::Syntax("KEYWRIGHT ALTER")),
            };
            if number.is_some() {
                return Err(Refusal::Syntax("KEYWRIGHT ALTER"));
            }
            *number = Some(integer(value).ok_or(Refusal::NotInteger)?);
        }
        Ok(altered)
    }
}
