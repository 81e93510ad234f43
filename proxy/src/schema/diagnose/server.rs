//! Settings of the server that do not go with the rules.

use keywright_store::KeySpec;

use crate::config::{Config, Configured};
use crate::schema::finding::{Finding, Severity};
use crate::schema::matched::Matched;
use crate::schema::snapshot::Settings;

/// The servers' largest auto_increment_increment.
const INCREMENT_MAX: u64 = 65_535;

/// Only where people are told of everything: none of it changes what becomes of statements.
pub(super) fn findings(matched: &Matched<'_>) -> Vec<Finding> {
    let Some(_) = &matched.snapshot.surroundings else {
        return Vec::new();
    };
    let Some(context) = &matched.snapshot.context else {
        return Vec::new();
    };
    let messages = increment(&context.settings, matched.config)
        .into_iter()
        .chain(impatient(&context.settings, matched.config));
    messages.map(|what| Severity::Warning.of(what)).collect()
}

fn increment(settings: &Settings, config: &Config) -> Vec<String> {
    let increment = settings.increment;
    let mut found = Vec::new();
    if increment != 1 {
        let is_wanted = |rule: &Configured| apart(rule, config).is_some_and(|apart| apart > 1);
        // It may be left from the time when servers divided the numbers among themselves.
        let advice = match config.rules.iter().any(is_wanted) {
            true => "",
            false => {
                "; where no table counts natively any more, SET GLOBAL auto_increment_increment = 1, auto_increment_offset = 1, and in the server's \
                 configuration"
            }
        };
        found.push(format!(
            "auto_increment_increment is {increment}: keys of one statement are spaced by it{advice}"
        ));
    }
    for configured in &config.rules {
        let Some(apart) = apart(configured, config) else {
            continue;
        };
        if !increment.is_multiple_of(apart) {
            let advice = match apart <= INCREMENT_MAX {
                true => format!("make it {apart}"),
                false => {
                    "no value of it is right, so let clients ask for them otherwise".to_owned()
                }
            };
            found.push(format!(
                "keys of {} are {apart} apart, and auto_increment_increment is {increment}, by which drivers compute the keys \
                 of several rows from the first: {advice}",
                configured.name()
            ));
        }
    }
    found
}

/// How far the keys of a rule are apart, where that is the same for all.
fn apart(configured: &Configured, config: &Config) -> Option<u64> {
    match &configured.spec {
        KeySpec::Stride(stride) => Some(stride.residue().modulus()),
        KeySpec::Snowflake => Some(config.store.layout().apart()),
        KeySpec::Segment(_) | KeySpec::Readable(_) | KeySpec::Uuid { .. } => None,
    }
}

/// A server that gives clients up before the proxy does counts them against the proxy's address.
fn impatient(settings: &Settings, config: &Config) -> Option<String> {
    let server_ms = settings.connect_timeout_s.saturating_mul(1_000);
    let ours_ms = config.answer_ms_max;
    (server_ms <= ours_ms).then(|| {
        format!(
            "connect_timeout is {server_ms} ms, and answer_ms_max {ours_ms}: after max_connect_errors clients that say nothing the \
             server blocks the program's address (1129). Make answer_ms_max smaller"
        )
    })
}
