//! The prepared statements of a connection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use keywright_core::KeyBatch;
use keywright_rewrite::{Flavour, KeyForm, NextValue, Plan, Prepared, Variant};
use keywright_wire::params::Type;

use crate::budget::Held;
use crate::prepared::passed_statement::{ObservedInsert, Passed, SqlMode};
use crate::prepared::select_statement::SelectStatement;
use crate::server::text_modes::TextModes;

/// MariaDB's number for the statement that was prepared last.
pub(crate) const LAST_PREPARED: u32 = u32::MAX;
/// No statement of MariaDB's has this number.
const NONE: u32 = 0;

/// Texts of one statement that are prepared upstream at the same time.
const VARIANTS_MAX: usize = 8;

/// A prepared INSERT on a table with a rule.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) rule: usize,
    pub(crate) text: Vec<u8>,
    /// The database that was chosen when it was prepared.
    pub(crate) database: Option<Vec<u8>>,
    /// How the server read its text then.
    pub(crate) read_in: TextModes,
    /// The memory of text and plan.
    pub(crate) _held: Arc<Held>,
    pub(crate) plan: Plan,
    /// When it was prepared.
    pub(crate) sql_mode: SqlMode,
    /// What it was prepared as: the first is the one the client knows.
    pub(crate) variants: Vec<Made>,
    pub(crate) types: Option<Vec<Type>>,
    /// Parameters whose values were sent as long data.
    pub(crate) long_data: BTreeSet<u16>,
    /// It asks for ROW_COUNT().
    pub(crate) counts: bool,
    /// [`crate::SchemaChanges::all`] when it was last seen to be right for its table.
    pub(crate) schema: u64,
    /// Then it was to have no keys.
    pub(crate) is_passed: bool,
    /// Its text has parameters in place of keys that the server computes.
    pub(crate) computed: Option<Box<ComputedStatement>>,
}

/// What is kept of a prepared INSERT whose keys the server computes.
#[derive(Debug)]
pub(crate) struct ComputedStatement {
    /// The client's text.
    pub(crate) text: Vec<u8>,
    /// What is asked at each execution.
    pub(crate) question: Vec<u8>,
    /// The question sees LAST_INSERT_ID().
    pub(crate) sees_last_insert_id: bool,
    /// Which parameters of the session's text have what is answered, ascending.
    pub(crate) positions: Vec<u16>,
}

impl ComputedStatement {
    /// What it takes of memory beside its own size, bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let positions = size_of_val(self.positions.as_slice());
        let texts = self.text.len().saturating_add(self.question.len());
        texts.saturating_add(positions)
    }
}

impl Statement {
    /// How many parameters the client knows of.
    pub(crate) fn parameters(&self) -> usize {
        let all = usize::try_from(self.plan.parameters()).unwrap_or(usize::MAX);
        let computed = self.computed.as_ref();
        all.saturating_sub(computed.map_or(0, |computed| computed.positions.len()))
    }

    /// How many parameters the server has in one of its texts.
    pub(crate) fn parameters_of(&self, prepared: &Prepared) -> usize {
        let all = usize::try_from(self.plan.parameters()).unwrap_or(usize::MAX);
        all.saturating_add(prepared.injected.len())
    }

    /// The parameters that the client does not know of in the text that it knows, ascending.
    pub(crate) fn hidden(&self) -> Vec<u16> {
        let first = self.variants.first();
        let injected = first.map_or(&[][..], |made| &made.prepared.injected);
        let mut hidden: Vec<u16> = injected.iter().map(|one| one.at).collect();
        if let Some(computed) = &self.computed {
            let moved = computed.positions.iter().map(|position| {
                let mut moved = *position;
                for one in injected {
                    moved = moved.saturating_add(u16::from(one.at <= moved));
                }
                moved
            });
            hidden.extend(moved);
            hidden.sort_unstable();
        }
        hidden
    }

    /// Whether the keys that it asks for depend on its parameters.
    pub(crate) fn asks_by_value(&self) -> bool {
        self.plan.keys() == 0 || !self.plan.key_parameters().is_empty()
    }

    /// Keeps another text, and returns the one that makes room for it. The first stays: it is the client's.
    pub(crate) fn add_variant(&mut self, made: Made) -> Option<Made> {
        let is_full = self.variants.len() >= VARIANTS_MAX;
        let old = is_full.then(|| self.variants.remove(1));
        self.variants.push(made);
        old
    }
}

/// One of a statement's texts, prepared upstream.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) variant: Variant,
    /// The spacing of keys that the text was made for.
    pub(crate) spacing: u64,
    pub(crate) number: u32,
    /// Without the text itself, once it is sent.
    pub(crate) prepared: Prepared,
    /// It was made before the table changed, and is kept because the client knows the statement by its number.
    pub(crate) is_outdated: bool,
}

impl Made {
    /// Whether it can be used for that variant at this spacing of keys.
    pub(crate) fn is_for(&self, variant: Variant, spacing: u64) -> bool {
        !self.is_outdated
            && self.variant == variant
            && (self.spacing == spacing || !self.prepared.keys_in_text)
    }

    /// Whether the keys that the text computes from the first are these.
    pub(crate) fn counts_as(&self, keys: &KeyBatch) -> bool {
        if !self.prepared.keys_in_text {
            return true;
        }
        match keys {
            KeyBatch::Numbers { spacing, count, .. } => *count < 2 || *spacing == self.spacing,
            KeyBatch::Listed(_) | KeyBatch::Texts(_) | KeyBatch::Bytes(_) => keys.len() < 2,
        }
    }
}

/// A statement as its client sent it.
#[derive(Debug)]
pub(crate) struct ClientText<'a> {
    pub(crate) text: &'a [u8],
    /// The database that was chosen then.
    pub(crate) database: Option<&'a [u8]>,
    /// How the server read it then.
    pub(crate) read_in: &'a TextModes,
    /// It may have names beside that of its table: a query's, a function's.
    pub(crate) has_names: bool,
}

/// A prepared statement that asks for keys.
#[derive(Debug)]
pub(crate) struct NextValueStatement {
    /// Its table is named in full.
    pub(crate) next: NextValue,
    /// What its parameters are.
    pub(crate) form: KeyForm,
    /// The memory of its text.
    pub(crate) _held: Held,
}

impl NextValueStatement {
    /// The parameters that its client does not know of: all.
    pub(crate) fn injected(&self) -> Vec<u16> {
        let count = u16::try_from(self.next.count).unwrap_or(u16::MAX);
        (0..count).collect()
    }
}

/// All prepared statements of a connection.
#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) ours: BTreeMap<u32, Statement>,
    /// Those whose rows come from a query.
    pub(crate) selects: BTreeMap<u32, SelectStatement>,
    /// Those that ask for keys.
    pub(crate) next_values: BTreeMap<u32, NextValueStatement>,
    pub(crate) passed: BTreeMap<u32, Passed>,
    /// By the client's number: the same text as the client's, prepared too.
    pub(crate) as_is: BTreeMap<u32, u32>,
    pub(crate) last: u32,
    /// Whether [`LAST_PREPARED`] is a statement's number at all.
    knows_last: bool,
    pub(crate) max: usize,
    /// Of statements that were prepared while their rule observed: the types of their parameters at the last execution.
    pub(crate) types_of_observed: BTreeMap<u32, Vec<Type>>,
    /// Whether a value was sent as long data for one of them: what is sent so goes to the text that the client knows.
    pub(crate) sends_long_data: bool,
}

impl Statements {
    /// Of a server of that flavour.
    pub(crate) fn new(max: usize, flavour: Flavour) -> Self {
        Self {
            ours: BTreeMap::new(),
            selects: BTreeMap::new(),
            next_values: BTreeMap::new(),
            passed: BTreeMap::new(),
            as_is: BTreeMap::new(),
            last: LAST_PREPARED,
            knows_last: match flavour {
                Flavour::MariaDb => true,
                Flavour::MySql => false,
            },
            max,
            types_of_observed: BTreeMap::new(),
            sends_long_data: false,
        }
    }

    /// The statement that a number of the client's means.
    pub(crate) fn number(&self, id: u32) -> u32 {
        if id == LAST_PREPARED && self.knows_last {
            self.last
        } else {
            id
        }
    }

    /// Whether no further one on a rule's table may be prepared.
    pub(crate) fn is_full(&self) -> bool {
        let others = self.selects.len().saturating_add(self.next_values.len());
        self.ours.len().saturating_add(others) >= self.max
    }

    /// Whether there is an INSERT that goes by the list of rules.
    pub(crate) fn has_inserts(&self) -> bool {
        let mut passed = self.passed.values();
        !self.ours.is_empty()
            || !self.selects.is_empty()
            || passed.any(|passed| passed.effect.inserts)
    }

    /// Whether there is an INSERT on the table of such a rule that cannot go over to keys: it takes its rows from a query, of which
    /// there is no other text than the client's, or values are sent as long data for it.
    pub(crate) fn keeps_native(&self, is_such: impl Fn(usize) -> bool) -> bool {
        let mut observed = self.passed.values().filter_map(|of| of.observed.as_ref());
        observed.any(|of| match of.insert {
            ObservedInsert::Query => is_such(of.rule),
            ObservedInsert::Rows { .. } => self.sends_long_data && is_such(of.rule),
            ObservedInsert::Unsupported(_) => false,
        })
    }

    /// The text of a statement on a rule's table.
    pub(crate) fn text(&self, id: u32) -> Option<ClientText<'_>> {
        let of_rows = self.ours.get(&id).map(|of| ClientText {
            text: of.computed.as_ref().map_or(&of.text, |of| &of.text),
            database: of.database.as_deref(),
            read_in: &of.read_in,
            has_names: of.plan.sees_last_insert_id(),
        });
        let of_query = || {
            self.selects.get(&id).map(|of| ClientText {
                text: &of.text,
                database: of.database.as_deref(),
                read_in: &of.read_in,
                has_names: true,
            })
        };
        of_rows.or_else(of_query)
    }

    /// How many parameters the client knows of in a statement on a rule's table.
    pub(crate) fn parameters(&self, id: u32) -> Option<usize> {
        let of_rows = self.ours.get(&id).map(Statement::parameters);
        let of_query = || self.selects.get(&id).map(SelectStatement::parameters);
        of_rows.or_else(of_query)
    }

    /// The number by which the server finds what a number of the client's means: its own last one may be one of ours.
    pub(crate) fn upstream(&self, id: u32) -> u32 {
        match self.number(id) {
            LAST_PREPARED => NONE,
            number => number,
        }
    }

    /// A statement was prepared that is passed on.
    pub(crate) fn passed(&mut self, statement: u32, passed: Passed) {
        self.last = statement;
        self.passed.insert(statement, passed);
    }
}
