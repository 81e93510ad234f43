//! LOAD DATA into a table with a rule: whether it can have keys. How it gets them: [`crate::insert::loading`].
//!
//! The number of rows in a file of the server's is known only afterwards. As with INSERT … SELECT, a statement with too few keys fails
//! as a whole and is tried again with more. A client's file is gathered first, and its lines are counted.

use keywright_rewrite::{
    Flavour, KeyColumn, LoadConstruct, LoadPlan, RowsFrom, TableName, Unread, Unsupported, kind,
    load_target,
};

use crate::answer::after::After;
use crate::client::query::Query;
use crate::connection::Connection;
use crate::insert::loading::Load;
use crate::job::Next;
use crate::judge::{Facts, Verdict, decide};
use crate::server::question::KeyThere;

impl Connection {
    /// A LOAD DATA or LOAD XML.
    pub(crate) fn load(&mut self, query: Query<'_>, table: &TableName) -> Next {
        let index = match self.rule_now(table) {
            Ok(Some(index)) => index,
            Ok(None) => return self.pass_query(query, After::Nothing),
            Err(question) => return self.ask(&question).into(),
        };
        let Some(rule) = self.rules.rules().get(index).cloned() else {
            return self.pass_query(query, After::Nothing);
        };
        match self.key_there(table, index, &rule) {
            Err(question) => return self.ask(&question).into(),
            Ok(KeyThere::No) => return self.pass_query(query, After::Nothing),
            Ok(KeyThere::Narrow | KeyThere::Text) => {
                return self.unsupported(query, Some(index), Unsupported::KeyNarrow);
            }
            Ok(KeyThere::Yes | KeyThere::Untold) => {}
        }
        let (schema, name) = self.named(table);
        if self.rules.is_ahead(index, schema, name) {
            return self.unsupported(query, Some(index), Unsupported::TableAhead);
        }
        match self.unshown(table, index) {
            Ok(None) => {}
            Ok(Some(what)) => return self.unsupported(query, Some(index), what),
            Err(question) => return self.ask(&question).into(),
        }
        if self.context.insert_id_set {
            return self.pass_query(query, After::Nothing);
        }
        if let Some(what) = self.rules.unsupported(index) {
            return self.unsupported(query, Some(index), what);
        }
        let modes = self.context.modes;
        let key = KeyColumn {
            live: &[],
            ..self.key_column(&rule, table)
        };
        let plan = keywright_rewrite::Load::read(query.text, &modes)
            .and_then(|load| load.plan(query.text, &modes, &key));
        let plan = match plan {
            Ok(plan) => plan,
            Err(Unread::Refused) => return self.pass_query(query, After::Nothing),
            Err(Unread::Unsupported(what)) => {
                return self.unsupported(query, Some(index), what);
            }
        };
        if let Some(step) = self.enter(query.header, Some(index)) {
            return step.into();
        }
        match decide(self.policy(Some(index)), &Facts::of_load(&plan)) {
            Verdict::Rewrite => self.begin_loading(query, index, plan),
            Verdict::Pass => self.pass_query(query, After::Nothing),
            Verdict::Observe(what) => {
                if let Some(what) = what {
                    self.note(Some(index), what);
                }
                self.note_native(index, None);
                let next = self.pass_query(query, After::Nothing);
                self.watch_fence(next, index)
            }
            Verdict::Leave(what) => self.unsupported(query, Some(index), what),
            Verdict::Refuse(reason) => self.refuse_for(query.header, Some(index), reason).into(),
        }
    }

    fn begin_loading(&mut self, query: Query<'_>, rule: usize, plan: LoadPlan) -> Next {
        match (self.shown_last_insert_id(), self.pending_last_insert_id) {
            (Some(before), _) => Load::begin(self, query, rule, plan, before),
            (None, Some(_)) => self.update_last_insert_id(false).into(),
            (None, None) => self.ask_last_insert_id().into(),
        }
    }

    /// A LOAD DATA that is to be prepared, and the table it is for. MySQL refuses that by itself.
    pub(crate) fn load_to_prepare(&self, text: &[u8]) -> Option<(TableName, Unsupported)> {
        let modes = &self.context.modes;
        let can = modes.server.flavour == Flavour::MariaDb
            && kind(text, modes).facts().rows == RowsFrom::File;
        let table = load_target(text, modes).filter(|_| can)?;
        Some((table, Unsupported::LoadWith(LoadConstruct::Prepared)))
    }

    /// The same, if a rule is for the table.
    pub(crate) fn prepared_load(&self, text: &[u8]) -> Option<(Option<usize>, Unsupported)> {
        let (table, what) = self.load_to_prepare(text)?;
        Some((Some(self.rule_behind(&table)?), what))
    }
}
