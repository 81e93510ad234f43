//! How far the server's own ids have come on tables of rules that observe, and who may have asked for them.

use keywright_session::Mode;

use super::matched::key_columns;
use super::snapshot::Snapshot;
use crate::config::Config;

/// Accounts that are named.
const ACCOUNTS_SHOWN_MAX: usize = 10;

/// What one server says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counting {
    /// Which server.
    pub server: String,
    /// When, by its own clock, in UTC.
    pub at: String,
    /// The tables.
    pub counts: Vec<Count>,
    /// Accounts, with the number of their connections: all since the server's start where it keeps them, or those there are.
    pub accounts: Vec<String>,
    /// The host that this program comes from.
    pub own_host: String,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// Its rule.
    pub rule: usize,
    /// Schema and table.
    pub table: String,
    /// The next id.
    pub next: u64,
}

/// Nothing where no rule observes.
pub fn counting(snapshot: &Snapshot, config: &Config) -> Counting {
    let counts = counts(snapshot, config);
    match &snapshot.native {
        Some(native) if !counts.is_empty() => Counting {
            server: native.server.clone(),
            at: native.at.clone(),
            counts,
            accounts: shown(&native.accounts),
            own_host: native.own_host.clone(),
        },
        Some(_) | None => Counting::default(),
    }
}

/// The tables of rules that observe, as far as the server counts for them.
pub(super) fn counts(snapshot: &Snapshot, config: &Config) -> Vec<Count> {
    let observes = |rule: usize| {
        let configured = config.rules.get(rule);
        configured.is_some_and(|configured| configured.rule.mode == Mode::Observe)
    };
    key_columns(snapshot, config)
        .into_iter()
        .filter(|column| observes(column.rule) && column.auto_increment && !column.fenced)
        .filter_map(|column| {
            Some(Count {
                rule: column.rule,
                table: format!("{}.{}", column.schema, column.table),
                next: column.counter?,
            })
        })
        .collect()
}

fn shown(accounts: &[(String, u64)]) -> Vec<String> {
    let more = accounts.len().saturating_sub(ACCOUNTS_SHOWN_MAX);
    let first = accounts.iter().take(ACCOUNTS_SHOWN_MAX);
    let mut shown: Vec<String> = first
        .map(|(who, count)| format!("{who} ({count})"))
        .collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown
}
