//! The highest ids that tables with rules have already.

use std::fmt;

use keywright_core::Tag;
use keywright_session::{Mode, Pattern, Rules};
use keywright_store::KeySpec;

use super::inspect::Extent;
use super::key_column::KeyColumn;
use super::matched::{key_columns, plain_rules};
use super::take::{Taken, take_all};
use crate::config::{Config, Configured};

/// What says that an id was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A row has it.
    Row,
    /// The server's counter is behind it: it may have been given, to a row that is gone.
    Counter,
}

/// Something whose highest id is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The tag for which that matters; all, if none.
    pub tag: Option<Tag>,
    /// What it is, and why.
    pub what: String,
}

/// The highest id among the tables whose keys come from a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Highest {
    /// The tag.
    pub tag: Tag,
    /// The id.
    pub id: u64,
    /// What says so.
    pub origin: Origin,
    /// The table that has it, quoted.
    pub table: String,
}

/// What says so, in words that follow the id.
impl fmt::Display for Highest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.table;
        match self.origin {
            Origin::Row => write!(out, "the highest id in {table}"),
            Origin::Counter => write!(out, "the last id before the AUTO_INCREMENT of {table}"),
        }
    }
}

impl KeyColumn {
    /// The highest id that a row has or had, as far as the server knows; `None` where every row would have to be read, or none was.
    pub fn highest(&self) -> Option<(u64, Origin)> {
        let in_rows = self.largest?;
        // Ids that no row has any more count too.
        let next = self.counter.filter(|_| !self.fenced).unwrap_or(0);
        let counted = next.saturating_sub(1);
        Some(match counted > in_rows {
            true => (counted, Origin::Counter),
            false => (in_rows, Origin::Row),
        })
    }
}

/// Reads them by tag, over the servers of all listeners; and what is not known.
pub async fn read_highest_ids(config: &Config) -> (Vec<Highest>, Vec<Unknown>) {
    if config.tags().is_empty() {
        return (Vec::new(), Vec::new());
    }
    highest_ids(config, &take_all(config, Extent::Ids).await)
}

/// The same out of snapshots.
pub fn highest_ids(config: &Config, taken: &[Taken<'_>]) -> (Vec<Highest>, Vec<Unknown>) {
    among(config, taken, Which::All)
}

/// The highest ids among the tables that come to a tag by a configuration, and had no keys of it by the one `before`, where the switch does not take
/// tables over above all their ids. No server is asked if there can be no such table.
pub async fn read_highest_ids_of_new(
    config: &Config,
    before: &Config,
) -> (Vec<Highest>, Vec<Unknown>) {
    let mut rules = config.rules.iter();
    if !rules.any(|rule| numbers(rule).is_some()) || by_tables(config) == by_tables(before) {
        return (Vec::new(), Vec::new());
    }
    highest_ids_of_new(config, before, &take_all(config, Extent::Ids).await)
}

/// The same out of snapshots.
pub fn highest_ids_of_new(
    config: &Config,
    before: &Config,
    taken: &[Taken<'_>],
) -> (Vec<Highest>, Vec<Unknown>) {
    among(config, taken, Which::New { before })
}

/// The highest ids among the tables that come to a tag which the switch does not follow, where no configuration is known before: those that lack the fence
/// which they get as soon as a program gives them keys. Of others nothing is said.
pub fn highest_ids_of_unfenced(config: &Config, taken: &[Taken<'_>]) -> Vec<Highest> {
    among(config, taken, Which::Unfenced).0
}

/// Tables that are looked at, of those with rules.
#[derive(Clone, Copy)]
enum Which<'a> {
    All,
    /// Those that come to their tags, and had no keys of them by this configuration.
    New {
        before: &'a Config,
    },
    /// Those of tags that the switch does not follow that are to have their fence, and have none.
    Unfenced,
}

/// The numbers that a rule gives, and the column that gets them.
type Numbers<'a> = (&'a KeySpec, &'a str);

/// Those of a rule of a tag that the switch does not follow.
fn numbers(configured: &Configured) -> Option<Numbers<'_>> {
    let gives_keys = !configured.is_switched && configured.rule.mode == Mode::Rewrite;
    let is_of_tag = configured.spec.tag().is_some();
    (gives_keys && is_of_tag).then_some((&configured.spec, configured.rule.column.as_str()))
}

/// All rules by the tables that they are for: the order, too, decides which rule a table has.
fn by_tables(config: &Config) -> Vec<(&Pattern, Option<Numbers<'_>>)> {
    let rules = config.rules.iter();
    rules.map(|of| (&of.rule.table, numbers(of))).collect()
}

/// Whether a table comes to a tag, by its rule and by the one that it had before. A column that holds no numbers gets none.
fn comes_to_a_tag(column: &KeyColumn, config: &Config, before: &Config, rules: &Rules) -> bool {
    let now = config.rules.get(column.rule).and_then(numbers);
    let had = rules.find(column.schema.as_bytes(), column.table.as_bytes());
    let had = had.and_then(|(at, _)| before.rules.get(at));
    let holds_numbers = column.auto_increment || column.integer_max().is_some();
    holds_numbers && now.is_some() && now != had.and_then(numbers)
}

/// Whether a table is to have its fence, by a rule of a tag that the switch does not follow, and has none.
fn lacks_fence(column: &KeyColumn, config: &Config) -> bool {
    let rule = config.rules.get(column.rule);
    let wants_fence = rule.is_some_and(|rule| rule.fence && numbers(rule).is_some());
    wants_fence && column.auto_increment && !column.fenced
}

fn among(config: &Config, taken: &[Taken<'_>], which: Which<'_>) -> (Vec<Highest>, Vec<Unknown>) {
    let mut all: Vec<Highest> = Vec::new();
    let mut unknown = Vec::new();
    for Taken { listener, snapshot } in taken {
        let snapshot = match snapshot {
            Ok(snapshot) => snapshot,
            Err(error) => {
                unknown.push(Unknown {
                    tag: None,
                    what: format!("{}: {error:#}", listener.bind),
                });
                continue;
            }
        };
        let mut columns = key_columns(snapshot, config);
        columns.sort_by_key(|column| column.rule);
        match which {
            Which::All => {}
            Which::New { before } => {
                let rules = plain_rules(before, &snapshot.server);
                columns.retain(|column| comes_to_a_tag(column, config, before, &rules));
            }
            Which::Unfenced => columns.retain(|column| lacks_fence(column, config)),
        }
        for column in columns {
            let configured = config.rules.get(column.rule);
            let Some(tag) = configured.and_then(|configured| configured.spec.tag()) else {
                continue;
            };
            let table = column.quoted_table();
            match column.highest() {
                Some((id, origin)) => add(
                    &mut all,
                    Highest {
                        tag: tag.clone(),
                        id,
                        origin,
                        table,
                    },
                ),
                None => unknown.push(Unknown {
                    tag: Some(tag.clone()),
                    what: format!("{table}: no index begins with {}", column.quoted_name()),
                }),
            }
        }
    }
    (all, unknown)
}

fn add(all: &mut Vec<Highest>, new: Highest) {
    match all.iter_mut().find(|known| known.tag == new.tag) {
        Some(known) if known.id >= new.id => {}
        Some(known) => *known = new,
        None => all.push(new),
    }
}
