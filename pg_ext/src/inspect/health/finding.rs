//! What a check of health finds.

use std::borrow::Cow;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Info,
    /// Somebody should look.
    Warning,
    /// The promise, or the issuing of ids, is at stake.
    Error,
}

impl Severity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// This one if something is wrong.
    pub(super) fn unless(self, fine: bool) -> Self {
        if fine { Self::Ok } else { self }
    }

    pub(super) fn is_fine(self) -> bool {
        match self {
            Self::Ok | Self::Info => true,
            Self::Warning | Self::Error => false,
        }
    }
}

/// What a check found.
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) detail: String,
    pub(super) hint: Cow<'static, str>,
}
