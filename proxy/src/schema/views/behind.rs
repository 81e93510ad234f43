//! What is behind a view: the table, its rule, and how the view shows the key.

use std::collections::HashMap;

use keywright_rewrite::{
    Flavour, Modes, Server, TableName, ViewText, tables_of_documents, tables_read,
};
use keywright_session::{View, ViewKey, in_lower_case};

use crate::schema::key_column::KeyColumn;
use crate::schema::snapshot::ListedView;

/// How servers write a view's definition for a session without sql_mode; there are no comments in it.
const WRITTEN: Modes = Modes::plain(Server {
    flavour: Flavour::MariaDb,
    version: 0,
});

/// How many views may lie over each other.
const DEPTH_MAX: usize = 64;

const HIDDEN: &str = "that does not show the key";
const TWICE: &str = "that shows the key more than once";
const CHECKED: &str = "whose CHECK OPTION may test the key";
const DOCUMENTS: &str = "of JSON documents";
const MANY: &str = "that is not a choice of columns and rows of one table";
const UNNAMED: &str = "whose columns cannot be told";

/// A name as it is compared: schema and table.
type Name = (String, String);

/// The views through which rows go into tables with a key column. `refuses`: whether a rule refuses what cannot be rewritten.
pub(crate) fn over_keys(
    views: &[ListedView],
    columns: &[KeyColumn],
    lower_case: bool,
    refuses: &dyn Fn(usize) -> bool,
) -> Vec<View> {
    let fold = |name: &str| match lower_case {
        true => in_lower_case(name),
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
        refuses,
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
    views: HashMap<Name, &'a ListedView>,
    columns: HashMap<Name, &'a KeyColumn>,
    fold: &'a dyn Fn(&str) -> String,
    refuses: &'a dyn Fn(usize) -> bool,
}

impl Over<'_> {
    /// What a view shows of a key; `None` if no table with one is behind it.
    fn behind(&self, view: &ListedView, depth: usize) -> Option<Behind> {
        let definition = view.definition.as_bytes();
        if let Some(tables) = tables_of_documents(definition, &WRITTEN) {
            return self.of_any(view, &tables, depth, DOCUMENTS);
        }
        let Some(text) = ViewText::read(definition, &WRITTEN) else {
            let tables = tables_read(definition, &WRITTEN);
            return self.of_any(view, &tables, depth, MANY);
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

    /// Of a view that shows no key to be filled in, over any of these tables: the rule that refuses what goes through it, if one does.
    fn of_any(
        &self,
        view: &ListedView,
        tables: &[TableName],
        depth: usize,
        what: &'static str,
    ) -> Option<Behind> {
        let behind = tables.iter();
        let rules: Vec<usize> = behind
            .filter_map(|table| Some(self.of_name(view, table, depth)?.rule))
            .collect();
        let refusing = rules.iter().find(|rule| (self.refuses)(**rule));
        Some(Behind {
            rule: *refusing.or(rules.first())?,
            key: ViewKey::Unsupported(what),
            is_tested: true,
        })
    }

    fn of_name(&self, view: &ListedView, table: &TableName, depth: usize) -> Option<Behind> {
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

#[cfg(test)]
mod tests {
    use keywright_session::ViewKey;

    use super::{CHECKED, DOCUMENTS, HIDDEN, MANY, TWICE, UNNAMED, over_keys};
    use crate::schema::key_column::KeyColumn;
    use crate::schema::snapshot::ListedView;

    /// The views that show the keys of `d.t` (rule 1, which refuses) and `d.o` (rule 0, which does not), as `name: rule, key`. They are
    /// given with their columns behind the name, definition, and whether they have a CHECK OPTION.
    fn over(views: &[(&str, &str, bool)], lower_case: bool) -> Vec<String> {
        let column = |table: &str, rule| KeyColumn {
            rule,
            schema: "d".to_owned(),
            table: table.to_owned(),
            name: "Id".to_owned(),
            ..KeyColumn::default()
        };
        let views: Vec<ListedView> = views
            .iter()
            .map(|(named, definition, is_checked)| {
                let mut names = named.split(' ').map(str::to_owned);
                ListedView {
                    schema: "d".to_owned(),
                    name: names.next().unwrap_or_default(),
                    columns: names.collect(),
                    definition: (*definition).to_owned(),
                    is_updatable: true,
                    is_checked: *is_checked,
                }
            })
            .collect();
        let columns = [column("o", 0), column("t", 1)];
        over_keys(&views, &columns, lower_case, &|rule| rule == 1)
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
                ("one_of_two id", "select `d`.`o`.`id` AS `id` from (`d`.`o` join `d`.`t` on(1))", false),
                ("documents data", "select json_duality_object( WITH (INSERT) '_id':`d`.`o`.`id`,'a':`d`.`o`.`a`) AS `j` from `d`.`o`", false),
                ("nested data", "select json_duality_object( WITH (INSERT) '_id':`d`.`u`.`id`,'ts':(select json_arrayagg(json_duality_object( WITH (INSERT) \
                    'tid':`d`.`t`.`id`)) from `d`.`t` where (`d`.`t`.`u_id` = `d`.`u`.`id`))) AS `j` from `d`.`u`", false),
                ("strict data", "select json_duality_object('_id':`d`.`o`.`id`,'ts':(select json_arrayagg(json_duality_object( WITH (INSERT) \
                    'tid':`d`.`t`.`id`)) from `d`.`t` where (`d`.`t`.`o_id` = `d`.`o`.`id`))) AS `j` from `d`.`o`", false),
                ("others data", "select json_duality_object('_id':`d`.`u`.`id`) AS `j` from `d`.`u`", false),
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
                &format!("one_of_two: 1, {MANY}"),
                &format!("documents: 0, {DOCUMENTS}"),
                &format!("nested: 1, {DOCUMENTS}"),
                &format!("strict: 1, {DOCUMENTS}"),
            ]
        );
    }

    #[test]
    fn names_are_compared_as_the_server_compares_them() {
        let views = [("V Nr", "select `D`.`T`.`ID` AS `Nr` from `D`.`T`", false)];
        assert_eq!(over(&views, true), ["V: 1, Nr"]);
        assert_eq!(over(&views, false), [""; 0]);
        // Letter by letter, wherever one stands in a name.
        let views = [
            (
                "V\u{3a3} id",
                "select `d`.`t`.`id` AS `id` from `d`.`t`",
                false,
            ),
            (
                "over id",
                "select `v\u{3c3}`.`id` AS `id` from `d`.`v\u{3c3}`",
                false,
            ),
            (
                "\u{130} id",
                "select `d`.`t`.`id` AS `id` from `d`.`t`",
                false,
            ),
            ("over_i id", "select `i`.`id` AS `id` from `d`.`i`", false),
        ];
        let shown = [
            "V\u{3a3}: 1, id",
            "over: 1, id",
            "\u{130}: 1, id",
            "over_i: 1, id",
        ];
        assert_eq!(over(&views, true), shown);
    }
}
