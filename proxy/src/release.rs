//! Rolling back: the statements by which tables number their rows themselves again. They are printed, never carried out.

mod issued;

use std::fmt::Write as _;

use anyhow::{Result, bail};
use keywright_session::Pattern;

pub use self::issued::Issued;
use self::issued::OfRule;
use crate::config::{Config, Configured};
use crate::schema::{self, ADMIN_SQL_MODE, Extent, KeyColumn, Origin, quoted_string};

/// Numbers of 2⁵³ and above lose their last digits in clients that read numbers as doubles.
const DOUBLE_MAX: u64 = 1 << 53;

/// A server, and the key columns of its tables.
struct Shard {
    bind: String,
    upstream: String,
    columns: Vec<KeyColumn>,
}

impl Shard {
    fn of_rule(&self, rule: usize) -> impl Iterator<Item = &KeyColumn> {
        self.columns
            .iter()
            .filter(move |column| column.rule == rule)
    }
}

/// The highest id of one table or of several, and what it is: a row's, or the last one that a counter has given.
fn shown(highest: Option<(u64, Origin)>) -> String {
    match highest {
        Some((id, Origin::Row)) => format!("highest id {id}"),
        Some((id, Origin::Counter)) => {
            format!("AUTO_INCREMENT {}, above all rows", id.saturating_add(1))
        }
        None => "highest id not known".to_owned(),
    }
}

/// Whether the server numbers a column now, if it ever does.
fn is_numbered(column: &KeyColumn) -> bool {
    !column.auto_increment || (column.counter.is_some() && !column.fenced)
}

/// What decides what is printed of a rule besides its tables.
struct OfKeys {
    issued: OfRule,
    /// Its tag is in a further store: the rule may be in force since before it moved there.
    may_have_moved: bool,
}

/// What to type, for one rule's pattern or for all rules.
///
/// # Errors
/// No rule has that pattern; a server cannot be asked.
pub async fn statements(config: &Config, pattern: Option<&str>, issued: &Issued) -> Result<String> {
    let is_wanted = |configured: &&Configured| {
        pattern.is_none_or(|pattern| written(&configured.rule.table) == pattern)
    };
    if !config.rules.iter().any(|rule| is_wanted(&rule)) {
        match pattern {
            Some(pattern) => bail!(
                "no rule has table = \"{pattern}\": release needs a configuration that still has the rule"
            ),
            None => bail!("there are no rules: release needs a configuration that still has them"),
        }
    }
    let mut shards: Vec<Shard> = Vec::new();
    let mut are_all_known = true;
    let mut out = String::new();
    for listener in &config.listeners {
        if shards
            .iter()
            .any(|shard| shard.upstream == listener.upstream)
        {
            continue;
        }
        match &listener.admin {
            Some(_) => {
                let snapshot = schema::take(config, listener, Extent::Ids).await?;
                shards.push(Shard {
                    bind: listener.bind.clone(),
                    upstream: listener.upstream.clone(),
                    columns: schema::key_columns(&snapshot, config),
                });
            }
            // Writing to a String cannot fail, here and below.
            None => {
                are_all_known = false;
                let _ = writeln!(
                    out,
                    "-- {}: no admin url, so its tables are not known: do for them what is said of the others",
                    listener.bind
                );
            }
        }
    }
    for (index, configured) in config.rules.iter().enumerate() {
        if is_wanted(&configured) {
            let mut columns = shards.iter().flat_map(|shard| shard.of_rule(index));
            let is_native = are_all_known && columns.all(is_numbered);
            of_rule(
                &mut out,
                (index, configured),
                &OfKeys {
                    issued: issued.of(configured, config, is_native),
                    may_have_moved: configured
                        .spec
                        .tag()
                        .is_some_and(|tag| config.store.further_store_of(tag).is_some()),
                },
                &shards,
            );
        }
    }
    Ok(out)
}

fn written(pattern: &Pattern) -> String {
    format!("{}.{}", pattern.schema(), pattern.table())
}

fn of_rule(
    out: &mut String,
    (index, configured): (usize, &Configured),
    of_keys: &OfKeys,
    shards: &[Shard],
) {
    let columns = || shards.iter().flat_map(|shard| shard.of_rule(index));
    let tables = columns().count();
    let highest = columns()
        .filter_map(KeyColumn::highest)
        .max_by_key(|(id, _)| *id);
    let name = written(&configured.rule.table);
    let _ = writeln!(
        out,
        "-- Rule {}: {}, column {}. {tables} table(s) on {} server(s); of all: {}.",
        index + 1,
        in_comment(&name),
        in_comment(&configured.rule.column),
        shards.len(),
        shown(highest)
    );
    if tables == 0 {
        return;
    }
    steps_before(out, configured, of_keys.issued.is_hidden);
    if tables > 1 {
        let _ = writeln!(
            out,
            "--    A server counts for each table by itself: ids are unique within a table from now on, no longer over all {tables}."
        );
    }
    let floor = of_keys.issued.largest.unwrap_or(0);
    let highest = highest.map_or(0, |(id, _)| id).max(floor);
    let floor = match shards.len() {
        1 => floor,
        _ => highest,
    };
    above_what(out, &of_keys.issued, (floor, highest));
    for (number, shard) in shards.iter().enumerate() {
        of_shard(out, index, shard, (number + 1, shards.len()), floor);
    }
    step_behind(out, configured, of_keys.may_have_moved);
}

/// What comes before the statements.
fn steps_before(out: &mut String, configured: &Configured, is_hidden: bool) {
    if configured.is_switched && !is_hidden {
        let _ = writeln!(
            out,
            "-- While programs run there is a way without a stop: mode = \"observe\" for this rule, and SIGHUP for one program after the other.\n\
             -- What follows is for tables that are to do without any program."
        );
    }
    let _ = writeln!(
        out,
        "-- 1. Stop everybody who writes to these tables, on every server. From here on no key may be issued until step 4."
    );
    let _ = match configured.is_switched {
        // SIGHUP refuses it: they would go on issuing keys by the old configuration.
        true => writeln!(
            out,
            "-- 2. Stop every program. If one has issued keys since this was printed, print it again now: that needs the rule in the configuration.\n\
             --    Then take the rule out of it. A program that starts with the rule issues keys, and puts the fence up again."
        ),
        false => writeln!(
            out,
            "-- 2. Take the rule out of the configuration of every program and send each SIGHUP (connections keep the old rule: let\n\
             --    them end), or stop the programs. While a rule with fence = true is there, the fence is put up again. Keep a copy of the\n\
             --    configuration: if a program has issued keys since this was printed, print it again now, with --config COPY."
        ),
    };
    let _ = writeln!(
        out,
        "-- 3. Run what follows. Each counter is computed on its server when the statement runs. A dump that was taken before carries the\n\
         --    fence as its tables' AUTO_INCREMENT: where it is restored without Keywright, run the same behind it."
    );
}

/// Above what counters go on, and what that means.
fn above_what(out: &mut String, issued: &OfRule, (floor, highest): (u64, u64)) {
    if let Some(largest) = issued.largest {
        let _ = writeln!(
            out,
            "--    Ids up to {largest} may have been issued, also such as no row has: of rows that were deleted or rolled back, or of\n\
             --    SELECT NEXT VALUE FOR. Counters go on above that. Where programs have issued keys since this was printed, print it\n\
             --    again, as step 2 says."
        );
    }
    if !issued.gone_back.is_empty() {
        let keys = in_comment(&issued.gone_back.join(", "));
        let _ = writeln!(
            out,
            "--    IDS MAY COME A SECOND TIME: the store has gone back, and knows less of {keys} than programs have seen. First run\n\
             --    keywright advance, as keywright check says, then print this again."
        );
    }
    if !issued.lacking.is_empty() {
        let keys = in_comment(&issued.lacking.join(", "));
        let _ = writeln!(
            out,
            "--    IDS MAY COME A SECOND TIME: the store was restored, or is on another server, since ids of {keys} were reserved\n\
             --    last, and may know less than were given. First have a program give a key of it, which leaves a gap out, then print\n\
             --    this again."
        );
    }
    let mut unknown = Vec::new();
    if !issued.unknown.is_empty() {
        let keys = in_comment(&issued.unknown.join(", "));
        unknown.push(format!("no store says how far {keys} has come"));
    }
    if issued.is_rule_unknown {
        let rule = "the store does not say whether the rule was in force with other keys";
        unknown.push(rule.to_owned());
    }
    if !unknown.is_empty() {
        let unknown = unknown.join(", and ");
        let _ = writeln!(
            out,
            "--    IDS MAY COME A SECOND TIME: {unknown}, so ids that no row has are not known here. Print\n\
             --    this where the store can be asked. Where it is gone, write the highest id that was given in place of {floor} in step 3."
        );
    }
    let by_store = match issued.is_known_to_store {
        true => ", and by what the store says of the rule",
        false => "",
    };
    let _ = writeln!(
        out,
        "--    This goes by the keys of this configuration{by_store}. Where the tables had other keys\n\
         --    before of which the store says nothing (those of rules that are not switched, as stride), print it with the configuration\n\
         --    that gave those, too: of both numbers the larger one counts."
    );
    if highest >= DOUBLE_MAX {
        let _ = writeln!(
            out,
            "--    Counters only go up: they go on above the large keys that are there, one by one. Ids never become small\n\
             --    again, and no longer carry a time where they did; clients that read numbers as doubles round them."
        );
    }
}

/// What comes behind the statements.
fn step_behind(out: &mut String, configured: &Configured, may_have_moved: bool) {
    let on_store = match (configured.is_switched, may_have_moved) {
        (true, _) => {
            Some("On the store, so that no program that starts takes them for tables with keys:")
        }
        (false, true) => Some(
            "On the store without tags, where the rule may be in force since before its tag moved:",
        ),
        (false, false) => None,
    };
    let mut steps = Vec::new();
    if let Some(on_store) = on_store {
        let name = written(&configured.rule.table);
        steps.push(format!(
            "{on_store}\n-- UPDATE keywright_rule SET key_space = NULL WHERE table_pattern = {} AND column_name = {};",
            in_comment(&quoted_string(&name)),
            in_comment(&quoted_string(&configured.rule.column))
        ));
    }
    // Of those that are switched, key ports hear it of the store.
    if let Some(tag) = configured.spec.tag().filter(|_| !configured.is_switched) {
        steps.push(format!(
            "Take tag \"{tag}\" out of every key port: native ids go on where its ids ended."
        ));
    }
    let let_writers = match steps.is_empty() {
        true => "Let writers",
        false => "Then let writers",
    };
    steps.push(format!(
        "{let_writers} go on, with the servers or with programs that no longer have the rule."
    ));
    let _ = writeln!(out, "-- 4. {}", steps.join("\n--    "));
}

/// A name as it may stand in a comment, which ends with its line: what stands behind a line's end in the name of a table that somebody made
/// would be a statement of the operator's.
fn in_comment(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for character in name.chars() {
        match character.is_control() {
            true => safe.extend(character.escape_default()),
            false => safe.push(character),
        }
    }
    safe
}

fn of_shard(
    out: &mut String,
    index: usize,
    shard: &Shard,
    (number, shards): (usize, usize),
    floor: u64,
) {
    if shard.of_rule(index).next().is_none() {
        return;
    }
    let _ = writeln!(out, "-- On {} (listener {}):", shard.upstream, shard.bind);
    if shards > 1 {
        let _ = writeln!(
            out,
            "-- So that {shards} servers do not issue the same ids, each takes one id of {shards}, from above the highest of all. This is for all\n\
             -- tables of the server and for new connections; write it into the server's configuration too.\n\
             SET GLOBAL auto_increment_increment = {shards};\n\
             SET GLOBAL auto_increment_offset = {number};"
        );
    }
    let _ = writeln!(
        out,
        "SET @keywright_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = '{ADMIN_SQL_MODE}';"
    );
    for column in shard.of_rule(index) {
        of_table(out, column, floor);
    }
    let _ = writeln!(out, "SET SESSION sql_mode = @keywright_sql_mode;");
}

fn of_table(out: &mut String, column: &KeyColumn, floor: u64) {
    let (table, column_name) = (column.quoted_table(), column.quoted_name());
    let [name, key, kind] = [&table, &column_name, &column.kind.name].map(|of| in_comment(of));
    if !column.auto_increment {
        let _ = writeln!(
            out,
            "-- {name}: {key} is {kind} and no AUTO_INCREMENT column: from now on the application has to bring its keys."
        );
        return;
    }
    let Some(max) = column.integer_max() else {
        let _ = writeln!(
            out,
            "-- {name}: {key} is {kind}, whose limit is not known here: look before you go on."
        );
        return;
    };
    let own = column.highest();
    let highest = own.map_or(floor, |(id, _)| id.max(floor));
    let left = max.saturating_sub(highest);
    if left == 0 {
        let _ = writeln!(
            out,
            "-- {name}: {key} is {kind} and the highest id is {highest}: there is no room above it, so the server cannot issue keys.\n\
             -- Make the column larger first, and run this again."
        );
        return;
    }
    let _ = writeln!(
        out,
        "-- {name}: {key} is {kind}; {}, room for {left} more.\n\
         SET @keywright_next = (SELECT GREATEST(COALESCE(MAX({column_name}), 0), {floor}) + 1 FROM {table});\n\
         SET @keywright_alter = CONCAT({}, @keywright_next);\n\
         PREPARE keywright_alter FROM @keywright_alter;\n\
         EXECUTE keywright_alter;\n\
         DEALLOCATE PREPARE keywright_alter;",
        shown(own),
        quoted_string(&format!("ALTER TABLE {table} AUTO_INCREMENT = ")),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who may make a table whose name a rule's pattern fits would else write what the operator runs.
    #[test]
    fn names_do_not_leave_comments() {
        assert_eq!(in_comment("`a`.`b c'é`"), "`a`.`b c'é`");
        let made = in_comment("`orders_\nGRANT ALL ON *.* TO e@'%';\r\u{85}#`");
        assert_eq!(made, "`orders_\\nGRANT ALL ON *.* TO e@'%';\\r\\u{85}#`");
    }

    #[test]
    fn a_counter_is_not_taken_for_a_row() {
        assert_eq!(shown(Some((7, Origin::Row))), "highest id 7");
        let counter = "AUTO_INCREMENT 8, above all rows";
        assert_eq!(shown(Some((7, Origin::Counter))), counter);
        assert_eq!(shown(None), "highest id not known");
    }
}
