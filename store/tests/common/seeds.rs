//! Which seeds simulations run.

use std::env;

/// What a variable of the environment says, where it is set.
pub(crate) fn number_from(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
    )
}
