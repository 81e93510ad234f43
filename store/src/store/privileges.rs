//! What the account may do with the store's tables: statements are explained, not carried out, which takes the same privileges.

use mysql_async::prelude::Queryable;

use super::{Link, StoreError};

/// The servers' errors where a privilege is missing: on the table, and on a column.
const DENIED: [u16; 2] = [1142, 1143];

/// A privilege.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Privilege {
    Select,
    Insert,
    Update,
    Delete,
}

impl Privilege {
    pub(super) const ALL: [Self; 4] = [Self::Select, Self::Insert, Self::Update, Self::Delete];

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
pub(super) struct Needed<'a> {
    pub(super) table: &'a str,
    pub(super) column: &'a str,
    pub(super) privileges: &'a [Privilege],
}

/// What the account lacks, for people. Of whatever the server refuses for another reason nothing is said.
pub(super) async fn lacks(
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
            match link.conn.query_drop(statement).await {
                Ok(()) => {}
                Err(mysql_async::Error::Server(error)) if DENIED.contains(&error.code) => {
                    match lacking.iter_mut().find(|(of, _)| of == privilege) {
                        Some((_, tables)) => tables.push(table.to_owned()),
                        None => lacking.push((*privilege, vec![table.to_owned()])),
                    }
                }
                Err(mysql_async::Error::Server(_)) => {}
                Err(error) => return Err(error.into()),
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
