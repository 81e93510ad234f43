//! What becomes of a statement on a rule's table: one function of what the rule says and what is known of the statement. Whoever acts,
//! counts or explains goes by it.

use keywright_core::Cause;
use keywright_rewrite::{
    LastInsertId, LoadConstruct, LoadPlan, Plan, QueryPlan, SelectConstruct, Unsupported,
};

use crate::rules::{Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Rules, SeveralRows};
use crate::step::StatementOutcome;

/// Rows that the first try of a statement with an unknown number of rows has keys for, if so many can be had.
pub const ROWS_FIRST: u64 = 64;

/// What a rule says of statements on its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    mode: Mode,
    on_explicit: OnExplicit,
    on_unsupported: OnUnsupported,
    on_ambiguous_id: OnAmbiguousId,
    several_rows: SeveralRows,
    /// A statement that fails leaves nothing behind.
    repeatable: bool,
    /// It has a table on which the server would number rows among the rule's keys.
    has_ahead: bool,
}

impl Policy {
    /// Of the rule with this index. `None`: it could not be read which rule is concerned, so that the strictest one may be.
    #[inline(always)]
    pub(crate) fn of(rules: &Rules, index: Option<usize>) -> Self {
        match index {
            Some(index) => match rules.rules().get(index) {
                Some(rule) => Self {
                    mode: rule.mode,
                    on_explicit: rule.on_explicit,
                    on_unsupported: rule.on_unsupported,
                    on_ambiguous_id: rule.on_ambiguous_id,
                    several_rows: rule.several_rows,
                    repeatable: rule.repeatable,
                    has_ahead: rules.has_ahead(index),
                },
                None => Self::unknown(Mode::Observe),
            },
            None => {
                let mut all = rules.rules().iter();
                match all.any(|rule| rule.mode == Mode::Rewrite) {
                    true => Self::unknown(Mode::Rewrite),
                    false => Self::unknown(Mode::Observe),
                }
            }
        }
    }

    fn unknown(mode: Mode) -> Self {
        Self {
            mode,
            on_explicit: OnExplicit::Keep,
            on_unsupported: OnUnsupported::Refuse,
            on_ambiguous_id: OnAmbiguousId::First,
            several_rows: SeveralRows::Spaced,
            repeatable: false,
            has_ahead: false,
        }
    }

    /// Whether it refuses what cannot be rewritten.
    fn refuses(self) -> bool {
        self.on_unsupported == OnUnsupported::Refuse && self.mode == Mode::Rewrite
    }
}

/// Whether rows of a statement bring keys of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnKeys {
    No,
    /// That is seen when it is carried out, and undone then if it leaves nothing behind.
    Perhaps,
    Yes,
}

impl From<bool> for OwnKeys {
    fn from(is_given: bool) -> Self {
        if is_given { Self::Yes } else { Self::No }
    }
}

/// How many keys a statement wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// One at most, or each is asked for by itself.
    Single,
    /// Several, written one by one.
    Several,
    /// As many as a query has rows, which the server numbers.
    Numbered,
    /// As many as a file has rows, whose text counts from the first of a few ranges.
    Loaded,
}

impl From<u64> for Keys {
    fn from(keys: u64) -> Self {
        match keys {
            0 | 1 => Self::Single,
            2.. => Self::Several,
        }
    }
}

/// What is known of a statement on a rule's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) own_keys: OwnKeys,
    /// A row wants a key.
    pub(crate) wants_keys: bool,
    /// How many.
    pub(crate) keys: Keys,
    /// It may stay unknown which of several rows go in, and so which id to report.
    pub(crate) is_id_unsure: bool,
    /// What forbids keys where a try that fails leaves nothing behind.
    pub(crate) obstacle: Option<Unsupported>,
    /// What forbids them where it may.
    pub(crate) obstacle_unrepeatable: Option<Unsupported>,
}

impl Facts {
    /// Of rows that are written. `wants_keys`: a row that is carried out now, or may be, wants one.
    #[inline(always)]
    pub(crate) fn of_rows(plan: &Plan, wants_keys: bool) -> Self {
        let may_skip = plan.ignore() || plan.on_duplicate();
        Self {
            own_keys: plan.explicit().into(),
            wants_keys,
            keys: plan.keys().into(),
            is_id_unsure: plan.rows() > 1
                && plan.last_insert_id() != LastInsertId::None
                && may_skip,
            obstacle: None,
            obstacle_unrepeatable: None,
        }
    }

    /// Of keys that are asked for before an INSERT.
    pub(crate) fn of_next_value() -> Self {
        Self {
            own_keys: OwnKeys::No,
            wants_keys: true,
            keys: Keys::Single,
            is_id_unsure: false,
            obstacle: None,
            obstacle_unrepeatable: None,
        }
    }

    /// Of the rows of a query.
    pub(crate) fn of_query(plan: &QueryPlan) -> Self {
        let is_tried_once = plan.rows_max().is_some_and(|rows| rows <= ROWS_FIRST);
        let again = |what| (!is_tried_once).then_some(Unsupported::SelectWith(what));
        let twice = again(SelectConstruct::Effects).filter(|_| plan.has_effects());
        Self {
            own_keys: plan.explicit().into(),
            wants_keys: !plan.explicit(),
            keys: match plan.is_single() {
                true => Keys::Single,
                false => Keys::Numbered,
            },
            is_id_unsure: plan.may_skip() && !plan.is_single(),
            obstacle: twice,
            obstacle_unrepeatable: twice.or(again(SelectConstruct::NotRepeatable)),
        }
    }

    /// Of the rows of a file.
    pub(crate) fn of_load(plan: &LoadPlan) -> Self {
        let again = |what| (!plan.is_local()).then_some(Unsupported::LoadWith(what));
        let twice = again(LoadConstruct::Effects).filter(|_| plan.has_effects());
        let reads = plan
            .reads()
            .then_some(Unsupported::LoadWith(LoadConstruct::ViewSeesLastInsertId));
        Self {
            own_keys: match plan.may_be_given() {
                true => OwnKeys::Perhaps,
                false => OwnKeys::No,
            },
            wants_keys: true,
            keys: Keys::Loaded,
            is_id_unsure: plan.may_skip(),
            obstacle: twice,
            obstacle_unrepeatable: reads.or(twice).or(again(LoadConstruct::NotRepeatable)),
        }
    }
}

/// Why a statement on a rule's table is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It brings a key of its own.
    Explicit,
    /// Which of its rows go in is not known, nor which id to report.
    AmbiguousId,
    /// Its keys do not follow from the first, which its client may count on.
    SeveralRows,
    /// The same of rows of a file, which count from one key to the next.
    SeveralLoaded,
    /// It cannot be rewritten exactly.
    Unsupported(Unsupported),
    /// Its query has more rows than that.
    SelectRows { rows: u64, is_limit: bool },
    /// Its file has more rows than that.
    LoadRows { rows_max: u64 },
}

impl Reason {
    /// By which name it is counted.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::AmbiguousId => "ambiguous_id",
            Self::SeveralRows | Self::SeveralLoaded => "several_rows",
            Self::Unsupported(what) => what.label(),
            Self::SelectRows { .. } => "insert_select_rows",
            Self::LoadRows { .. } => "load_data_rows",
        }
    }

    /// Its row of the table of failures.
    pub(crate) fn cause(self) -> Cause {
        match self {
            Self::Explicit => Cause::KeyExplicit,
            Self::Unsupported(Unsupported::TableAhead) => Cause::TableAhead,
            Self::Unsupported(Unsupported::TableUnshown) => Cause::TableUnshown,
            Self::Unsupported(Unsupported::TableUnanswered) => Cause::TableUnanswered,
            Self::AmbiguousId
            | Self::SeveralRows
            | Self::SeveralLoaded
            | Self::Unsupported(_)
            | Self::SelectRows { .. }
            | Self::LoadRows { .. } => Cause::StatementUnsupported,
        }
    }

    /// What the client is told, whose rule fills in this column. `None`: it could not be read which rule is concerned, if any is.
    pub(crate) fn message(self, column: Option<&str>) -> String {
        match self {
            Self::Explicit => {
                let column = column.unwrap_or_default();
                format!("the value of key column \"{column}\" is generated and may not be given")
            }
            Self::AmbiguousId => {
                "keywright cannot tell the first id of several rows with IGNORE or ON DUPLICATE KEY UPDATE".to_owned()
            }
            Self::SeveralRows => {
                "keywright: keys of this table hide how many there are, so those of several rows do not follow from LAST_INSERT_ID(); insert row by \
                 row, or say on_several_rows = \"allow\" in the rule if no client computes them".to_owned()
            }
            Self::SeveralLoaded => {
                "keywright: keys of this table hide how many there are, so the rows of LOAD DATA, which are counted from one key on, cannot have any, \
                 whatever on_several_rows says; insert them by INSERT".to_owned()
            }
            Self::Unsupported(Unsupported::TableAhead) => {
                "keywright gives this table no keys now: it has ids of its own that are still to be given; the log of keywright says what keeps it \
                 from going on above them".to_owned()
            }
            Self::Unsupported(Unsupported::TableUnshown) => {
                "keywright gives this table no keys: admin, its own account on this server, may not see it, so that it has no fence, and keys may be \
                 ids that it has; grant that account SELECT, ALTER and LOCK TABLES on the table's schema".to_owned()
            }
            Self::Unsupported(Unsupported::TableUnanswered) => {
                "keywright gives this table no keys yet: its server has not said in time whether admin, keywright's own account there, may see it; try \
                 again".to_owned()
            }
            Self::Unsupported(what) => {
                let has = if column.is_some() { "with" } else { "that may have" };
                format!("keywright cannot fill in a key exactly in {what}, on a table {has} a rule")
            }
            Self::SelectRows { rows, is_limit } => {
                let why = if is_limit {
                    "select_rows_max"
                } else {
                    "as many as can have keys at once"
                };
                format!(
                    "keywright: INSERT … SELECT of more than {rows} rows on a table with a rule ({why})"
                )
            }
            Self::LoadRows { rows_max } => format!(
                "keywright: LOAD DATA of more than {rows_max} rows into a table with a rule (select_rows_max)"
            ),
        }
    }
}

/// What becomes of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It gets keys.
    Rewrite,
    /// It goes out as it is: no row wants a key.
    Pass,
    /// It goes out as it is and this is counted, since its rule only observes.
    Observe(Option<StatementOutcome>),
    /// It goes out as it is although this forbids keys: its rule says so.
    Leave(Unsupported),
    Refuse(Reason),
}

/// What becomes of a statement that was read.
#[inline(always)]
pub(crate) fn decide(policy: Policy, facts: &Facts) -> Verdict {
    let gets_keys = gets_keys(policy, facts);
    match (policy.mode, gets_keys) {
        (Mode::Observe, Ok(true)) => Verdict::Observe(Some(StatementOutcome::Observed)),
        (Mode::Observe, Ok(false)) => Verdict::Observe(None),
        (Mode::Observe, Err(reason)) => {
            Verdict::Observe(Some(StatementOutcome::Passed(reason.label())))
        }
        (Mode::Rewrite, Ok(true)) => Verdict::Rewrite,
        (Mode::Rewrite, Ok(false)) => Verdict::Pass,
        (Mode::Rewrite, Err(Reason::Unsupported(what))) => match decide_unread(policy, what) {
            Ok(()) => Verdict::Leave(what),
            Err(reason) => Verdict::Refuse(reason),
        },
        (Mode::Rewrite, Err(reason)) => Verdict::Refuse(reason),
    }
}

/// Whether one goes out as it is that this keeps from being read or rewritten. On a table without fence the server would number its rows
/// among the rule's keys.
pub(crate) fn decide_unread(policy: Policy, what: Unsupported) -> Result<(), Reason> {
    let has_no_fence = matches!(
        what,
        Unsupported::TableAhead | Unsupported::TableUnshown | Unsupported::TableUnanswered
    );
    match policy.refuses() || policy.has_ahead || has_no_fence {
        true => Err(Reason::Unsupported(what)),
        false => Ok(()),
    }
}

/// Whether it gets keys, if its rule gives any.
#[inline(always)]
fn gets_keys(policy: Policy, facts: &Facts) -> Result<bool, Reason> {
    let is_given = match facts.own_keys {
        OwnKeys::No => false,
        OwnKeys::Perhaps => !policy.repeatable,
        OwnKeys::Yes => true,
    };
    if is_given && policy.on_explicit == OnExplicit::Refuse {
        return Err(Reason::Explicit);
    }
    if !facts.wants_keys {
        return Ok(false);
    }
    match (policy.several_rows, facts.keys) {
        (SeveralRows::Spaced, _) | (_, Keys::Single) | (SeveralRows::Apart, Keys::Several) => {}
        (SeveralRows::Refused, Keys::Several | Keys::Numbered) => return Err(Reason::SeveralRows),
        (SeveralRows::Refused | SeveralRows::Apart, Keys::Loaded) => {
            return Err(Reason::SeveralLoaded);
        }
        (SeveralRows::Apart, Keys::Numbered) => {
            let what = Unsupported::SelectWith(SelectConstruct::UnevenKeys);
            return Err(Reason::Unsupported(what));
        }
    }
    if facts.is_id_unsure && policy.on_ambiguous_id == OnAmbiguousId::Refuse {
        return Err(Reason::AmbiguousId);
    }
    let obstacle = match policy.repeatable {
        true => facts.obstacle,
        false => facts.obstacle_unrepeatable,
    };
    match obstacle {
        Some(what) => Err(Reason::Unsupported(what)),
        None => Ok(true),
    }
}

#[cfg(test)]
mod tests;
