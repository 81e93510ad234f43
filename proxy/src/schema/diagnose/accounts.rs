//! Accounts that cannot come from where the server sees the proxy.

use crate::schema::finding::{Finding, Severity};
use crate::schema::matched::Matched;
use crate::schema::snapshot::Accounts;

/// Accounts that a warning names.
const ACCOUNTS_SHOWN_MAX: usize = 10;

pub(super) fn findings(matched: &Matched<'_>) -> Vec<Finding> {
    let message = match &matched.snapshot.accounts {
        None => None,
        Some(Accounts::Hidden) => Some(
            "mysql.user cannot be read with the listener's admin url: whether accounts may come from the program's address is not known"
                .to_owned(),
        ),
        Some(Accounts::Known { seen_as, elsewhere }) => elsewhere_only(seen_as, elsewhere),
    };
    let message = message.into_iter();
    message.map(|what| Severity::Warning.of(what)).collect()
}

fn elsewhere_only(seen_as: &str, elsewhere: &[(String, String)]) -> Option<String> {
    if elsewhere.is_empty() {
        return None;
    }
    let mut names: Vec<String> = elsewhere
        .iter()
        .take(ACCOUNTS_SHOWN_MAX)
        .map(|(user, host)| format!("{user}@{host}"))
        .collect();
    let more = elsewhere.len().saturating_sub(ACCOUNTS_SHOWN_MAX);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    Some(format!(
        "to the server, whoever comes through the program comes from \"{seen_as}\"; these accounts may not come from there: {}",
        names.join(", ")
    ))
}
