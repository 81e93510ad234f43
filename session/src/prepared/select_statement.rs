//! What is kept of a prepared INSERT … SELECT.

use std::collections::BTreeSet;
use std::sync::Arc;

use keywright_rewrite::{InQuery, QueryPlan};
use keywright_wire::params::Type;

use crate::budget::Held;
use crate::server::text_modes::TextModes;

/// A prepared INSERT … SELECT.
#[derive(Debug)]
pub(crate) struct SelectStatement {
    pub(crate) rule: usize,
    pub(crate) text: Vec<u8>,
    /// As of a prepared INSERT of rows.
    pub(crate) database: Option<Vec<u8>>,
    /// As of a prepared INSERT of rows.
    pub(crate) read_in: TextModes,
    /// The text's memory.
    pub(crate) _held: Held,
    pub(crate) plan: Arc<QueryPlan>,
    /// As of a prepared INSERT of rows.
    pub(crate) schema: u64,
    pub(crate) is_passed: bool,
    /// Whether a 0 was no key when it was prepared.
    pub(crate) zero_is_value: Option<bool>,
    /// The number of the first parameter that the client does not know of.
    pub(crate) at: u16,
    pub(crate) injected: &'static [InQuery],
    pub(crate) types: Option<Vec<Type>>,
    /// Parameters whose values were sent as long data.
    pub(crate) long_data: BTreeSet<u16>,
    pub(crate) sees: bool,
    /// It asks for ROW_COUNT().
    pub(crate) counts: bool,
}

impl SelectStatement {
    /// How many parameters the client knows of.
    pub(crate) fn parameters(&self) -> usize {
        usize::try_from(self.plan.parameters()).unwrap_or(usize::MAX)
    }

    /// A parameter's value is sent as long data: where the server has that parameter.
    pub(crate) fn add_long_data(&mut self, index: u16) -> u16 {
        self.long_data.insert(index);
        let more = u16::try_from(self.injected.len()).unwrap_or(u16::MAX);
        index.saturating_add(if index >= self.at { more } else { 0 })
    }

    pub(crate) fn injected(&self) -> Vec<u16> {
        (self.at..).take(self.injected.len()).collect()
    }
}
