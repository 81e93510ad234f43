//! Views: those through which rows go into tables with rules, and those that forbid trying an INSERT … SELECT or a LOAD DATA
//! again.

mod behind;

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use keywright_session::{OnUnsupported, Rules, SeenTable, Sighting, View, ViewKey};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use self::behind::{Listed, over_keys};
use super::columns::{Column, OWN_SCHEMAS};
use super::inspection::Inspection;

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

/// Takes note of the views over tables with rules, and of rules under which a statement that fails may leave something behind
/// because of a view: what is inserted into may be one, and what is read may call a function. Warns of what gets no key.
pub(super) async fn views(
    server: &mut Conn,
    rules: &Rules,
    columns: &[Column],
    found: &mut Inspection,
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
        if view.is_updatable
            && !known.contains(&(schema, name))
            && let Some((index, rule)) = rules.find(schema.as_bytes(), name.as_bytes())
        {
            // The table behind it may be of any kind.
            if let Some(repeatable) = seen.repeatable.get_mut(index) {
                *repeatable = false;
            }
            let mut columns = view.columns.iter();
            let has_column = columns.any(|column| column.eq_ignore_ascii_case(&rule.column));
            seen.tables.push(SeenTable {
                schema: schema.clone(),
                name: name.clone(),
                sighting: match has_column {
                    true => Sighting::With,
                    false => Sighting::Without,
                },
            });
            if has_column {
                found.warnings.push(format!(
                    "{schema}.{name} matches a rule and is a view, of no table with one: what it shows as {} gets keys, \
                     and has no fence",
                    rule.column
                ));
            }
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

async fn columns_of_views(server: &mut Conn) -> Result<HashMap<(String, String), Vec<String>>> {
    let rows: Vec<(String, String, String)> = server
        .query(format!(
            "SELECT table_schema, table_name, column_name FROM information_schema.columns \
             JOIN information_schema.views USING (table_schema, table_name) \
             WHERE table_schema NOT IN ({OWN_SCHEMAS}) ORDER BY 1, 2, ordinal_position"
        ))
        .await?;
    let mut columns: HashMap<(String, String), Vec<String>> = HashMap::new();
    for (schema, name, column) in rows {
        columns.entry((schema, name)).or_default().push(column);
    }
    Ok(columns)
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
    use super::may_call;

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
}
