//! Prepared INSERTs on tables that have changed since: the server prepares the client's text anew by itself, and values without a
//! column list go by the new order of columns. So must ours.

use keywright_rewrite::{LongDataConstruct, QueryPlan, Unsupported};
use keywright_wire::bytes::Header;
use keywright_wire::packets::write_close;

use crate::connection::Connection;
use crate::insert::plan::Planned;
use crate::prepared::statements::{Statement, Statements};
use crate::step::Step;

/// The client's text of a statement whose keys the server computes.
fn statement_text(statements: &Statements, id: u32) -> Option<Vec<u8>> {
    let computed = statements.ours.get(&id)?.computed.as_ref()?;
    Some(computed.text.clone())
}

/// What has become of a prepared INSERT.
pub(crate) enum Refreshed {
    /// It gets keys.
    Ours,
    /// It gets none: the key column is gone, or the server refuses it by itself.
    Passed,
    /// Something must be known first, or it cannot be carried out.
    Not(Step),
}

impl Connection {
    /// Checks a statement again if its table may have changed since.
    pub(crate) fn refresh(&mut self, header: Header, id: u32) -> Refreshed {
        let all = self.schema_changes();
        let Some(statement) = self.statements.ours.get(&id) else {
            return Refreshed::Passed;
        };
        if statement.schema == all {
            return match statement.is_passed {
                true => Refreshed::Passed,
                false => Refreshed::Ours,
            };
        }
        let (text, database) = (statement.text.clone(), statement.database.clone());
        let reads_otherwise = self.reads_otherwise(&statement.read_in, &text);
        self.table_report.executed = Some(id);
        let (plan, index) = match self.plan_in(database.as_deref(), &text) {
            Ok(Planned::Plan(index, plan)) => (plan, index),
            Ok(Planned::Ask(question)) => return Refreshed::Not(self.ask(&question)),
            Ok(Planned::Missing(_)) => return Refreshed::Passed,
            Ok(Planned::Pass | Planned::Keyless(_) | Planned::Query(..)) if reads_otherwise => {
                let what = Unsupported::ReadOtherwise;
                return Refreshed::Not(self.refuse_execution(header, id, what));
            }
            Ok(Planned::Pass | Planned::Keyless(_) | Planned::Query(..)) => {
                self.set_passed(id, true);
                return Refreshed::Passed;
            }
            Err((rule, Unsupported::TableAhead)) => {
                return Refreshed::Not(self.wait_ahead(header, rule));
            }
            Err((_, what)) => return Refreshed::Not(self.refuse_execution(header, id, what)),
        };
        let client = statement_text(&self.statements, id);
        if client.is_some_and(|text| self.computed_keys_of(&text, index, true).is_none()) {
            let what = Unsupported::TableChanged;
            return Refreshed::Not(self.refuse_execution(header, id, what));
        }
        let is_same = |of: &Statement| of.plan == plan && of.rule == index;
        // The other plan would be of what is read now.
        if reads_otherwise && !self.statements.ours.get(&id).is_some_and(is_same) {
            let what = Unsupported::ReadOtherwise;
            return Refreshed::Not(self.refuse_execution(header, id, what));
        }
        self.set_passed(id, false);
        let sql_mode = self.sql_mode();
        let Some(statement) = self.statements.ours.get_mut(&id) else {
            return Refreshed::Passed;
        };
        if is_same(statement) {
            return Refreshed::Ours;
        }
        if !statement.long_data.is_empty() {
            let what = Unsupported::LongData(LongDataConstruct::TableChanged);
            return Refreshed::Not(self.refuse_execution(header, id, what));
        }
        (statement.plan, statement.rule) = (plan, index);
        statement.sql_mode = sql_mode;
        for made in statement
            .variants
            .split_off(1.min(statement.variants.len()))
        {
            write_close(made.number, &mut self.up);
        }
        for made in &mut statement.variants {
            made.is_outdated = true;
        }
        Refreshed::Ours
    }

    /// The same of an INSERT … SELECT, of which there is one text only.
    pub(crate) fn refresh_select(&mut self, header: Header, id: u32) -> Refreshed {
        let all = self.schema_changes();
        let Some(select) = self.statements.selects.get(&id) else {
            return Refreshed::Passed;
        };
        if select.schema == all {
            return match select.is_passed {
                true => Refreshed::Passed,
                false => Refreshed::Ours,
            };
        }
        let (text, database) = (select.text.clone(), select.database.clone());
        let reads_otherwise = self.reads_otherwise(&select.read_in, &text);
        self.table_report.executed = Some(id);
        let is_passed = match self.plan_in(database.as_deref(), &text) {
            Ok(Planned::Query(_, plan)) if self.is_planned_so(id, &plan) => false,
            Ok(Planned::Ask(question)) => return Refreshed::Not(self.ask(&question)),
            Ok(Planned::Missing(_)) => return Refreshed::Passed,
            Ok(Planned::Pass | Planned::Keyless(_)) if reads_otherwise => {
                let what = Unsupported::ReadOtherwise;
                return Refreshed::Not(self.refuse_select_execution(header, id, what));
            }
            Ok(Planned::Pass | Planned::Keyless(_)) => true,
            Ok(Planned::Plan(..) | Planned::Query(..)) => {
                let what = Unsupported::TableChanged;
                return Refreshed::Not(self.refuse_select_execution(header, id, what));
            }
            Err((rule, Unsupported::TableAhead)) => {
                return Refreshed::Not(self.wait_ahead(header, rule));
            }
            Err((_, what)) => {
                return Refreshed::Not(self.refuse_select_execution(header, id, what));
            }
        };
        let judged_at = self.judged_at();
        self.forget_command();
        if let Some(select) = self.statements.selects.get_mut(&id) {
            (select.schema, select.is_passed) = (judged_at, is_passed);
        }
        match is_passed {
            true => Refreshed::Passed,
            false => Refreshed::Ours,
        }
    }

    fn is_planned_so(&self, id: u32, plan: &QueryPlan) -> bool {
        let select = self.statements.selects.get(&id);
        select.is_some_and(|select| *select.plan == *plan)
    }

    fn set_passed(&mut self, id: u32, is_passed: bool) {
        let schema = self.judged_at();
        self.forget_command();
        if let Some(statement) = self.statements.ours.get_mut(&id) {
            (statement.schema, statement.is_passed) = (schema, is_passed);
        }
    }
}
