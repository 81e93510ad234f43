//! Texts of several statements where all rules only observe: they go out as they are, and what would have become of their INSERTs is
//! counted.

use std::ops::Range;

use keywright_wire::answer::Shape;

use crate::answer::after::After;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::plan::Planned;
use crate::job::Next;
use crate::judge::{Facts, Verdict, decide};
use crate::step::StatementOutcome;

impl Connection {
    /// Passes on a text with these INSERTs, whose rules only observe.
    pub(super) fn observe_several(
        &mut self,
        query: Query<'_>,
        inserts: &[(usize, Range<usize>)],
        after: After,
    ) -> Next {
        let mut rules = inserts.iter().map(|(rule, _)| *rule);
        if let Some(step) = rules.find_map(|rule| self.enter(query.header, Some(rule))) {
            return step.into();
        }
        if self.pending_last_insert_id.is_some() {
            return self.update_last_insert_id(false).into();
        }
        for (rule, insert) in inserts {
            let insert = query.text.get(insert.clone()).unwrap_or_default();
            if let Some(what) = self.would_be(insert) {
                self.note(Some(*rule), what);
            }
            self.note(Some(*rule), StatementOutcome::Native(None));
        }
        self.last_insert_id = None;
        self.pass(query.header, query.bytes, Shape::Results, after)
    }

    /// What would become of an INSERT if its rule did not only observe; what the server would have to be asked for first is taken for
    /// nothing that forbids keys.
    fn would_be(&mut self, insert: &[u8]) -> Option<StatementOutcome> {
        let (rule, facts) = match self.plan(insert) {
            Ok(Planned::Plan(rule, plan)) => (rule, Facts::of_rows(&plan, plan.keys() > 0)),
            Ok(Planned::Query(rule, plan)) => (rule, Facts::of_query(&plan)),
            Ok(Planned::Ask(_)) => return Some(StatementOutcome::Observed),
            Ok(Planned::Pass | Planned::Missing(_) | Planned::Keyless(_)) => return None,
            Err((_, what)) => return Some(StatementOutcome::Passed(what.label())),
        };
        match decide(self.policy(Some(rule)), &facts) {
            Verdict::Observe(what) => what,
            Verdict::Rewrite | Verdict::Pass | Verdict::Leave(_) | Verdict::Refuse(_) => None,
        }
    }
}
