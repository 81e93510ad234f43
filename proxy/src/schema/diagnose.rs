//! What is to be said of a server, out of its snapshot alone.

mod accounts;
mod columns;
mod fence;
mod order;
mod programs;
mod server;
mod switching;
mod unmatched;
mod views;

pub use self::unmatched::unmatched;
use super::finding::Finding;
use super::matched::Matched;
use super::snapshot::Snapshot;
use crate::config::Config;

/// All that is to be said, the worst first.
pub fn diagnose(snapshot: &Snapshot, config: &Config) -> Vec<Finding> {
    let matched = Matched::new(snapshot, config);
    let mut findings = [
        fence::findings(&matched),
        views::findings(&matched),
        columns::findings(&matched),
        server::findings(&matched),
        switching::findings(&matched),
        order::findings(&matched),
        programs::findings(&matched),
        accounts::findings(&matched),
    ]
    .concat();
    findings.sort_by_key(|finding| finding.severity);
    findings
}
