//! Tables that a configuration which is read while the program runs would move from one rule to another past the switch: nothing would see to it that the
//! keys which they get are above their ids, and programs that have not read it yet would go on giving them the keys from before.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use keywright_session::Mode;
use keywright_store::switch::{RuleName, Standing};

use super::InForce;
use super::sources::{KeySpaces, effective, held_by, key_spaces_of};
use crate::config::{Config, Configured};
use crate::schema::{
    Extent, KeyColumn, OfRule, Snapshot, Taken, may_share_tables, rules_of_tables, take_all,
};
use crate::switch::rule_name;

/// Names that are told of tables to which the same happens.
const NAMES_MAX: usize = 3;

/// The rules before a reload and after it.
pub struct Moves {
    views: Vec<View>,
    /// The rules that an attempt is about.
    held: BTreeSet<RuleName>,
}

/// Both configurations as they are in force, by what somebody knows of that.
struct View {
    before: Config,
    after: Config,
}

/// Why a table may not have another rule just so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// An attempt is about one of the rules: what is known of it may be over by then.
    Switching,
    /// It has keys that the other rule does not give.
    OtherKeys,
    /// The server makes ids there, which the keys in force may be, too.
    Native,
    /// The same, as far as this program knows: others have given keys by the rule before.
    NoFence,
}

/// The rule that a table has by one of the configurations.
#[derive(Clone, Copy)]
struct Side<'a> {
    configured: &'a Configured,
    column: Option<&'a KeyColumn>,
}

impl<'a> Side<'a> {
    fn of(config: &'a Config, its: Option<&'a OfRule>) -> Option<Self> {
        let its = its?;
        Some(Self {
            configured: config.rules.get(its.rule)?,
            column: its.column.as_ref(),
        })
    }

    /// The rule, if the table gets keys by it.
    fn gives(self) -> Option<&'a Configured> {
        let gives_keys = self.column.is_some() && self.configured.rule.mode == Mode::Rewrite;
        gives_keys.then_some(self.configured)
    }
}

impl InForce {
    /// What another configuration would move. `standing`: what the store says now, which is not always what connections go by yet.
    pub fn moves(&self, config: &Config, standing: Option<&Standing>) -> Moves {
        let state = self.state();
        let said = standing.map(key_spaces_of);
        let known: Vec<&KeySpaces> = state.known.iter().chain(&said).collect();
        let mut held = state.held.clone();
        held.extend(standing.map(held_by).unwrap_or_default());
        Moves::between(&state.config, config, &known, held)
    }
}

impl Moves {
    /// `known`: what is in force, as somebody knows it; connections may go by any of these. `held`: the rules that an attempt is about.
    #[must_use]
    pub fn between(
        before: &Config,
        after: &Config,
        known: &[&KeySpaces],
        held: BTreeSet<RuleName>,
    ) -> Self {
        let view = |known: &&KeySpaces| View {
            before: effective(before, Some(*known)),
            after: effective(after, Some(*known)),
        };
        Self {
            views: known.iter().map(view).collect(),
            held,
        }
    }

    /// Looks at the tables of all servers, if there may be such among them.
    ///
    /// # Errors
    /// There are, or that is not known.
    pub async fn are_none(&self) -> Result<()> {
        let Some(config) = self.to_be_read() else {
            return Ok(());
        };
        match self.refusal(&take_all(&config, Extent::Tables).await) {
            None => Ok(()),
            Some(why) => bail!(why),
        }
    }

    /// The rules of both, whose tables are to be looked at; `None`: whichever there are, none is moved.
    fn to_be_read(&self) -> Option<Config> {
        let mut views = self.views.iter();
        let may_be_some = views.any(|view| self.may_move(view) || view.may_bring());
        let view = self.views.first().filter(|_| may_be_some)?;
        let rules = view.after.rules.iter().chain(&view.before.rules);
        Some(Config {
            rules: rules.cloned().collect(),
            ..view.after.clone()
        })
    }

    /// What keeps the configuration from being put in force, out of what the servers say of the tables of its rules and of those before.
    #[must_use]
    pub fn refusal(&self, taken: &[Taken<'_>]) -> Option<String> {
        let mut moved: Vec<(String, Vec<String>)> = Vec::new();
        let mut unknown = Vec::new();
        for Taken { listener, snapshot } in taken {
            match snapshot {
                Ok(snapshot) => {
                    for view in &self.views {
                        self.add_moved(snapshot, view, &mut moved);
                    }
                }
                // A rule that is new to this program is in force by others, who look after its tables.
                Err(error) if self.views.iter().any(|view| self.may_move(view)) => {
                    unknown.push(format!("{}: {error:#}", listener.bind));
                }
                Err(_) => {}
            }
        }
        let moved = moved.into_iter();
        let mut lines: Vec<String> = moved
            .map(|(what, tables)| format!("{} {what}", some(&tables)))
            .collect();
        if !unknown.is_empty() {
            lines.push(format!(
                "whether tables would go from one rule to another past the switch is not known of {}",
                unknown.join(", ")
            ));
        }
        (!lines.is_empty()).then(|| lines.join("\n    "))
    }

    /// Adds what would become of tables, each with those of which that is so.
    fn add_moved(
        &self,
        snapshot: &Snapshot,
        View { before, after }: &View,
        moved: &mut Vec<(String, Vec<String>)>,
    ) {
        for its in rules_of_tables(snapshot, before, after) {
            let had = Side::of(before, its.before.as_ref());
            let has = Side::of(after, its.after.as_ref());
            let Some(why) = self.why_not(had, has) else {
                continue;
            };
            let what = why.told(had.map(|its| its.configured), has.map(|its| its.configured));
            match moved.iter_mut().find(|(known, _)| *known == what) {
                Some((_, tables)) if tables.contains(&its.table) => {}
                Some((_, tables)) => tables.push(its.table),
                None => moved.push((what, vec![its.table])),
            }
        }
    }

    fn why_not(&self, had: Option<Side<'_>>, has: Option<Side<'_>>) -> Option<Why> {
        let name = |side: Option<Side<'_>>| side.map(|its| rule_name(its.configured));
        let (had_name, has_name) = (name(had), name(has));
        // What becomes of a rule itself is another question.
        if had_name == has_name {
            return None;
        }
        let is_held = |name: &Option<RuleName>| {
            let name = name.as_ref();
            name.is_some_and(|name| self.held.contains(name))
        };
        if had.is_some() && (is_held(&had_name) || is_held(&has_name)) {
            return Some(Why::Switching);
        }
        let (was, now) = (had.and_then(Side::gives), has.and_then(Side::gives));
        let mut either = was.iter().chain(&now);
        if !either.any(|rule| is_in_force(rule)) {
            return None;
        }
        match (was, now) {
            (Some(was), Some(now)) if gives_the_same(was, now) => None,
            // On a server on which they are not in force by the rule before, nobody has given any.
            (Some(was), Some(now)) if has_same_keys(was, now) => not_fenced(had, has),
            (Some(_), _) => Some(Why::OtherKeys),
            (None, Some(_)) => not_fenced(had, has),
            (None, None) => None,
        }
    }

    /// Whether a table may go from a rule to another one or to none, where one of them is in force.
    fn may_move(&self, View { before, after }: &View) -> bool {
        let (names_before, names_after) = (names(before), names(after));
        let concerns = |rule: &Configured, name: &RuleName| -> [bool; 2] {
            [is_in_force(rule), self.held.contains(name)]
        };
        let mut had = before.rules.iter().zip(&names_before).enumerate();
        had.any(|(at_before, (had, had_name))| {
            let [had_is_in_force, had_is_held] = concerns(had, had_name);
            let stays_at = place(&names_after, had_name);
            if stays_at.is_none() && (had_is_in_force || had_is_held) {
                return true;
            }
            let mut has = after.rules.iter().zip(&names_after).enumerate();
            has.any(|(at_after, (has, has_name))| {
                let [has_is_in_force, has_is_held] = concerns(has, has_name);
                let is_other = (had_is_in_force || has_is_in_force) && !gives_the_same(had, has);
                // Of two rules for a table it has the first.
                let had_another = place(&names_before, has_name).is_some_and(|at| at < at_before);
                let stays = stays_at.is_some_and(|at| at < at_after);
                had_name != has_name
                    && (is_other || had_is_held || has_is_held)
                    && !had_another
                    && !stays
                    && may_share_tables(&had_name.tables, &has_name.tables)
            })
        })
    }
}

impl View {
    /// Whether a rule in force is new to the program.
    fn may_bring(&self) -> bool {
        let names_before = names(&self.before);
        let mut rules = self.after.rules.iter();
        rules.any(|rule| is_in_force(rule) && !names_before.contains(&rule_name(rule)))
    }
}

impl Why {
    /// What would become of tables, and what is to be done, behind their names.
    fn told(self, had: Option<&Configured>, has: Option<&Configured>) -> String {
        let (from, to) = (named(had), named(has));
        let in_force = had.into_iter().chain(has).filter(|rule| is_in_force(rule));
        let in_force: Vec<String> = in_force.map(Configured::name).collect();
        let way = format!(
            "set mode = \"observe\" first in {}, with all rules where they were, and send SIGHUP. When the tables are native, change the rules and \
             send SIGHUP, then set mode = \"rewrite\" again",
            in_force.join(" and in ")
        );
        match self {
            Self::Switching => format!(
                "would go from {from} to {to} while tables of one of them are being switched: send SIGHUP again when that is over"
            ),
            Self::OtherKeys => format!("would go from {from} to {to} past the switch: {way}"),
            Self::Native => {
                format!("would go from {from} to {to} past the switch and without a fence: {way}")
            }
            Self::NoFence => format!(
                "would get keys by {to}, which is in force and new to this program, and has no fence yet: send SIGHUP again when another program \
                 has set it, or restart this one"
            ),
        }
    }
}

/// As people call it, with where its keys come from.
fn named(rule: Option<&Configured>) -> String {
    match rule {
        None => "no rule".to_owned(),
        Some(rule) if rule.rule.mode == Mode::Rewrite => {
            format!("rule {} (\"{}\")", rule.name(), rule.spec)
        }
        Some(rule) => format!("rule {} (native auto-increment)", rule.name()),
    }
}

/// Of a rule as it is in force.
fn is_in_force(rule: &Configured) -> bool {
    rule.is_switched && rule.rule.mode == Mode::Rewrite
}

fn has_same_keys(was: &Configured, now: &Configured) -> bool {
    was.spec == now.spec && was.rule.column.eq_ignore_ascii_case(&now.rule.column)
}

/// Whether the second gives no keys but those that the first gives in the same place.
fn gives_the_same(was: &Configured, now: &Configured) -> bool {
    let is_on_all = match (&was.servers, &now.servers) {
        (Some(was), Some(now)) => was.is_superset(now),
        (_, _) => false,
    };
    is_in_force(was) && is_in_force(now) && has_same_keys(was, now) && is_on_all
}

/// Of a table that comes to keys in force, by the rule that it is to have. Behind the fence the server makes no ids. Where the program had no rule for the
/// table, others may have given keys by this one all the time, and only the fence that the rule wants tells.
fn not_fenced(had: Option<Side<'_>>, has: Option<Side<'_>>) -> Option<Why> {
    let has = has?;
    let column = has.column?;
    if column.fenced {
        return None;
    }
    let lacks_fence = column.auto_increment && column.can_have_fence();
    match had {
        Some(_) => Some(Why::Native),
        None => (has.configured.fence && lacks_fence).then_some(Why::NoFence),
    }
}

fn names(config: &Config) -> Vec<RuleName> {
    config.rules.iter().map(rule_name).collect()
}

fn place(names: &[RuleName], name: &RuleName) -> Option<usize> {
    names.iter().position(|its| its == name)
}

/// The first few names, and how many more there are.
fn some(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
