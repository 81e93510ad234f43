//! What the operator should know.

/// One thing to be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub message: String,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It forbids starting.
    Error,
    /// A table gets no keys, or not all that a rule gives.
    LeftOut,
    /// It should be known.
    Warning,
    /// It should be known before the rules are in force.
    Note,
}

impl Severity {
    /// A finding that is so bad.
    pub(super) fn of(self, message: String) -> Finding {
        Finding {
            severity: self,
            message,
        }
    }
}
