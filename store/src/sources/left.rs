//! Keys that tables have left, of a program that cannot follow yet.

use keywright_core::Cause;

use crate::failure::Failure;

/// Why there are none.
pub(super) fn cannot_follow(keys: &str) -> Failure {
    let failure = Failure::new(
        Cause::Suspended,
        format!("others have switched tables that had {keys}, and this program cannot follow yet"),
    );
    failure.hint("it follows when the transactions that have used these tables have ended")
}
