//! `check`: what is wrong with store, tables and fences.

use anyhow::{Result, bail};
use clap::Args;
use keywright_core::Tag;
use keywright_proxy::config::{Config, Configured, Listener, Unchecked};
use keywright_proxy::highest::{self, Highest, Unknown};
use keywright_proxy::in_force;
use keywright_proxy::switch::rule_name;
use keywright_proxy::tables::{self, Inspection};
use keywright_session::Mode;
use keywright_store::switch::{RuleName, Switchboard};
use keywright_store::{Keys, Severity};

use super::{File, runtime};

#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    file: File,
    /// Apply the fence where a rule says `fence = true` and it is missing.
    #[arg(long)]
    fence: bool,
}

impl Check {
    pub(crate) fn run(&self) -> Result<()> {
        let (configured, keys) = self.file.open()?;
        runtime()?.block_on(async {
            let mut bad = 0;
            let mut looked = Vec::new();
            let config = as_in_force(&configured, &keys).await;
            for finding in keys.check(&config.tags()).await {
                println!("store: {}", finding.message);
                bad += usize::from(finding.severity == Severity::Error);
            }
            for listener in &config.listeners {
                let found = inspect(&config, listener, self.fence).await;
                for error in found.errors.iter().chain(&found.left_out) {
                    println!("{}: error: {error}", listener.bind);
                }
                for warning in &found.warnings {
                    println!("{}: warning: {warning}", listener.bind);
                }
                for note in &found.notes {
                    println!("{}: note: {note}", listener.bind);
                }
                bad += found.errors.len() + found.left_out.len();
                looked.push(found);
            }
            for error in tables::unmatched(&config, &looked) {
                println!("error: {error}");
                bad += 1;
            }
            for warning in stale_tags(&config, &keys).await {
                println!("store: warning: {warning}");
            }
            for warning in unseen(&config, &keys).await {
                println!("store: warning: {warning}");
            }
            if bad > 0 {
                bail!("{bad} problem(s) must be solved first");
            }
            for name in to_be_switched(&configured, &config) {
                println!("note: {name} has native auto-increment now: run switches its tables over to keys");
            }
            println!("ready to run");
            Ok(())
        })
    }
}

/// A rule that is switched has its fence, and its keys are above all ids, only if the store says so.
async fn as_in_force(config: &Config, keys: &Keys) -> Config {
    let standing = match config.rules.iter().any(|rule| rule.is_switched) {
        true => Switchboard::new(keys).standing().await.ok(),
        false => None,
    };
    in_force::effective(
        config,
        standing.as_ref().map(in_force::key_spaces_of).as_ref(),
    )
}

/// The rules that are to give keys, and do not yet.
fn to_be_switched(configured: &Config, config: &Config) -> Vec<String> {
    let rules = configured.rules.iter().zip(&config.rules);
    rules
        .filter(|(wanted, now)| wanted.rule.mode == Mode::Rewrite && now.rule.mode == Mode::Observe)
        .map(|(wanted, _)| wanted.name())
        .collect()
}

/// Tags that are to give ids which tables have already, and servers of which that is not known. That the store cannot be asked is told
/// elsewhere.
async fn stale_tags(config: &Config, keys: &Keys) -> Vec<String> {
    // A rule that gives no keys yet is switched above all ids.
    let gives_keys = |rule: &&Configured| !rule.is_switched || rule.rule.mode == Mode::Rewrite;
    let config = &Config {
        rules: config.rules.iter().filter(gives_keys).cloned().collect(),
        ..config.clone()
    };
    let (highest, unknown) = highest::by_tag(config).await;
    // Behind the tables: ids that were given meanwhile would seem to be still to be given.
    let tags = keys.tags().await.unwrap_or_default();
    let listing = |tag: &Tag| tags.iter().find(|listing| listing.tag == tag.as_str());
    // Of single columns `init` tells it, when it matters.
    let servers = unknown.iter().filter(|unknown| unknown.tag.is_none());
    let unknown = servers.map(|Unknown { what, .. }| {
        format!("whether tables have ids that a tag is still to give is not known of {what}")
    });
    highest
        .iter()
        .filter_map(|highest| Some((highest, listing(&highest.tag)?)))
        .filter(|(highest, listing)| highest.id >= listing.next)
        .map(|(Highest { tag, id, table }, listing)| {
            format!(
                "tag \"{tag}\" is at {}, and {table} has ids up to {id}: those between may be given a second time",
                listing.next
            )
        })
        .chain(unknown)
        .collect()
}

/// What programs have found of ids that came by none of them, on tables of rules that observe. That the store cannot be asked is told
/// elsewhere.
async fn unseen(config: &Config, keys: &Keys) -> Vec<String> {
    let observing: Vec<RuleName> = config.observing().map(rule_name).collect();
    let unseen = Switchboard::new(keys).unseen().await.unwrap_or_default();
    unseen
        .into_iter()
        .filter(|unseen| observing.contains(&unseen.rule))
        .map(|unseen| unseen.report)
        .collect()
}

/// What is found on one listener's server; that it cannot be looked at is a finding too.
pub(crate) async fn inspect(config: &Config, listener: &Listener, apply_fence: bool) -> Inspection {
    if config.rules.is_empty() {
        return Inspection::default();
    }
    let trouble = match &listener.admin {
        None => "there is no admin url".to_owned(),
        Some(admin) => match tables::inspect(config, listener, admin, apply_fence).await {
            Ok(found) => return found,
            Err(error) => format!("{error:#}"),
        },
    };
    let message = format!("tables could not be looked at: {trouble}");
    let mut found = Inspection::default();
    match listener.unchecked {
        Unchecked::Error => found.errors.push(message),
        Unchecked::Warning => found.warnings.push(format!(
            "{message}; going on as if names were compared with case and there were no triggers"
        )),
    }
    found
}
