//! Views: those through which rows go into tables with rules, and those that forbid trying an INSERT … SELECT or a LOAD DATA
//! again.

mod behind;

use std::collections::HashSet;

use keywright_session::in_lower_case;

pub(super) use self::behind::over_keys;

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

/// Whether a view may call a function that leaves something behind. Of a view that may not be seen servers write nothing.
pub(super) fn may_call(definition: &str, functions: &HashSet<String>) -> bool {
    let definition = in_lower_case(definition);
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
        let functions = ["ας", "ορ\u{3c3}"].map(keywright_session::in_lower_case);
        let functions = functions.into_iter().collect();
        assert!(may_call("select `d`.`ΟΡΣ`(1) AS `a`", &functions));
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
