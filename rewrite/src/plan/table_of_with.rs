//! The query as a table of WITH, whose rows are numbered.

use std::ops::Range;

use crate::modes::Flavour;
use crate::plan::computed_behind::Behind;
use crate::plan::row_sites::KeyPosition;
use crate::plan::select_plan::QueryPlan;
use crate::read::query::clause::Clause;
use crate::read::query::outline::{Limit, Outline};
use crate::refusal::{Unread, Unsupported};

/// The query whose rows get keys.
#[derive(Clone, Copy)]
pub(super) struct Query<'a> {
    pub(super) outline: &'a Outline,
    pub(super) text: &'a [u8],
    /// Values that are computed behind the table of WITH.
    pub(super) behind: &'a [Behind],
}

impl Query<'_> {
    /// Makes the query a table of WITH.
    pub(super) fn put_around(
        self,
        place: KeyPosition,
        flavour: Flavour,
        plan: &mut QueryPlan,
    ) -> Result<(), Unread> {
        let outline = self.outline;
        let (columns, at) = match place {
            KeyPosition::Absent {
                values: Some(values),
            } => (values, None),
            KeyPosition::At { index, values } => (values, Some(index)),
            KeyPosition::Absent { values: None } => return Err(Unsupported::ColumnsUnknown.into()),
        };
        if columns == 0 {
            return Err(Unread::Refused);
        }
        // A list of columns renames what MariaDB looks for then. Without one, no two columns may have the same name.
        let keeps_names = flavour == Flavour::MariaDb
            && outline.is_ordered_by_name
            && outline.clauses.has(Clause::Union);
        let mut open = b"WITH keywright_rows ".to_vec();
        if !keeps_names {
            open.push(b'(');
            write_columns(self.first_of(columns), &mut open);
            open.extend_from_slice(b") ");
        }
        open.extend_from_slice(b"AS (");
        plan.text(outline.start, open);
        for value in self.behind {
            plan.instead(value.place.clone(), value.columns(self.text));
        }
        let limit: &[u8] = match outline.limit {
            // Without it the order is forgotten.
            Limit::None if outline.clauses.has(Clause::OrderBy) => b"LIMIT 18446744073709551615",
            // MariaDB forgets an OFFSET that stands alone there.
            Limit::Behind => b"FETCH NEXT 18446744073709551615 ROWS ONLY",
            Limit::None | Limit::Unknown | Limit::Rows(_) => b"",
        };
        let mut close = Vec::new();
        match outline.locking {
            _ if limit.is_empty() => {}
            Some(at) => plan.text(at, [limit, b" "].concat()),
            None => close.extend([b" ", limit].concat()),
        }
        close.extend_from_slice(b") SELECT ");
        let mut from = Vec::new();
        match at {
            // The key stands behind all others: a key among them is refused over UNION.
            None if keeps_names => close.extend_from_slice(b"*,"),
            None => {
                self.write_values(0..columns, &mut close);
                close.push(b',');
            }
            Some(index) => {
                self.write_values(0..index, &mut close);
                if index > 0 {
                    close.push(b',');
                }
                if index + 1 < columns {
                    from.push(b',');
                    self.write_values(index + 1..columns, &mut from);
                }
            }
        }
        from.extend_from_slice(b" FROM keywright_rows");
        plan.key(outline.end, outline.end, &close, &from);
        Ok(())
    }

    /// Which column of the table of WITH is the first of a value.
    fn first_of(self, index: usize) -> usize {
        let before = self.behind.iter().take_while(|value| value.index < index);
        before.fold(index, |first, value| first + value.columns.len() - 1)
    }

    /// What is taken of the table of WITH.
    fn write_values(self, indexes: Range<usize>, out: &mut Vec<u8>) {
        let start = indexes.start;
        for index in indexes {
            if index > start {
                out.push(b',');
            }
            let first = self.first_of(index);
            match self.behind.iter().find(|value| value.index == index) {
                Some(value) => value.write(self.text, first, out),
                None => out.extend_from_slice(format!("c{first}").as_bytes()),
            }
        }
    }
}

/// Names of so many columns of the table of WITH.
fn write_columns(count: usize, out: &mut Vec<u8>) {
    for number in 0..count {
        if number > 0 {
            out.push(b',');
        }
        out.push(b'c');
        out.extend_from_slice(number.to_string().as_bytes());
    }
}
