//! Prepared INSERT … SELECTs that bring their own keys and list no columns. They are executed as their client wrote them, as long as
//! the columns of their table are in an order that makes them so.

use std::sync::Arc;

use keywright_rewrite::{QueryPlan, Unsupported};
use keywright_wire::bytes::Header;

use crate::connection::Connection;
use crate::insert::plan::Planned;
use crate::judge::{Reason, decide_unread};
use crate::prepared::passed_statement::{ByOrder, OrderedText, Passed};
use crate::step::{StatementOutcome, Step};

/// What another order of columns makes of it.
enum Judged {
    /// It brings its own keys, or is to have none.
    AsItIs,
    /// So it goes out now: there is no such table, and its rule only observes.
    Missing,
    /// It goes out so only where the rule passes on what cannot be rewritten.
    Unsupported(Option<usize>, Unsupported),
    /// Something must be known first.
    Not(Step),
}

impl Connection {
    /// What is to be kept of one that was judged now; `None`: there is no memory for it.
    pub(crate) fn by_order(
        &self,
        rule: usize,
        text: &[u8],
        guard: Option<QueryPlan>,
    ) -> Option<ByOrder> {
        let text = OrderedText {
            rule,
            text: text.to_vec(),
            database: self.context.database.clone(),
            guard,
            _held: self.hold(text.len())?,
        };
        Some(ByOrder {
            text: Arc::new(text),
            schema: self.judged_at(),
        })
    }

    /// Whether it can be executed, and at which rule's fence that is watched. `Err`: something comes first.
    pub(crate) fn check_order(
        &mut self,
        header: Header,
        id: u32,
        by_order: &ByOrder,
    ) -> Result<Option<usize>, Step> {
        if by_order.schema == self.schema_changes() {
            return Ok(None);
        }
        if !self.context.known {
            return Err(self.ask_context());
        }
        // The client has set insert_id for it.
        if self.context.insert_id_set {
            return Ok(None);
        }
        self.table_report.executed = Some(id);
        let watched = match self.judge(&by_order.text) {
            Judged::Not(step) => return Err(step),
            // What comes before may ask for it once more.
            Judged::Missing => return Ok(None),
            Judged::AsItIs => {
                let judged_at = self.judged_at();
                let passed = self.statements.passed.get_mut(&id);
                if let Some(Passed {
                    by_order: Some(of), ..
                }) = passed
                {
                    of.schema = judged_at;
                }
                None
            }
            Judged::Unsupported(rule, what) => {
                if let Err(reason) = decide_unread(self.policy(rule), what) {
                    return Err(self.refuse_passed(header, id, rule, reason));
                }
                if let Some(step) = self.enter(header, rule) {
                    return Err(step);
                }
                self.note(rule, StatementOutcome::Passed(what.label()));
                self.note(rule, StatementOutcome::Native(None));
                rule
            }
        };
        self.forget_command();
        Ok(watched)
    }

    fn judge(&mut self, of: &OrderedText) -> Judged {
        let changed = Judged::Unsupported(Some(of.rule), Unsupported::TableChanged);
        match self.plan_in(of.database.as_deref(), &of.text) {
            Ok(Planned::Query(_, plan)) if plan.explicit() => {
                match of.guard == plan.is_guarded().then_some(plan) {
                    true => Judged::AsItIs,
                    false => changed,
                }
            }
            Ok(Planned::Pass | Planned::Keyless(_)) => Judged::AsItIs,
            Ok(Planned::Missing(_)) => Judged::Missing,
            Ok(Planned::Ask(question)) => Judged::Not(self.ask(&question)),
            Ok(Planned::Plan(..) | Planned::Query(..)) => changed,
            Err((rule, what)) => Judged::Unsupported(rule, what),
        }
    }

    /// Refuses an execution of a statement that was passed on. What was sent as long data for it must not become part of the next
    /// one.
    fn refuse_passed(
        &mut self,
        header: Header,
        id: u32,
        rule: Option<usize>,
        reason: Reason,
    ) -> Step {
        if reason != Reason::Unsupported(Unsupported::TableAhead) {
            self.ask_to_forget(id);
        }
        self.refuse_for(header, rule, reason)
    }
}
