//! Views: those through which rows go into tables with rules, and those that forbid trying an INSERT … SELECT or a LOAD DATA
//! again.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use keywright_rewrite::{CharsetClass, Flavour, Modes, Server, TableName, ViewText, tables_read};
use keywright_session::{OnUnsupported, Rules, View, ViewKey};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::{Column, Found, OWN_SCHEMAS};

/// Built-in functions whose effect outlasts a statement that fails, or that see how the rows of one are numbered, as a
/// view's definition has them.
const EFFECTS: [&str; 6] = [
    "last_insert_id(",
    "nextval(",
    "setval(",
    "get_lock(",
    "release_lock(",
    "release_all_locks(",
];

/// How servers write a view's definition for a session without sql_mode; there are no comments in it.
const WRITTEN: Modes = Modes {
    ansi_quotes: false,
    no_backslash_escapes: false,
    no_auto_value_on_zero: None,
    strict: None,
    charset: CharsetClass::Safe,
    server: Server {
        flavour: Flavour::MariaDb,
        version: 0,
    },
};

/// How many views may lie over each other.
const DEPTH_MAX: usize = 64;

const HIDDEN: &str = "that does not show the key";
const TWICE: &str = "that shows the key more than once";
const CHECKED: &str = "whose CHECK OPTION may test the key";
const MANY: &str = "that is not a choice of columns and rows of one table";
const UNNAMED: &str = "whose columns cannot be told";

/// A view as information_schema has it.
struct Listed {
    schema: String,
    name: String,
    /// The names of what it shows. MySQL's definition of a view that was made with a list of them does not have it.
    columns: Vec<String>,
    /// Empty if it may not be seen.
    definition: String,
    is_updatable: bool,
    is_checked: bool,
}

/// A name as it is compared: schema and table.
type Name = (String, String);

/// Takes note of the views over tables with rules, and of rules under which a statement that fails may leave something behind
/// because of a view: what is inserted into may be one, and what is read may call a function. Warns of what gets no key.
pub(super) async fn views(
    server: &mut Conn,
    rules: &Rules,
    columns: &[Column],
    found: &mut Found,
) -> Result<()> {
    let functions: Vec<String> = server
        .query(
            "SELECT routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION'",
        )
        .await?;
    let functions: HashSet<String> = functions
        .into_iter()
        .map(|name| name.to_lowercase())
        .collect();
    let views = listed(server).await?;
    unseen(&views, &mut found.warnings);
    let seen = &mut found.seen;
    seen.views = over_keys(&views, columns, seen.lower_case);
    let known: HashSet<(&str, &str)> = seen
        .views
        .iter()
        .map(|view| (view.schema.as_str(), view.name.as_str()))
        .collect();
    for view in &views {
        let Listed { schema, name, .. } = view;
        // The table behind it may be of any kind.
        if view.is_updatable
            && !known.contains(&(schema, name))
            && let Some((rule, _)) = rules.find(schema.as_bytes(), name.as_bytes())
            && let Some(repeatable) = seen.repeatable.get_mut(rule)
        {
            *repeatable = false;
        }
        if may_call(&view.definition, &functions) {
            seen.repeatable.fill(false);
        }
    }
    unsupported(rules, &seen.views, &mut found.warnings);
    Ok(())
}

/// Warns of views whose definitions may not be seen: what is behind them is not known.
fn unseen(views: &[Listed], warnings: &mut Vec<String>) {
    let mut unseen = views.iter().filter(|view| view.definition.is_empty());
    let Some(Listed { schema, name, .. }) = unseen.next() else {
        return;
    };
    let more = unseen.count();
    warnings.push(format!(
        "{schema}.{name} and {more} more views may not be seen, which takes SHOW VIEW: an INSERT through one gets no key from \
         the proxy, and INSERT … SELECT and LOAD DATA are not tried twice"
    ));
}

/// Warns of views through which no row can get a key.
fn unsupported(rules: &Rules, views: &[View], warnings: &mut Vec<String>) {
    for view in views {
        let View { schema, name, .. } = view;
        let ViewKey::Unsupported(what) = view.key else {
            continue;
        };
        let rule = rules.rules().get(view.rule);
        let becomes = match rule.map(|rule| rule.on_unsupported) {
            Some(OnUnsupported::Pass) => "is passed on without one",
            Some(OnUnsupported::Refuse) | None => "is refused",
        };
        warnings.push(format!(
            "an INSERT through {schema}.{name}, a view {what}, gets no key and {becomes}"
        ));
    }
}

async fn listed(server: &mut Conn) -> Result<Vec<Listed>> {
    // It decides how names are quoted.
    server.query_drop("SET SESSION sql_mode = ''").await?;
    let rows: Vec<(String, String, Option<String>, bool, bool)> = server
        .query(format!(
            "SELECT table_schema, table_name, view_definition, is_updatable = 'YES', check_option <> 'NONE' \
             FROM information_schema.views WHERE table_schema NOT IN ({OWN_SCHEMAS}) ORDER BY 1, 2"
        ))
        .await?;
    let mut columns = match rows.is_empty() {
        true => HashMap::new(),
        false => columns_of_views(server).await?,
    };
    let listed = |(schema, name, definition, is_updatable, is_checked)| {
        let name = (schema, name);
        let columns = columns.remove(&name).unwrap_or_default();
        let (schema, name) = name;
        Listed {
            schema,
            name,
            columns,
            definition: Option::unwrap_or_default(definition),
            is_updatable,
            is_checked,
        }
    };
    Ok(rows.into_iter().map(listed).collect())
}

async fn columns_of_views(server: &mut Conn) -> Result<HashMap<Name, Vec<String>>> {
    let rows: Vec<(String, String, String)> = server
        .query(format!(
            "SELECT table_schema, table_name, column_name FROM information_schema.columns \
             JOIN information_schema.views USING (table_schema, table_name) \
             WHERE table_schema NOT IN ({OWN_SCHEMAS}) ORDER BY 1, 2, ordinal_position"
        ))
        .await?;
    let mut columns: HashMap<Name, Vec<String>> = HashMap::new();
    for (schema, name, column) in rows {
        columns.entry((schema, name)).or_default().push(column);
    }
    Ok(columns)
}

/// The views through which rows go into tables with a key column.
fn over_keys(views: &[Listed], columns: &[Column], lower_case: bool) -> Vec<View> {
    let fold = |name: &str| match lower_case {
        true => name.to_lowercase(),
        false => name.to_owned(),
    };
    let named = |schema: &str, name: &str| (fold(schema), fold(name));
    let over = Over {
        views: views
            .iter()
            .map(|view| (named(&view.schema, &view.name), view))
            .collect(),
        columns: columns
            .iter()
            .map(|column| (named(&column.schema, &column.table), column))
            .collect(),
        fold: &fold,
    };
    let updatable = views.iter().filter(|view| view.is_updatable);
    updatable
        .filter_map(|view| {
            let behind = over.behind(view, DEPTH_MAX)?;
            Some(View {
                schema: view.schema.clone(),
                name: view.name.clone(),
                rule: behind.rule,
                key: behind.key,
            })
        })
        .collect()
}

/// What is behind a table's or a view's name.
struct Behind {
    rule: usize,
    key: ViewKey,
    /// Whether rows are chosen by it.
    is_tested: bool,
}

struct Over<'a> {
    views: HashMap<Name, &'a Listed>,
    columns: HashMap<Name, &'a Column>,
    fold: &'a dyn Fn(&str) -> String,
}

impl Over<'_> {
    /// What a view shows of a key; `None` if no table with one is behind it.
    fn behind(&self, view: &Listed, depth: usize) -> Option<Behind> {
        let Some(text) = ViewText::read(view.definition.as_bytes(), &WRITTEN) else {
            let tables = tables_read(view.definition.as_bytes(), &WRITTEN);
            let rule = tables
                .iter()
                .find_map(|table| self.of_name(view, table, depth))?
                .rule;
            return Some(Behind {
                rule,
                key: ViewKey::Unsupported(MANY),
                is_tested: true,
            });
        };
        let behind = self.of_name(view, &text.table, depth)?;
        let ViewKey::Column(key) = &behind.key else {
            return Some(behind);
        };
        let is_key = |name: &[u8]| name.eq_ignore_ascii_case(key.as_bytes());
        let is_tested = behind.is_tested || text.tested.iter().any(|name| is_key(name));
        let mut shown = text
            .columns
            .iter()
            .zip(&view.columns)
            .filter(|(of, _)| of.as_deref().is_some_and(is_key));
        let key = match (shown.next(), shown.next()) {
            _ if text.columns.len() != view.columns.len() => ViewKey::Unsupported(UNNAMED),
            (None, _) => ViewKey::Unsupported(HIDDEN),
            (Some(_), Some(_)) => ViewKey::Unsupported(TWICE),
            (Some(_), None) if view.is_checked && is_tested => ViewKey::Unsupported(CHECKED),
            (Some((_, name)), None) => ViewKey::Column(name.clone()),
        };
        Some(Behind {
            rule: behind.rule,
            key,
            is_tested,
        })
    }

    fn of_name(&self, view: &Listed, table: &TableName, depth: usize) -> Option<Behind> {
        let text = |name: &[u8]| (self.fold)(&String::from_utf8_lossy(name));
        let schema = table.schema.as_deref().unwrap_or(view.schema.as_bytes());
        let name = (text(schema), text(&table.table));
        if let Some(column) = self.columns.get(&name) {
            return Some(Behind {
                rule: column.rule,
                key: ViewKey::Column(column.name.clone()),
                is_tested: false,
            });
        }
        self.behind(self.views.get(&name)?, depth.checked_sub(1)?)
    }
}

/// Whether a view may call a function that leaves something behind. Of a view that may not be seen servers write nothing.
fn may_call(definition: &str, functions: &HashSet<String>) -> bool {
    let definition = definition.to_lowercase();
    let is_in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let stored = definition.split('(').any(|before| {
        let name = match before.strip_suffix('`') {
            Some(quoted) => quoted.rsplit('`').next(),
            // As a server that was told so writes it.
            None => before.rsplit(|c| !is_in_word(c)).next(),
        };
        name.is_some_and(|name| functions.contains(name))
    });
    definition.is_empty() || stored || EFFECTS.iter().any(|call| definition.contains(call))
}

#[cfg(test)]
mod tests {
    use keywright_session::ViewKey;

    use super::super::Column;
    use super::{CHECKED, HIDDEN, Listed, MANY, TWICE, UNNAMED, may_call, over_keys};

    #[test]
    fn calls_of_stored_functions_are_found() {
        let functions = ["count_up".to_owned()].into_iter().collect();
        let calls = |definition| may_call(definition, &functions);
        assert!(calls(
            "select `d`.`Count_up`(`d`.`u`.`a`) AS `a` from `d`.`u`"
        ));
        assert!(calls("select d.count_up(1) AS a from d.u"));
        assert!(calls("select nextval(`d`.`s`) AS `a`"));
        assert!(calls(""), "may not be seen");
        assert!(!calls(
            "select concat(`d`.`u`.`a`,'x') AS `count_up` from `d`.`u`"
        ));
        assert!(!calls(
            "with `c`(`a`) as (select 1) select `c`.`a` AS `a` from `c`"
        ));
    }

    /// The views that show the keys of `d.t` (rule 1) and `d.o` (rule 0), as `name: rule, key`. They are given with their
    /// columns behind the name, definition, and whether they have a CHECK OPTION.
    fn over(views: &[(&str, &str, bool)], lower_case: bool) -> Vec<String> {
        let column = |table: &str, rule| Column {
            rule,
            schema: "d".to_owned(),
            table: table.to_owned(),
            name: "Id".to_owned(),
            ..Column::default()
        };
        let views: Vec<Listed> = views
            .iter()
            .map(|(named, definition, is_checked)| {
                let mut names = named.split(' ').map(str::to_owned);
                Listed {
                    schema: "d".to_owned(),
                    name: names.next().unwrap_or_default(),
                    columns: names.collect(),
                    definition: (*definition).to_owned(),
                    is_updatable: true,
                    is_checked: *is_checked,
                }
            })
            .collect();
        over_keys(&views, &[column("o", 0), column("t", 1)], lower_case)
            .into_iter()
            .map(|view| match view.key {
                ViewKey::Column(name) => format!("{}: {}, {name}", view.name, view.rule),
                ViewKey::Unsupported(what) => format!("{}: {}, {what}", view.name, view.rule),
            })
            .collect()
    }

    #[test]
    #[rustfmt::skip]
    fn the_key_is_found_behind_views() {
        let shown = over(
            &[
                ("one nr a", "select `d`.`t`.`id` AS `nr`,`d`.`t`.`a` AS `a` from `d`.`t` where `d`.`t`.`id` > 5", false),
                ("two id n", "select `one`.`a` AS `id`,`one`.`nr` AS `n` from `d`.`one`", false),
                ("three n", "select `two`.`n` AS `n` from `d`.`two`", true),
                ("swapped id a", "select `d`.`t`.`a` AS `a`,`d`.`t`.`id` AS `id` from `d`.`t`", false),
                ("over_swapped a", "select `swapped`.`a` AS `a` from `d`.`swapped`", false),
                ("unnamed", "select `d`.`t`.`id` AS `id` from `d`.`t`", false),
                ("hidden id", "select `two`.`id` AS `id` from `d`.`two`", false),
                ("over_hidden id", "select `hidden`.`id` AS `id` from `d`.`hidden`", false),
                ("twice a b", "select `d`.`o`.`Id` AS `a`,`d`.`o`.`Id` AS `b` from `d`.`o`", false),
                ("checked a", "select `d`.`o`.`Id` AS `a` from `d`.`o` where `d`.`o`.`b` = 1", true),
                ("joined nr", "select `one`.`nr` AS `nr` from (`d`.`u` join `d`.`one` on(1))", false),
                ("other id", "select `d`.`u`.`id` AS `id` from `d`.`u` where `d`.`u`.`id` in (select 1 from `d`.`t`)", false),
                ("joined_others b", "select `x`.`b` AS `b` from (`d`.`u` `x` join `d`.`u`) where (select 1 from `d`.`t`)", false),
                ("circular id", "select `circular`.`id` AS `id` from `d`.`circular`", false),
                ("unseen", "", false),
            ],
            false,
        );
        assert_eq!(
            shown,
            [
                "one: 1, nr",
                "two: 1, n",
                &format!("three: 1, {CHECKED}"),
                "swapped: 1, a",
                "over_swapped: 1, a",
                &format!("unnamed: 1, {UNNAMED}"),
                &format!("hidden: 1, {HIDDEN}"),
                &format!("over_hidden: 1, {HIDDEN}"),
                &format!("twice: 0, {TWICE}"),
                "checked: 0, a",
                &format!("joined: 1, {MANY}"),
            ]
        );
    }

    #[test]
    fn names_are_compared_as_the_server_compares_them() {
        let views = [("V Nr", "select `D`.`T`.`ID` AS `Nr` from `D`.`T`", false)];
        assert_eq!(over(&views, true), ["V: 1, Nr"]);
        assert_eq!(over(&views, false), [""; 0]);
    }
}
