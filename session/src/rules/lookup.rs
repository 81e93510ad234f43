//! Which rule is for a table, as a statement names it.

use keywright_rewrite::{
    InsertHead, Modes, TableName, Unread, behind_set_statement, reads_otherwise_in_swe7,
};

use crate::connection::Connection;
use crate::judge::Policy;
use crate::rules::Mode;
use crate::server::context::Unseen;
use crate::server::question::Question;

impl Connection {
    /// The rule for a table as a statement names it; none for a temporary table that hides it.
    pub(crate) fn rule_of(&self, table: &TableName) -> Option<usize> {
        let rule = self.rule_behind(table)?;
        let (schema, name) = self.named(table);
        (!self.hides(schema, name)).then_some(rule)
    }

    /// The same, once it is known whether a temporary table hides it.
    pub(crate) fn rule_now(&self, table: &TableName) -> Result<Option<usize>, Question> {
        let (schema, name) = self.named(table);
        let is_known = match &self.context.unseen {
            Unseen::None => true,
            Unseen::Except(seen) => {
                let mut seen = seen.iter();
                seen.any(|(of, there)| of == schema && there == name) || self.hides(schema, name)
            }
        };
        match self.rule_behind(table) {
            Some(_) if !is_known => Err(Question::Hidden(table.clone())),
            Some(rule) => Ok((!self.hides(schema, name)).then_some(rule)),
            None => Ok(None),
        }
    }

    /// The same, whatever hides the table: what is carried out later may be when that is gone.
    pub(crate) fn rule_behind(&self, table: &TableName) -> Option<usize> {
        let schema = table.schema.as_deref();
        let schema = schema.or(self.context.database.as_deref())?;
        let (rule, _) = self.rules.find(schema, &table.table)?;
        Some(rule)
    }

    /// Schema and name of a table.
    pub(crate) fn named<'a>(&'a self, table: &'a TableName) -> (&'a [u8], &'a [u8]) {
        let database = self.context.database.as_deref();
        let schema = table.schema.as_deref().or(database).unwrap_or_default();
        (schema, &table.table)
    }

    /// Whether a rule could be for a table as a statement names it.
    pub(crate) fn may_match(&self, table: &TableName) -> bool {
        let schema = table.schema.as_deref();
        self.rules.may_match(schema, &table.table) || self.may_match_unread(table)
    }

    /// Whether an INSERT or REPLACE could be for a table with a rule, in whatever modes the server reads it.
    pub(crate) fn may_be_ruled(&self, text: &[u8]) -> bool {
        // Where its strings end depends on modes too, so it may be followed by anything.
        if behind_set_statement(text, &self.context.modes).is_some() {
            return true;
        }
        let is_free = |modes: &Modes| match InsertHead::read(text, modes) {
            Ok(head) => !self.may_match(&head.table) && !head.goes_on_in_swe7(text),
            Err(Unread::Refused) => !reads_otherwise_in_swe7(text, modes),
            Err(Unread::Unsupported(_)) => false,
        };
        // Without a quote it is read in one way.
        match text.contains(&b'"') {
            true => !self.in_both_modes(is_free),
            false => !is_free(&self.context.modes),
        }
    }

    /// Whether something holds with ANSI_QUOTES and without.
    pub(crate) fn in_both_modes(&self, holds: impl Fn(&Modes) -> bool) -> bool {
        [false, true].into_iter().all(|ansi_quotes| {
            holds(&Modes {
                ansi_quotes,
                ..self.context.modes
            })
        })
    }

    /// Whether some rule changes statements. Where none does, none is refused either.
    pub(crate) fn rewrites_any(&self) -> bool {
        let mut rules = self.rules.rules().iter();
        rules.any(|rule| rule.mode == Mode::Rewrite)
    }

    /// Whether all rules only observe, and no table goes over to keys.
    pub(crate) fn only_observes(&self) -> bool {
        let mut rules = 0..self.rules.rules().len();
        !self.rewrites_any() && rules.all(|rule| !self.rules.is_switched(rule))
    }

    /// Whether a rule changes statements.
    pub(crate) fn rewrites(&self, rule: usize) -> bool {
        let rule = self.rules.rules().get(rule);
        rule.is_some_and(|rule| rule.mode == Mode::Rewrite)
    }

    /// What a rule says. `None`: it could not be read which rule is concerned.
    #[inline]
    pub(crate) fn policy(&self, rule: Option<usize>) -> Policy {
        Policy::of(&self.rules, rule)
    }
}
