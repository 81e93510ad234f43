//! Reads an INSERT on a table with a rule, as far as it can be.

use keywright_rewrite::{
    Flavour, Insert, InsertHead, KeyColumn, KeyExpression, KeyForm, Plan, QueryPlan, SecondReading,
    TableName, Unread, Unsupported,
};

use crate::connection::Connection;
use crate::prepared::passed_statement::Keyless;
use crate::rules::{KeyColumnState, OnExplicit, Rule};
use crate::server::question::{KeyThere, Question};
use crate::server::text_modes::has;

const UPDATED: &str = "with ON DUPLICATE KEY UPDATE of the rows of a SELECT";

/// What reading a statement came to.
pub(crate) enum Planned {
    /// It is for this rule.
    Plan(usize, Plan),
    /// It is for this rule, and its rows come from a query.
    Query(usize, QueryPlan),
    /// It is for no rule, or the server refuses it by itself.
    Pass,
    /// There is no such table, and its rule only observes: the server says so itself. Not to be kept, since the table may be there a moment later.
    Missing(usize),
    /// It is to have no keys, although its table has a rule.
    Keyless(Keyless),
    /// This must be known first.
    Ask(Question),
}

impl Planned {
    /// Whether keys are put in, or may be.
    fn wants_keys(&self) -> bool {
        match self {
            Self::Plan(_, plan) => plan.keys() > 0 || !plan.key_parameters().is_empty(),
            Self::Query(..) => true,
            Self::Pass | Self::Missing(_) | Self::Keyless(..) | Self::Ask(_) => false,
        }
    }
}

/// What could not be read, and the rule's index if that is known.
pub(crate) type NotPlanned = (Option<usize>, Unsupported);

impl Connection {
    /// Reads the statement as far as it can be.
    pub(crate) fn plan(&mut self, text: &[u8]) -> Result<Planned, NotPlanned> {
        self.context.note_defined(self.rules.schema().defined());
        let modes = self.context.modes;
        if self.plan_cache.find(text, &modes)
            && let Some(known) = self.plan_cache.beginnings.last()
        {
            let insert = &known.insert;
            return match self.rule_now(&insert.head().table) {
                Ok(Some(index)) => self.plan_of(index, insert, text, None),
                Ok(None) => Ok(self.unruled(&insert.head().table)),
                Err(question) => Ok(Planned::Ask(question)),
            };
        }
        let head = match InsertHead::read(text, &modes) {
            Ok(head) => head,
            Err(unread) => return not_planned(None, unread),
        };
        let index = match self.rule_now(&head.table) {
            Ok(Some(index)) => index,
            Ok(None) => return Ok(self.unruled(&head.table)),
            Err(question) => return Ok(Planned::Ask(question)),
        };
        let insert = match Insert::read(head, text, &modes) {
            Ok(insert) => insert,
            Err(unread) => return not_planned(Some(index), unread),
        };
        let second = insert
            .is_query()
            .then(|| self.plan_cache.read_again(&insert, text, &modes));
        let planned = self.plan_of(index, &insert, text, second.as_deref());
        self.plan_cache.keep(insert, text, &modes);
        planned
    }

    /// Of a statement that no rule is for now.
    fn unruled(&self, table: &TableName) -> Planned {
        match self.rule_behind(table) {
            Some(rule) => self.keyless(table, rule, true),
            None => Planned::Pass,
        }
    }

    fn keyless(&self, table: &TableName, rule: usize, is_hidden: bool) -> Planned {
        let (schema, name) = self.named(table);
        let table = TableName {
            schema: Some(schema.to_vec()),
            table: name.to_vec(),
        };
        Planned::Keyless(Keyless {
            table,
            rule,
            is_hidden,
        })
    }

    /// What a rule makes of a statement's rows.
    fn plan_of(
        &self,
        index: usize,
        insert: &Insert,
        text: &[u8],
        second: Option<&SecondReading>,
    ) -> Result<Planned, NotPlanned> {
        let Some(rule) = self.rules.rules().get(index) else {
            return Ok(Planned::Pass);
        };
        if let Some(what) = self.rules.unsupported(index) {
            return Err((Some(index), what));
        }
        let table = &insert.head().table;
        let there = match self.key_there(table, index, rule) {
            Err(question) => return Ok(Planned::Ask(question)),
            Ok(KeyThere::No) => return Ok(self.keyless(table, index, false)),
            Ok(there) => there,
        };
        let (schema, name) = self.named(table);
        let is_ahead = self.rules.is_ahead(index, schema, name);
        if let Some(first) = self.before_columns(table, index, insert) {
            return Ok(first);
        }
        if there == KeyThere::Text {
            return self.plan_of_text((index, rule), insert, text);
        }
        let key = self.key_column(rule, table);
        let modes = &self.context.modes;
        let result = self.table_report.result.as_deref();
        if second.is_some()
            && result.is_none()
            && let Some(query) = insert.query_to_ask(text, modes, &key)
        {
            let query = text.get(query).unwrap_or_default().to_vec();
            return Ok(Planned::Ask(self.first_of_names(Question::Result(query))));
        }
        let planned = match second {
            Some(second) => insert
                .plan_query(text, modes, &key, second, result)
                .and_then(|plan| self.query_planned(index, plan, text, &key)),
            None => match self.plan_rows((index, rule), insert, text, &key) {
                Ok(plan) => plan.map(|plan| Planned::Plan(index, plan)),
                Err(question) => return Ok(Planned::Ask(question)),
            },
        };
        if let Some(instead) = self.instead_where_unshown(table, index, &planned) {
            return instead;
        }
        // In strict mode the server refuses a key that is too large, and stores no other number.
        let clips = modes.strict != Some(true) || insert.ignore();
        match planned {
            Ok(planned) if is_ahead && planned.wants_keys() => {
                Err((Some(index), Unsupported::TableAhead))
            }
            Ok(planned) if there == KeyThere::Narrow && clips && planned.wants_keys() => {
                Err((Some(index), Unsupported::KeyNarrow))
            }
            planned => planned.or_else(|unread| not_planned(Some(index), unread)),
        }
    }

    /// What becomes of the rows of a query.
    fn query_planned(
        &self,
        index: usize,
        plan: QueryPlan,
        text: &[u8],
        key: &KeyColumn<'_>,
    ) -> Result<Planned, Unread> {
        if plan.explicit() && self.unhexes_wide_texts(text, key) {
            return Err(Unsupported::Key(KeyExpression::Call).into());
        }
        if self.updates_wrongly(index, &plan) {
            return Err(Unsupported::View(UPDATED).into());
        }
        Ok(Planned::Query(index, plan))
    }

    /// Whether digits that are a text of this statement may be none to UNHEX, which then comes to NULL.
    fn unhexes_wide_texts(&self, text: &[u8], key: &KeyColumn<'_>) -> bool {
        key.form != KeyForm::Integer
            && self.context.text_modes.has_wide_texts()
            && has(text, b"unhex")
    }

    /// What becomes of rows that are written in the text. `Err`: this must be known first.
    fn plan_rows(
        &self,
        rule: (usize, &Rule),
        insert: &Insert,
        text: &[u8],
        key: &KeyColumn<'_>,
    ) -> Result<Result<Plan, Unread>, Question> {
        let modes = &self.context.modes;
        let planned = match self.table_report.nulls_are_known {
            true => insert.plan_without_nulls(text, modes, key),
            false => insert.plan(text, modes, key),
        };
        let plan = match planned {
            Ok(plan) => plan,
            Err(unread) => return self.plan_computed(rule, insert, text, (key, unread)),
        };
        if plan.explicit() && self.unhexes_wide_texts(text, key) {
            return Ok(Err(Unsupported::Key(KeyExpression::Call).into()));
        }
        Ok(Ok(plan))
    }

    /// The same of rows that this keeps from being read. Of a computed key that is no number the server is asked whether it is NULL, where it can
    /// be. Otherwise it is a key where NULL would be an error.
    fn plan_computed(
        &self,
        (index, rule): (usize, &Rule),
        insert: &Insert,
        text: &[u8],
        (key, unread): (&KeyColumn<'_>, Unread),
    ) -> Result<Result<Plan, Unread>, Question> {
        let modes = &self.context.modes;
        let Unread::Unsupported(Unsupported::Key(_)) = unread else {
            return Ok(Err(unread));
        };
        let is_strict = modes.strict == Some(true) && !insert.ignore();
        let can_ask = || {
            !self.table_report.is_prepared
                && insert.computed_keys(text, modes, key, false).is_some()
        };
        if key.form == KeyForm::Integer || !is_strict || can_ask() {
            return Ok(Err(unread));
        }
        Ok(match self.is_not_null(&insert.head().table, index, rule)? {
            true => insert.plan_for_not_null(text, modes, key),
            false => Err(unread),
        })
    }

    /// What comes first where a statement needs the live columns: they are asked for, or there is no such table.
    fn before_columns(&self, table: &TableName, index: usize, insert: &Insert) -> Option<Planned> {
        if !insert.needs_columns() {
            return None;
        }
        match &self.table_report.columns {
            None => {
                let columns = Question::Columns(table.clone(), index);
                Some(Planned::Ask(self.first_of_names(columns)))
            }
            // A rule that gives keys has failed the statement.
            Some(_) if self.table_report.missing && !self.rewrites(index) => {
                Some(Planned::Missing(index))
            }
            Some(_) => None,
        }
    }

    /// What is asked where names are to come: their character set first, if such names have come in one that is not known.
    fn first_of_names(&self, question: Question) -> Question {
        match self.table_report.are_names_unread {
            true => Question::ResultsCharset,
            false => question,
        }
    }

    /// What becomes of a statement that gets keys, or whose rows the server would number, on a table that the program's own account may not see,
    /// or of which that is not known.
    fn instead_where_unshown(
        &self,
        table: &TableName,
        index: usize,
        planned: &Result<Planned, Unread>,
    ) -> Option<Result<Planned, NotPlanned>> {
        let is_numbered = match planned {
            Ok(planned) => planned.wants_keys(),
            Err(Unread::Unsupported(_)) => true,
            Err(Unread::Refused) => false,
        };
        if !is_numbered {
            return None;
        }
        match self.unshown(table, index) {
            Ok(None) => None,
            Ok(Some(what)) => Some(Err((Some(index), what))),
            Err(question) => Some(Ok(Planned::Ask(question))),
        }
    }

    /// Where the column of a rule for numbers holds text: such a table matches a pattern by chance. The server makes no keys in it, so
    /// whatever is given passes; a statement that wants a number is refused.
    fn plan_of_text(
        &self,
        (index, rule): (usize, &Rule),
        insert: &Insert,
        text: &[u8],
    ) -> Result<Planned, NotPlanned> {
        let table = &insert.head().table;
        let refused = Err((Some(index), Unsupported::KeyNarrow));
        if insert.is_query() || rule.on_explicit == OnExplicit::Refuse {
            return refused;
        }
        let key = KeyColumn {
            form: KeyForm::Text,
            ..self.key_column(rule, table)
        };
        match insert.plan_without_nulls(text, &self.context.modes, &key) {
            Ok(plan) if plan.keys() > 0 => refused,
            Ok(_) | Err(Unread::Unsupported(Unsupported::Key(_))) => {
                Ok(self.keyless(table, index, false))
            }
            Err(unread) => not_planned(Some(index), unread),
        }
    }

    /// The column that gets keys, as far as it is known.
    pub(crate) fn key_column<'a>(&'a self, rule: &'a Rule, table: &TableName) -> KeyColumn<'a> {
        let (schema, name) = self.named(table);
        let state = self.rules.key_column_state(schema, name);
        let was_seen = state != KeyColumnState::NoTable;
        // A table that got the column since may have it of any type.
        let has_type = was_seen && state != KeyColumnState::Missing;
        let mut key = KeyColumn {
            name: rule.column.as_bytes(),
            form: rule.form,
            live: self.table_report.columns.as_deref().unwrap_or_default(),
            watched: rule.watched,
            is_signed: rule.is_signed && has_type,
            is_strict: rule.repeatable && was_seen,
        };
        if self.context.doubts_tables {
            key.watched |= self.is_watched_now(table);
        }
        key
    }

    /// Whether a table got a trigger that may read LAST_INSERT_ID() since this connection has its rules.
    #[cold]
    fn is_watched_now(&self, table: &TableName) -> bool {
        let (schema, name) = self.named(table);
        self.rules.schema().is_watched(schema, name)
    }

    /// MySQL (9.7) computes the update of a duplicate with NULLs when it goes through a view and the rows of the query were
    /// put aside, as they are to be numbered. Those that bring keys of their own are not.
    fn updates_wrongly(&self, index: usize, plan: &QueryPlan) -> bool {
        let is_mysql = self.context.modes.server.flavour == Flavour::MySql;
        is_mysql && !plan.explicit() && plan.on_duplicate() && self.rules.view(index).is_some()
    }
}

/// What the server refuses by itself it is to see.
fn not_planned(rule: Option<usize>, unread: Unread) -> Result<Planned, NotPlanned> {
    match unread {
        Unread::Refused => Ok(Planned::Pass),
        Unread::Unsupported(what) => Err((rule, what)),
    }
}
