//! The set of clauses that a query has.

/// A clause of a query, or what counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Clause {
    /// WITH in front.
    With = 1 << 0,
    /// DISTINCT, DISTINCTROW.
    Distinct = 1 << 1,
    /// An option that may stand at the beginning of a statement's first SELECT only.
    Option = 1 << 2,
    /// FROM anything but DUAL.
    From = 1 << 3,
    /// GROUP BY.
    GroupBy = 1 << 4,
    /// ROLLUP or the like: rows in which what rows are grouped by is NULL.
    Rollup = 1 << 5,
    /// HAVING.
    Having = 1 << 6,
    /// OVER, WINDOW or QUALIFY.
    Window = 1 << 7,
    /// An aggregate function in the select list, outside subqueries: it groups without GROUP BY.
    Aggregate = 1 << 8,
    /// ORDER BY.
    OrderBy = 1 << 9,
    /// Rows are left out in front.
    Offset = 1 << 10,
    /// UNION, EXCEPT, INTERSECT.
    Union = 1 << 11,
    /// FOR UPDATE and the like: what has to stay last.
    Locking = 1 << 12,
}

/// Any number of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Clauses(u16);

impl Clauses {
    /// These.
    pub(crate) const fn of(clauses: &[Clause]) -> Self {
        let mut bits = 0;
        let mut rest = clauses;
        while let [first, others @ ..] = rest {
            bits |= *first as u16;
            rest = others;
        }
        Self(bits)
    }

    /// Adds one.
    pub(crate) fn insert(&mut self, clause: Clause) {
        self.0 |= clause as u16;
    }

    /// Adds one if it is there.
    pub(crate) fn insert_if(&mut self, clause: Clause, is_there: bool) {
        if is_there {
            self.insert(clause);
        }
    }

    /// Adds all of another set.
    pub(crate) fn add(&mut self, others: Self) {
        self.0 |= others.0;
    }

    /// Those that are in both.
    pub(crate) fn among(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Whether it has one.
    pub(crate) fn has(self, clause: Clause) -> bool {
        self.0 & clause as u16 != 0
    }

    /// Whether it has any of these.
    pub(crate) fn has_any(self, others: Self) -> bool {
        self.among(others) != Self::default()
    }

    /// Whether it has all of these.
    pub(crate) fn has_all(self, others: Self) -> bool {
        self.among(others) == others
    }
}

#[cfg(test)]
mod tests {
    use super::{Clause, Clauses};

    #[test]
    fn a_set_has_what_was_put_in() {
        let both = Clauses::of(&[Clause::With, Clause::Locking]);
        let mut set = Clauses::default();
        assert!(!set.has_any(both) && set.has_all(Clauses::default()));
        set.insert_if(Clause::Locking, false);
        assert_eq!(set, Clauses::default());
        set.insert_if(Clause::Locking, true);
        assert!(set.has(Clause::Locking) && !set.has(Clause::With));
        assert!(set.has_any(both) && !set.has_all(both));
        set.add(both);
        assert!(set.has_all(both) && set == both);
        set.insert(Clause::From);
        assert!(set.has(Clause::From) && set.among(both) == both);
    }
}
