//! What this transaction changed of the identity: what is not committed issues nothing.

use keywright_core::cause::Cause;

use crate::failure::Failure;
use crate::identity::{numbers, register};
use crate::server::backend::BackendCell;
use crate::server::{process, transaction};

/// Whether this database had an identity before the transaction with that number began.
static PAST: BackendCell<Option<(u64, bool)>> = BackendCell::new(None);

/// What is about to be changed was committed before this transaction: the database has had an identity.
pub fn note_past() {
    PAST.set(Some((transaction::number(), true)));
}

/// Whether the database had an identity before this transaction. To be asked before the transaction changes it for the
/// first time; the answer is kept until the transaction ends.
pub fn has_past() -> Result<bool, Failure> {
    let ours = process::database().to_u32();
    let known = PAST
        .get()
        .filter(|(of, _)| transaction::number_if_any() == Some(*of));
    if let Some((_, has_past)) = known {
        return Ok(has_past);
    }
    let is_labelled =
        numbers::label()?.is_some_and(|label| label.has_number() && label.is_of_here());
    let has_past = is_labelled || register::read()?.has_had_any(ours);
    PAST.set(Some((transaction::number(), has_past)));
    Ok(has_past)
}

/// Whether this transaction dropped what was committed before it.
pub fn is_replaced() -> bool {
    let known = PAST
        .get()
        .filter(|(of, _)| transaction::number_if_any() == Some(*of));
    known.is_some_and(|(_, has_past)| has_past)
}

/// Fails if one of the parts of an identity is not committed, unless it is the first that this database has: a rollback
/// would bring the old one back, which could issue the same numbers.
///
/// # Errors
/// It is not, with the name of the part.
pub fn require_committed(parts: &[(bool, &str)]) -> Result<(), Failure> {
    let Some((_, changed)) = parts.iter().find(|(is_uncommitted, _)| *is_uncommitted) else {
        return Ok(());
    };
    if has_past()? {
        Err(failure(changed))
    } else {
        Ok(())
    }
}

/// The failure of an identity that this transaction changed.
pub fn failure(changed: &str) -> Failure {
    Failure::new(
        Cause::IdentityUncommitted,
        format!("{changed} was changed by this transaction, which has not committed"),
    )
    .detail("A rollback would bring back what was before, which could issue the same ids.")
    .hint("COMMIT first, then ask for ids.")
}
