//! What the server may leave out of a native INSERT at the fence.

use keywright_rewrite::Plan;
use keywright_wire::answer::End;

/// Which rows the server may leave out at the fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeavesOut {
    /// None: it would refuse the statement.
    Nothing,
    /// All of an INSERT IGNORE: none has a key.
    All,
    /// Some: others may have one.
    Some,
    /// The same of a query that was prepared: by newer rules it does not go out again.
    OfPreparedQuery,
}

impl LeavesOut {
    /// Of an INSERT.
    pub(crate) fn of(plan: &Plan) -> Self {
        // A statement with parameters may be carried out for many rows.
        let is_mixed = (plan.explicit() && plan.rows() > 1) || !plan.key_parameters().is_empty();
        match (plan.ignore(), is_mixed) {
            (false, _) => Self::Nothing,
            (true, false) => Self::All,
            (true, true) => Self::Some,
        }
    }

    /// Whether so many rows may be what is left.
    pub(crate) fn may_be_so(self, affected_rows: u64) -> bool {
        match self {
            Self::Nothing | Self::OfPreparedQuery => false,
            Self::All => affected_rows == 0,
            Self::Some => true,
        }
    }
}

/// Whether a statement that was answered so may be one of whose rows some were left out.
pub(crate) fn may_have_left_out(end: Option<End>) -> bool {
    matches!(end, Some(End::Ok(done)) if done.warnings > 0)
}

/// How an INSERT goes out natively.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Native {
    pub(crate) rule: usize,
    pub(crate) leaves_out: LeavesOut,
    /// Rows for which the server makes an id at most, if that is known.
    pub(crate) rows_max: Option<u64>,
}

impl Native {
    /// Of an INSERT with written rows.
    pub(crate) fn of(rule: usize, plan: &Plan) -> Self {
        // A key of the application's may raise the server's counter far.
        let is_plain = !plan.explicit() && plan.key_parameters().is_empty();
        Self {
            rule,
            leaves_out: LeavesOut::of(plan),
            rows_max: is_plain.then(|| plan.rows()),
        }
    }
}
