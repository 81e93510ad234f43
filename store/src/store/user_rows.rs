//! Users as the store keeps them, and which version of them it is.

use std::collections::HashMap;

use super::{Link, Row, StoreError, Transaction, column};
use crate::users::{Grant, NamePattern, PasswordHash, Rights, User, UserName, UserTable};

const VERSION: &str = "SELECT version FROM keywright_user_version WHERE id = 1";
const USERS: &str = "SELECT name, password FROM keywright_user";
const GRANTS: &str = "SELECT user_name, name_pattern, rights FROM keywright_user_grant";

/// The users, and which version of them it is.
#[derive(Debug)]
pub(crate) struct UserRows {
    /// Another text whenever something has changed. (A count could come again in a store that was restored.)
    pub(crate) version: String,
    pub(crate) table: UserTable,
}

/// Reads the users, if they are another version than the one that is known.
#[derive(Debug)]
pub(crate) struct ReadUsers {
    pub(crate) known: Option<String>,
}

impl Transaction<Option<UserRows>> for ReadUsers {
    async fn run(&self, link: &mut Link) -> Result<Option<UserRows>, StoreError> {
        if let Some(known) = &self.known {
            let row = link.first(VERSION, Vec::new()).await?;
            if version(row.as_ref())? == *known {
                return Ok(None);
            }
        }
        let queries = [VERSION, USERS, GRANTS].map(str::to_owned);
        let [versions, users, grants] = link.rows_together(queries).await?;
        Ok(Some(UserRows {
            version: version(versions.first())?,
            table: table(&users, &grants)?,
        }))
    }
}

/// Nothing has changed yet where there is no row.
fn version(row: Option<&Row>) -> Result<String, StoreError> {
    row.map_or(Ok(String::new()), |row| column(row, "version"))
}

fn table(users: &[Row], grants: &[Row]) -> Result<UserTable, StoreError> {
    let mut by_user: HashMap<String, Vec<Grant>> = HashMap::new();
    for row in grants {
        let of = by_user.entry(column(row, "user_name")?).or_default();
        of.push(grant(row)?);
    }
    let users: Result<Vec<User>, StoreError> = users
        .iter()
        .map(|row| {
            let name: String = column(row, "name")?;
            let mut grants = by_user.remove(&name).unwrap_or_default();
            // Engines order texts each in their way.
            grants.sort_by(|one, other| one.pattern.as_str().cmp(other.pattern.as_str()));
            let name = UserName::parse(&name).map_err(|_| wrong("name", &name))?;
            Ok(User {
                name,
                password: password(row)?,
                grants,
            })
        })
        .collect();
    users.map(UserTable::new)
}

/// What stands there is not shown, whatever it is.
fn password(row: &Row) -> Result<PasswordHash, StoreError> {
    let text: Result<String, StoreError> = column(row, "password");
    text.map(PasswordHash::new)
        .map_err(|_| wrong("password", "what is no text"))
}

pub(super) fn grant(row: &Row) -> Result<Grant, StoreError> {
    let (pattern, rights): (String, String) =
        (column(row, "name_pattern")?, column(row, "rights")?);
    let read = || Grant::new(NamePattern::parse(&pattern)?, Rights::parse(&rights)?);
    read().map_err(|_| wrong("rights", &format!("{rights} on {pattern}")))
}

fn wrong(column: &str, value: &str) -> StoreError {
    StoreError::Column {
        column: column.to_owned(),
        value: value.to_owned(),
    }
}
