//! Views that forbid trying an INSERT … SELECT or a LOAD DATA again.

use std::collections::HashSet;

use anyhow::Result;
use keywright_session::Rules;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::OWN_SCHEMAS;

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

/// Takes note of rules under which a statement that fails may leave something behind because of a view: what is inserted
/// into may be one, and what is read may call a function.
pub(super) async fn views(server: &mut Conn, rules: &Rules, repeatable: &mut [bool]) -> Result<()> {
    let functions: Vec<String> = server
        .query(
            "SELECT routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION'",
        )
        .await?;
    let functions: HashSet<String> = functions
        .into_iter()
        .map(|name| name.to_lowercase())
        .collect();
    let views: Vec<(String, String, Option<String>)> = server
        .query(format!(
            "SELECT table_schema, table_name, view_definition FROM information_schema.views \
             WHERE table_schema NOT IN ({OWN_SCHEMAS})"
        ))
        .await?;
    for (schema, table, definition) in views {
        if let Some((rule, _)) = rules.find(schema.as_bytes(), table.as_bytes())
            && let Some(repeatable) = repeatable.get_mut(rule)
        {
            *repeatable = false;
        }
        if may_call(&definition.unwrap_or_default(), &functions) {
            repeatable.fill(false);
        }
    }
    Ok(())
}

/// Whether a view may call a function that leaves something behind. Servers write the names of stored functions in
/// backquotes; of a view that may not be seen they write nothing.
fn may_call(definition: &str, functions: &HashSet<String>) -> bool {
    let definition = definition.to_lowercase();
    let stored = definition.split("`(").any(|before| {
        let name = before.rsplit('`').next().unwrap_or_default();
        functions.contains(name)
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
