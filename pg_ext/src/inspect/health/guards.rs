//! Of the triggers on keywright's own tables.

use super::finding::{Finding, Severity};
use crate::catalog::{cached, triggers};
use crate::failure::Failure;

/// Whether others are kept from changing keywright's tables, also a subscription.
pub(super) fn guards() -> Result<Finding, Failure> {
    let named = triggers::not_always(cached::extension()?.owner);
    Ok(Finding {
        severity: Severity::Error.unless(named.is_none()),
        detail: match named {
            None => "the triggers that keep others from changing keywright's tables are on".to_owned(),
            Some((count, names)) => format!(
                "{count} of the triggers that keep others from changing keywright's tables do not do so: {names}"
            ),
        },
        hint: "Run ALTER TABLE keywright.tag ENABLE ALWAYS TRIGGER only_by_functions, and the same for each that is named; make one that is \
               missing as keywright--0.1.0.sql does. Then look whether rows of these tables, such as increment and remainder in \
               keywright.tags, were changed meanwhile."
            .into(),
    })
}
