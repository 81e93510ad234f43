//! How many rows a query can have, and where their keys can go, by its clauses.

use crate::modes::Flavour;
use crate::plan::computed_behind::Behind;
use crate::plan::select_plan::Spread;
use crate::read::query::clause::{Clause, Clauses};
use crate::read::query::outline::{Limit, Outline, Tail, with};
use crate::refusal::{SelectConstruct, Unread};

/// Clauses behind which rows are others, or come in another order, than they were read in.
const REORDERING: Clauses = Clauses::of(&[
    Clause::Distinct,
    Clause::GroupBy,
    Clause::Having,
    Clause::OrderBy,
    Clause::Union,
    Clause::Window,
    Clause::Aggregate,
    Clause::Offset,
]);

impl Outline {
    /// Behind the select list.
    pub(super) fn list_end(&self) -> usize {
        let last = self.parts.first().and_then(|items| items.last());
        last.map_or(self.end, |item| item.end)
    }

    /// How many rows there can be at most, if that is known.
    pub(super) fn rows_max(&self) -> Option<u64> {
        const GROUPS: Clauses = Clauses::of(&[Clause::GroupBy, Clause::Window]);
        let clauses = self.clauses;
        let is_one_group = clauses.has(Clause::Aggregate) && !clauses.has_any(GROUPS);
        let is_single = !clauses.has(Clause::Union) && (!clauses.has(Clause::From) || is_one_group);
        match is_single {
            true => Some(1),
            false => self.limit.rows(),
        }
    }

    /// The parentheses around it that are left out where its keys go there: a table of WITH cannot be in them, and on MariaDB no WITH behind
    /// columns that are listed now.
    pub(super) fn left_out(
        &self,
        spread: Spread,
        flavour: Flavour,
        is_behind_columns: bool,
    ) -> Option<(usize, usize)> {
        let has_with = flavour == Flavour::MariaDb && self.clauses.has(Clause::With);
        let must_be_left_out = spread == Spread::Around || has_with;
        // MariaDB refuses WITH in parentheses behind a list of columns by itself.
        let is_refused = is_behind_columns && has_with;
        let can_be_left_out = self.tail != Tail::OnDuplicateReturning && !is_refused;
        self.parentheses
            .filter(|_| must_be_left_out && can_be_left_out)
    }

    /// What cannot become part of a table of WITH: what has to stand first or last, and what refers to the query's tables from outside.
    fn must_stay(&self) -> bool {
        let clauses = self.clauses;
        let is_own = match self.tail {
            Tail::None => true,
            Tail::OnDuplicate => self.has_own_tail,
            Tail::OnDuplicateReturning => false,
        };
        clauses.has(Clause::Option)
            || clauses.has_all(Clauses::of(&[Clause::Locking, Clause::Union]))
            || !is_own
    }

    /// Whether some value may be another after a temporary table has held it; not of those that it does not hold.
    fn may_lose_digits(&self, behind: &[Behind]) -> bool {
        let items = self.parts.iter().flatten().enumerate();
        let mut held = items.filter(|(index, _)| behind.iter().all(|value| value.index != *index));
        held.any(|(_, item)| item.may_lose_digits)
    }

    /// Where keys can go. `behind`: values that no temporary table holds.
    pub(super) fn spread(
        &self,
        flavour: Flavour,
        is_behind_columns: bool,
        behind: &[Behind],
    ) -> Result<Spread, Unread> {
        let is_union = self.clauses.has(Clause::Union);
        if !is_union && self.rows_max().is_some_and(|rows| rows <= 1) {
            return Ok(Spread::One);
        }
        let mysql = flavour == Flavour::MySql;
        // MySQL numbers all rows before it takes the first ones.
        let is_cut = mysql && self.limit != Limit::None;
        let plain = !self.clauses.has_any(REORDERING) && !is_cut;
        if plain {
            // There numbering needs a temporary table, in which this one loses digits.
            return if mysql && self.has_unix_timestamp {
                with(SelectConstruct::UnixTimestamp)
            } else {
                Ok(Spread::Inside)
            };
        }
        if self.may_lose_digits(behind) {
            return with(SelectConstruct::ComputedReordered);
        }
        let left_out = self.left_out(Spread::Around, flavour, is_behind_columns);
        if self.parentheses.is_some() && left_out.is_none() {
            // MariaDB reads no WITH there.
            return with(SelectConstruct::ParenthesesReordered);
        }
        if self.must_stay() {
            return with(SelectConstruct::MustStayReordered);
        }
        Ok(Spread::Around)
    }
}
