//! `check`: what is wrong with store, tables and fences.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Result, bail};
use clap::Args;
use keywright_core::Tag;
use keywright_proxy::config::{Config, Configured, LayoutTime, Listener, Unchecked};
use keywright_proxy::in_force::{effective, key_spaces_of};
use keywright_proxy::schema::{self, Extent, Finding, Severity, Snapshot};
use keywright_proxy::serve::listening::addresses_missing;
use keywright_proxy::switch::rule_name;
use keywright_session::Mode;
use keywright_store::switch::{IdSpan, KeySpace, RuleName, Standing, Switchboard};
use keywright_store::{Clock, Keys, SystemClock};
use serde::Serialize;

use super::forgotten::try_to_forget_left;
use super::intended::{Intended, intended};
use super::stale::stale_tags;
use super::{File, Format, hidden, left_over, ordered, runtime};

#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    file: File,
    /// Apply the fence where a rule says `fence = true` and it is missing.
    #[arg(long)]
    fence: bool,
    /// Fail on warnings, too.
    #[arg(long)]
    strict: bool,
    /// Check for a reload (SIGHUP): a layout that has no time now is a warning, as the program that runs goes on
    #[arg(long)]
    reload: bool,
    /// How it is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// All that is to be said.
#[derive(Serialize)]
struct Report {
    /// Whether nothing keeps `run` from starting, or, with `--reload`, from taking the configuration over.
    ready: bool,
    findings: Vec<Reported>,
}

/// One thing that is to be said.
#[derive(Serialize)]
struct Reported {
    /// The store, or a listener; `None`: the configuration as a whole.
    place: Option<String>,
    severity: &'static str,
    message: String,
    /// All that it is of, where those are many and the message names some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tables: Vec<String>,
    #[serde(skip)]
    is_bad: bool,
}

impl Reported {
    fn new(place: Option<&str>, severity: Severity, message: String) -> Reported {
        Reported {
            place: place.map(str::to_owned),
            severity: name_of(severity),
            message,
            tables: Vec::new(),
            is_bad: is_bad(severity),
        }
    }

    fn of_listener(listener: &Listener, finding: Finding) -> Reported {
        Reported {
            tables: finding.tables,
            ..Reported::new(Some(&listener.bind), finding.severity, finding.message)
        }
    }
}

impl fmt::Display for Reported {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(out, "{place}: ")?;
        }
        write!(out, "{}: {}", self.severity, self.message)
    }
}

const STORE: Option<&str> = Some("store");
/// How it ends what is said of an address that the machine lacks.
const NOT_HERE: &str = "; run does not start on this machine";

impl Check {
    pub(crate) fn run(&self) -> Result<()> {
        let (configured, keys) = self.file.open()?;
        let findings = runtime()?.block_on(self.findings(&configured, &keys));
        let forbids =
            |reported: &&Reported| reported.is_bad || self.strict && reported.severity == WARNING;
        let bad = findings.iter().filter(forbids).count();
        let ready = bad == 0;
        let starts_here = !findings.iter().any(|told| told.message.ends_with(NOT_HERE));
        match self.format {
            Format::Text => findings.iter().for_each(|told| println!("{told}")),
            Format::Json => println!("{}", serde_json::to_string(&Report { ready, findings })?),
        }
        if !ready {
            bail!("{bad} problem(s) must be solved first");
        }
        if self.format == Format::Text {
            match starts_here {
                true => println!("ready to run"),
                false => println!("ready to run, but not on this machine"),
            }
        }
        Ok(())
    }

    async fn findings(&self, configured: &Config, keys: &Keys) -> Vec<Reported> {
        let standing = standing(configured, keys).await;
        let config = effective(configured, standing.as_ref().map(key_spaces_of).as_ref());
        let of_files = configured.file_warnings().into_iter();
        let of_files = of_files.map(|warning| Reported::new(None, Severity::Warning, warning));
        let mut told: Vec<Reported> = of_files.collect();
        // It may be checked elsewhere than where it runs, or before an address comes over.
        let missing = addresses_missing(configured).into_iter();
        let missing = missing.map(|what| format!("{what}{NOT_HERE}"));
        told.extend(missing.map(|what| Reported::new(None, Severity::Warning, what)));
        told.extend(self.of_layout(configured));
        told.extend(of_stores(configured, &config, keys).await);
        let board = Switchboard::new(keys);
        if self.fence {
            // Before fences are set.
            try_to_forget_left(&config, &board).await;
        }
        let before = left_over::before(&config, &board).await;
        let mut inspected = Vec::new();
        for listener in &config.listeners {
            let of_listener = inspect(&config, listener, self.fence).await;
            let findings = of_listener.findings.iter().cloned();
            let findings = findings.chain(schema::elsewhere(&config, listener).await);
            told.extend(findings.map(|of| Reported::of_listener(listener, of)));
            inspected.push(of_listener);
        }
        let snapshots: Vec<Option<&Snapshot>> =
            inspected.iter().map(|of| of.snapshot.as_ref()).collect();
        let left = left_over::fences(&config, (&board, before), &snapshots).await;
        for (listener, findings) in config.listeners.iter().zip(left) {
            let findings = findings.into_iter();
            told.extend(findings.map(|of| Reported::of_listener(listener, of)));
        }
        let of_users = of_users(&config, keys).await.into_iter();
        told.extend(of_users.map(|warning| Reported::new(STORE, Severity::Warning, warning)));
        let errors = unmatched(&config, &inspected).into_iter();
        let errors = errors.chain(ordered::in_tables(&config, keys).await);
        let snapshots = inspected.iter().filter_map(|of| of.snapshot.as_ref());
        let errors = errors.chain(snapshots.flat_map(|its| hidden::stuck(&config, its)));
        told.extend(errors.map(|error| Reported::new(None, Severity::Error, error)));
        let (stale, unknown) = stale_tags(&config, keys).await;
        let warnings = stale.iter().map(|its| its.told(&config)).chain(unknown);
        let warnings = warnings.chain(unseen(&config, keys).await);
        let warnings = warnings.chain(late(&config, keys, &inspected).await);
        let warnings = warnings.chain(ordered::on_ports(&config, keys).await);
        let warnings = warnings.chain(ordered::under_names(&config, keys).await);
        told.extend(warnings.map(|warning| Reported::new(STORE, Severity::Warning, warning)));
        let left_out = left_over::rules((&config, self.file.config.as_path()), keys).await;
        let left_out = left_out.into_iter();
        told.extend(left_out.map(|of| Reported::new(STORE, of.severity, of.message)));
        let is_ready = !told.iter().any(|told| told.is_bad);
        let file = (configured, self.file.config.as_path());
        for intended in intended(file, keys, standing.as_ref()).await {
            match intended {
                Intended::Stays(warning) => {
                    told.push(Reported::new(None, Severity::Warning, warning));
                }
                Intended::Switched(note) if is_ready => {
                    told.push(Reported::new(None, Severity::Note, note));
                }
                Intended::Switched(_) => {}
            }
        }
        told
    }

    /// Whether snowflake keys can be given now, and for how long.
    fn of_layout(&self, configured: &Config) -> Option<Reported> {
        let (severity, message) = match configured.layout_time(SystemClock.wall_ms())? {
            // A program that runs keeps its layout until it is started again, and other keys go on.
            LayoutTime::Unusable(message) if !self.reload => (Severity::Error, message),
            LayoutTime::Unusable(message) | LayoutTime::Warning(message) => {
                (Severity::Warning, message)
            }
        };
        Some(Reported::new(None, severity, message))
    }
}

/// What is wrong with the stores, and with the servers that are fed.
async fn of_stores(configured: &Config, config: &Config, keys: &Keys) -> Vec<Reported> {
    let mut told = Vec::new();
    for finding in keys.check(&tags(configured, config)).await {
        let severity = match finding.severity {
            keywright_store::Severity::Error => Severity::Error,
            keywright_store::Severity::Warning => Severity::Warning,
        };
        let named = format!("store {}", finding.store);
        let place = match finding.store.as_str() {
            "" => "store",
            _ => &named,
        };
        told.push(Reported::new(Some(place), severity, finding.message));
    }
    for feed in &config.feeds {
        let place = format!("feed {}", feed.address());
        for failure in keys.check_feed(feed).await {
            let message = failure.to_string();
            told.push(Reported::new(Some(&place), Severity::Error, message));
        }
    }
    told
}

/// Rows of users that cannot be read, and that nobody can log in where only users are let in. That the store cannot be asked is told elsewhere.
async fn of_users(config: &Config, keys: &Keys) -> Vec<String> {
    let Some(port) = config.ports.iter().find(|port| port.has_users) else {
        return Vec::new();
    };
    let Ok(users) = keys.users().await else {
        return Vec::new();
    };
    let left_out = users.left_out().iter();
    let left_out = left_out.map(|row| format!("{row}; it is left out: mend the row"));
    let mut told: Vec<String> = left_out.collect();
    if users.is_empty() {
        told.push(format!(
            "listener {} lets in users only, and there are none yet: keywright init --admin NAME adds the first administrator",
            port.bind
        ));
    }
    told
}

/// A rule that is switched has its fence, and its keys are above all ids, only if the store says so.
async fn standing(config: &Config, keys: &Keys) -> Option<Standing> {
    match config.rules.iter().any(|rule| rule.is_switched) {
        true => Switchboard::new(keys).standing().await.ok(),
        false => None,
    }
}

/// The tags that are in force, and those that the file wants: `run` does not start without either.
fn tags(configured: &Config, config: &Config) -> Vec<Tag> {
    let mut tags = config.tags();
    let known: BTreeSet<Tag> = tags.iter().cloned().collect();
    let wanted = configured.tags().into_iter();
    tags.extend(wanted.filter(|tag| !known.contains(tag)));
    tags
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

/// Tables that came while keys are given, with ids that keys may have too: those that still have no fence, and what programs have found of
/// others. That the store cannot be asked is told elsewhere.
async fn late(config: &Config, keys: &Keys, inspected: &[Inspected]) -> Vec<String> {
    let board = Switchboard::new(keys);
    let mut told = Vec::new();
    for snapshot in inspected.iter().filter_map(|of| of.snapshot.as_ref()) {
        for column in schema::key_columns(snapshot, config) {
            let rule = config.rules.get(column.rule);
            let gives_keys =
                |rule: &&Configured| rule.is_switched && rule.rule.mode == Mode::Rewrite;
            let rule = rule.filter(|rule| gives_keys(rule) && rule.fence);
            let space = rule.and_then(|rule| KeySpace::of(&rule.spec));
            let counts = column.auto_increment && !column.fenced;
            let (Some(space), Some(next)) = (space, column.counter.filter(|_| counts)) else {
                continue;
            };
            let span = board.span(&space).await.ok().flatten();
            let is_among = |span: &IdSpan| span.first < next && next <= span.bound;
            if let Some(span) = span.filter(is_among) {
                told.push(is_late(&column.quoted_table(), next, span.first));
            }
        }
    }
    told.extend(board.late().await.unwrap_or_default());
    told
}

/// That a table's next id is among the keys, of which this is the first.
fn is_late(table: &str, next: u64, first: u64) -> String {
    let last = next.saturating_sub(1);
    format!(
        "{table} has no fence yet, and an AUTO_INCREMENT of {next}, while keys are given from {first} on: those of its ids that are from {first} to \
         {last} may be given a second time"
    )
}

/// One listener's server, and what is to be said of it.
pub(crate) struct Inspected {
    /// `None` where nobody looked, or the server could not be asked.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) findings: Vec<Finding>,
}

/// What is to be said of one listener's server; that it cannot be asked is a finding too.
pub(crate) async fn inspect(config: &Config, listener: &Listener, apply_fence: bool) -> Inspected {
    if config.rules.is_empty() {
        return Inspected {
            snapshot: None,
            findings: Vec::new(),
        };
    }
    match read(config, listener, Extent::All, apply_fence).await {
        Ok(inspected) => inspected,
        Err(error) => Inspected {
            snapshot: None,
            findings: vec![not_asked(listener, &error)],
        },
    }
}

/// Reads a listener's server, applies the fence there if that is wanted, and says what is to be said.
pub(crate) async fn read(
    config: &Config,
    listener: &Listener,
    extent: Extent,
    apply_fence: bool,
) -> Result<Inspected> {
    let mut snapshot = schema::take(config, listener, extent).await?;
    if apply_fence {
        schema::apply_fence(config, listener, &mut snapshot).await?;
    }
    Ok(Inspected {
        findings: schema::diagnose(&snapshot, config),
        snapshot: Some(snapshot),
    })
}

fn not_asked(listener: &Listener, error: &anyhow::Error) -> Finding {
    let hint = match listener.admin {
        Some(_) => "",
        None => ": write admin = \"mysql://USER@HOST:PORT\", or check = \"warn\" to go on unseen",
    };
    let message = format!("tables could not be looked at: {error:#}{hint}");
    match listener.unchecked {
        Unchecked::Error => Severity::Error.of(message),
        Unchecked::Warning => Severity::Warning.of(format!(
            "{message}; going on as if names were compared with case and there were no triggers"
        )),
    }
}

/// Rules that no table of any server is for, if all servers could be asked.
pub(crate) fn unmatched(config: &Config, inspected: &[Inspected]) -> Vec<String> {
    let snapshots: Option<Vec<&Snapshot>> = inspected
        .iter()
        .map(|inspected| inspected.snapshot.as_ref())
        .collect();
    match snapshots {
        Some(snapshots) if !snapshots.is_empty() => schema::unmatched(config, &snapshots),
        Some(_) | None => Vec::new(),
    }
}

fn is_bad(severity: Severity) -> bool {
    match severity {
        Severity::Error | Severity::LeftOut => true,
        Severity::Warning | Severity::Note => false,
    }
}

const WARNING: &str = "warning";

fn name_of(severity: Severity) -> &'static str {
    match severity {
        Severity::Error | Severity::LeftOut => "error",
        Severity::Warning => WARNING,
        Severity::Note => "note",
    }
}

#[cfg(test)]
mod tests {
    use super::is_late;

    #[test]
    fn ids_that_may_come_again_are_named_from_the_first_key_on() {
        assert_eq!(
            is_late("`shop`.`orders`", 1804, 500),
            "`shop`.`orders` has no fence yet, and an AUTO_INCREMENT of 1804, while keys are given from 500 on: those of its ids that are from 500 to \
             1803 may be given a second time"
        );
    }
}
