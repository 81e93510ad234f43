//! What the account may do with the store's tables: statements are explained, not carried out, which takes the same privileges.

use crate::engine::Link;
use crate::engine::error::StoreError;

/// A privilege.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privilege {
    Select,
    Insert,
    Update,
    Delete,
}

impl Privilege {
    pub(crate) const ALL: [Self; 4] = [Self::Select, Self::Insert, Self::Update, Self::Delete];

    fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    /// A statement that needs it, and nothing else.
    fn statement(self, table: &str, column: &str) -> String {
        match self {
            Self::Select => format!("EXPLAIN SELECT {column} FROM {table}"),
            Self::Insert => format!("EXPLAIN INSERT INTO {table} ({column}) VALUES (1)"),
            Self::Update => format!("EXPLAIN UPDATE {table} SET {column} = 1"),
            Self::Delete => format!("EXPLAIN DELETE FROM {table}"),
        }
    }
}

/// A table, a column of it, and what the account needs there.
pub(crate) struct Needed<'a> {
    pub(crate) table: &'a str,
    pub(crate) column: &'a str,
    pub(crate) privileges: &'a [Privilege],
}

/// What the account lacks, for people. Of whatever the server refuses for another reason nothing is said.
pub(crate) async fn lacks(
    link: &mut Link,
    needed: impl IntoIterator<Item = Needed<'_>>,
) -> Result<Vec<String>, StoreError> {
    let mut lacking: Vec<(Privilege, Vec<String>)> = Vec::new();
    for Needed {
        table,
        column,
        privileges,
    } in needed
    {
        for privilege in privileges {
            let statement = privilege.statement(table, column);
            match link.rows(statement, Vec::new()).await {
                Ok(_) => {}
                Err(error) if error.is_denied() => {
                    match lacking.iter_mut().find(|(of, _)| of == privilege) {
                        Some((_, tables)) => tables.push(table.to_owned()),
                        None => lacking.push((*privilege, vec![table.to_owned()])),
                    }
                }
                Err(error) if error.is_refusal() => {}
                Err(error) => return Err(error),
            }
        }
    }
    let told = lacking.iter().map(|(privilege, tables)| {
        format!(
            "the store's account lacks {} on {}: GRANT SELECT, INSERT, UPDATE, DELETE on the store's tables",
            privilege.name(),
            tables.join(", ")
        )
    });
    Ok(told.collect())
}
