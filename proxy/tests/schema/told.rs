//! What is told of a snapshot.

use keywright_proxy::config::Config;
use keywright_proxy::schema::{Finding, Severity, Snapshot, diagnose};

use crate::build::{MYSQL, plain, snapshot};

/// What is told, with `E`, `L`, `W` or `N` for how bad it is.
pub(crate) fn told(snapshot: &Snapshot, config: &Config) -> Vec<String> {
    let findings = diagnose(snapshot, config).into_iter();
    findings
        .map(|finding| {
            let Finding {
                severity, message, ..
            } = finding;
            let letter = match severity {
                Severity::Error => 'E',
                Severity::LeftOut => 'L',
                Severity::Warning => 'W',
                Severity::Note => 'N',
            };
            format!("{letter} {message}")
        })
        .collect()
}

/// What is told of `shop.orders` in a snapshot that was changed.
pub(crate) fn told_of(config: &Config, change: impl FnOnce(&mut Snapshot)) -> Vec<String> {
    let mut snapshot = snapshot(MYSQL, vec![plain("orders", "bigint")]);
    change(&mut snapshot);
    told(&snapshot, config)
}

/// Nothing.
pub(crate) const NONE: [&str; 0] = [];
