//! Whether an account has TRIGGER, by its list of grants: where a server with a binary log says to those without SUPER nothing else.
//!
//! SHOW GRANTS has what comes from roles that are active; information_schema does not show that to the account.

use anyhow::Result;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// What a line of SHOW GRANTS is about.
#[derive(Debug, PartialEq, Eq)]
enum Scope {
    Everywhere,
    /// Schemas by a pattern, as LIKE has it.
    Schemas(String),
    /// What a grant for everything leaves out, by name.
    AllBut(String),
    Table(String, String),
}

/// Whether an account has TRIGGER on all of these tables of a schema.
pub(super) async fn has_trigger(conn: &mut Conn, schema: &str, tables: &[&str]) -> Result<bool> {
    let lines: Vec<String> = conn.query("SHOW GRANTS").await?;
    let scopes: Vec<Scope> = lines.iter().filter_map(|line| scope(line)).collect();
    for scope in &scopes {
        if let Scope::Schemas(pattern) = scope {
            let is_it: Option<bool> = conn
                .exec_first("SELECT ? LIKE ?", (schema, pattern))
                .await?;
            if is_it == Some(true) {
                return Ok(true);
            }
        }
    }
    let is_left_out = scopes.contains(&Scope::AllBut(schema.to_owned()));
    let has = |scope| scopes.contains(&scope);
    let on_table = |table: &&str| has(Scope::Table(schema.to_owned(), (*table).to_owned()));
    Ok(has(Scope::Everywhere) && !is_left_out || tables.iter().all(on_table))
}

/// Where a line grants TRIGGER, or revokes it in part.
fn scope(line: &str) -> Option<Scope> {
    let (is_grant, rest) = match line.strip_prefix("GRANT ") {
        Some(rest) => (true, rest),
        None => (false, line.strip_prefix("REVOKE ")?),
    };
    let (privileges, rest) = rest.split_once(" ON ")?;
    let mut privileges = privileges.split(", ");
    if !privileges.any(|privilege| matches!(privilege, "TRIGGER" | "ALL PRIVILEGES")) {
        return None;
    }
    if rest.starts_with("*.*") {
        return is_grant.then_some(Scope::Everywhere);
    }
    let (schema, rest) = name(rest)?;
    let rest = rest.strip_prefix('.')?;
    if rest.starts_with('*') {
        return Some(match is_grant {
            true => Scope::Schemas(schema),
            false => Scope::AllBut(schema),
        });
    }
    let (table, _) = name(rest)?;
    is_grant.then_some(Scope::Table(schema, table))
}

/// The name between backquotes that a text begins with, and what follows.
fn name(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('`')?;
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('`')?;
        name.push_str(part);
        match after.strip_prefix('`') {
            Some(more) => {
                name.push('`');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, scope};

    #[test]
    fn lines_say_where_trigger_is_granted() {
        let schemas = |pattern: &str| Some(Scope::Schemas(pattern.to_owned()));
        let table =
            |schema: &str, table: &str| Some(Scope::Table(schema.to_owned(), table.to_owned()));
        for (line, expected) in [
            (
                "GRANT SELECT, TRIGGER ON *.* TO `g`@`h`",
                Some(Scope::Everywhere),
            ),
            (
                "GRANT ALL PRIVILEGES ON *.* TO `g`@`h` WITH GRANT OPTION",
                Some(Scope::Everywhere),
            ),
            ("GRANT SELECT ON *.* TO `g`@`h`", None),
            ("GRANT USAGE ON *.* TO `TRIGGER`@`h`", None),
            ("GRANT TRIGGER ON `sh\\_p`.* TO `g`@`h`", schemas("sh\\_p")),
            ("GRANT TRIGGER ON `a``.b`.* TO `g`@`h`", schemas("a`.b")),
            (
                "GRANT TRIGGER ON `shop`.`orders` TO `g`@`h`",
                table("shop", "orders"),
            ),
            (
                "GRANT SELECT (`a`), TRIGGER ON `shop`.`orders` TO `g`@`h`",
                table("shop", "orders"),
            ),
            (
                "REVOKE TRIGGER ON `shop`.* FROM `g`@`h`",
                Some(Scope::AllBut("shop".to_owned())),
            ),
            ("GRANT `keeper`@`%` TO `g`@`h`", None),
            ("SET DEFAULT ROLE `keeper` FOR `g`@`h`", None),
        ] {
            assert_eq!(scope(line), expected, "{line}");
        }
    }
}
