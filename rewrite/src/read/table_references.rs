//! What the text of a routine, trigger, event or view names, wherever in it.

use crate::lex::cursor::Cursor;
use crate::lex::name::TableName;
use crate::lex::token::Kind;
use crate::modes::Modes;
use crate::refusal::Unread;

/// The tables that INSERT, REPLACE and LOAD DATA anywhere in a text fill; not those in the text of a dynamic statement. Ends
/// where the text cannot be read.
pub fn tables_filled(text: &[u8], modes: &Modes) -> Vec<TableName> {
    let mut tables = Vec::new();
    let mut cursor = Cursor::new(text, modes);
    // What could be read until then counts.
    let _ = cursor.tables_filled(&mut tables);
    tables
}

/// The tables in the FROM of a query, and not those of subqueries elsewhere in it. Ends where the text cannot be read.
pub fn tables_read(text: &[u8], modes: &Modes) -> Vec<TableName> {
    let mut tables = Vec::new();
    let mut cursor = Cursor::new(text, modes);
    // As above.
    let _ = cursor.tables_read(&mut tables);
    tables
}

/// The tables of which a JSON duality view of MySQL's makes documents, those within others too: rows go into any of them through it.
/// `None`: it is another view.
pub fn tables_of_documents(text: &[u8], modes: &Modes) -> Option<Vec<TableName>> {
    let mut tables = Vec::new();
    let mut cursor = Cursor::new(text, modes);
    let is_one =
        cursor.accept("SELECT") == Ok(true) && cursor.accept("JSON_DUALITY_OBJECT") == Ok(true);
    if !is_one {
        return None;
    }
    // As above.
    let _ = cursor.tables_behind_from(&mut tables);
    Some(tables)
}

/// Whether the text of a trigger names a column of the row that goes in. Ends where the text cannot be read.
pub fn names_new(text: &[u8], column: &[u8], modes: &Modes) -> bool {
    let mut cursor = Cursor::new(text, modes);
    cursor.names_new(column).unwrap_or(false)
}

impl Cursor<'_> {
    fn names_new(&mut self, column: &[u8]) -> Result<bool, Unread> {
        loop {
            let before = *self;
            let token = self.token()?;
            let is_name = matches!(token.kind, Kind::Word | Kind::Name);
            if token.kind == Kind::End {
                return Ok(false);
            }
            let mut ahead = before;
            if is_name
                && ahead.name_part()?.eq_ignore_ascii_case(b"NEW")
                && ahead.accept_mark(b'.')?
                && ahead.name_part()?.eq_ignore_ascii_case(column)
            {
                return Ok(true);
            }
        }
    }

    fn tables_filled(&mut self, tables: &mut Vec<TableName>) -> Result<(), Unread> {
        loop {
            let token = self.token()?;
            if token.kind == Kind::End {
                return Ok(());
            }
            let is = |word| token.is(self.text, word);
            let mut ahead = *self;
            let named = if is("INSERT") || is("REPLACE") {
                ahead.modifiers().and_then(|_| ahead.table_name())
            } else if is("INTO") && ahead.accept("TABLE")? {
                ahead.table_name()
            } else {
                continue;
            };
            // A function of that name, or a privilege.
            tables.extend(named);
        }
    }

    fn tables_behind_from(&mut self, tables: &mut Vec<TableName>) -> Result<(), Unread> {
        loop {
            let token = self.token()?;
            if token.kind == Kind::End {
                return Ok(());
            }
            if token.is(self.text, "FROM") {
                let mut ahead = *self;
                tables.extend(ahead.table_name());
            }
        }
    }

    fn tables_read(&mut self, tables: &mut Vec<TableName>) -> Result<(), Unread> {
        let mut depth = 0_usize;
        let mut is_in_from = false;
        let mut follows = false;
        loop {
            let before = *self;
            let token = self.token()?;
            let is = |word| token.is(self.text, word);
            match token.kind {
                Kind::End => return Ok(()),
                // Of a subquery there.
                Kind::Word if follows && is("SELECT") => follows = false,
                Kind::Word | Kind::Name if follows => {
                    *self = before;
                    match self.table_name() {
                        Ok(name) => tables.push(name),
                        Err(_) => drop(self.token()?),
                    }
                    follows = false;
                }
                Kind::Mark(b'(') => depth += 1,
                Kind::Mark(b')') => {
                    depth = depth.saturating_sub(1);
                    follows = false;
                }
                Kind::Word => {
                    if depth == 0 {
                        is_in_from |= is("FROM");
                        is_in_from &= !(is("WHERE") || is("GROUP") || is("HAVING") || is("ORDER"));
                    }
                    follows = is_in_from && (is("FROM") || is("JOIN") || is("STRAIGHT_JOIN"));
                }
                _ => follows = false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{names_new, tables_filled, tables_of_documents, tables_read};
    use crate::lex::name::TableName;
    use crate::modes::{Flavour, Modes, Server};

    const MODES: Modes = Modes::plain(Server {
        flavour: Flavour::MariaDb,
        version: 101_119,
    });

    fn names(found: Vec<TableName>) -> Vec<String> {
        let name = |table: TableName| {
            let table_name = String::from_utf8_lossy(&table.table).into_owned();
            match table.schema {
                Some(schema) => format!("{}.{table_name}", String::from_utf8_lossy(&schema)),
                None => table_name,
            }
        };
        found.into_iter().map(name).collect()
    }

    #[test]
    fn columns_of_the_new_row_are_found() {
        let names = |body: &str| names_new(body.as_bytes(), b"id", &MODES);
        for body in [
            "SET NEW.path = CONCAT('/', new.ID)",
            "BEGIN IF `NEW`.`id` > 0 THEN SET @a = 1; END IF; END",
            "INSERT INTO log VALUES (NEW . id)",
        ] {
            assert!(names(body), "{body}");
        }
        for body in [
            "SET NEW.identity = 'NEW.id' /* NEW.id */",
            "SET @a = OLD.id, NEW.a = id",
            "SET NEW.a = 'open",
            "SET NEW",
            "",
        ] {
            assert!(!names(body), "{body}");
        }
    }

    #[test]
    fn a_routines_inserts_are_found() {
        let body = "BEGIN
            -- INSERT INTO comment VALUES (1)
            SET @a = 'INSERT INTO string VALUES (1)', @b = INSERT(@a, 1, 1, ''), @c = REPLACE('a', 'b', 'c');
            IF NEW.id > 1 THEN INSERT LOW_PRIORITY IGNORE one SET a = 1; ELSE REPLACE `t wo`.`x` VALUES (1); END IF;
            INSERT /* why */ INTO three SELECT * FROM four;
            SELECT a INTO @x FROM five;
            LOAD DATA INFILE 'f' INTO TABLE six;
        END";
        let found = names(tables_filled(body.as_bytes(), &MODES));
        assert_eq!(found, ["one", "t wo.x", "three", "six"]);
    }

    #[test]
    fn a_views_tables_are_found() {
        let view = "select `o`.`id` AS `id`,(select `a` from `y`) AS `a` from ((`shop`.`orders` `o` join `shop`.`items` on(1)) left join \
            `other`.`t` on((`o`.`id` = `t`.`id`))) where exists(select 1 from `z`) \
            union select 1 AS `1` from (select `id` AS `id` from `u`) `v`";
        let found = names(tables_read(view.as_bytes(), &MODES));
        assert_eq!(found, ["shop.orders", "shop.items", "other.t", "u"]);
        for (view, tables) in [
            ("select `id` from t", &["t"][..]),
            ("select id from shop.t join u on 1", &["shop.t", "u"]),
            ("select 1 from (t)", &["t"]),
            ("select 1 from t group by extract(year from d)", &["t"]),
            ("select 1 from t having exists(select 1 from z)", &["t"]),
            ("select 1 from t order by (select 1 from z)", &["t"]),
        ] {
            assert_eq!(
                names(tables_read(view.as_bytes(), &MODES)),
                tables,
                "{view}"
            );
        }
    }

    #[test]
    fn a_duality_views_tables_are_found() {
        let of = |view: &str| tables_of_documents(view.as_bytes(), &MODES).map(names);
        let view = "select json_duality_object( WITH (INSERT,UPDATE,DELETE) '_id':`d`.`t`.`id`,'a from':`d`.`t`.`a`,\
            'us':(select json_arrayagg(json_duality_object( WITH (INSERT) 'uid':`x from`.`id`,'b':`x from`.`b`)) from `d`.`u` \
            `x from` where (`x from`.`t_id` = `d`.`t`.`id`))) AS `JSON_DUALITY_OBJECT('a' from b)` from `d`.`t`";
        let tables = ["d.u".to_owned(), "d.t".to_owned()];
        assert_eq!(of(view).as_deref(), Some(&tables[..]));
        for view in [
            "select `d`.`t`.`id` AS `id` from `d`.`t`",
            "select `json_duality_object` AS `a` from `d`.`t`",
            "",
        ] {
            assert_eq!(of(view), None, "{view}");
        }
    }

    #[test]
    fn unreadable_text_ends_the_search() {
        let found = tables_filled(b"BEGIN INSERT INTO t VALUES (1); SELECT 'open", &MODES);
        assert_eq!(names(found), ["t"]);
    }
}
