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
            table: table(&users, &grants),
        }))
    }
}

/// Nothing has changed yet where there is no row.
fn version(row: Option<&Row>) -> Result<String, StoreError> {
    row.map_or(Ok(String::new()), |row| column(row, "version"))
}

/// A row that cannot be read is left out: it must not keep the removal of another user from taking effect. Grants only add rights, so a user without one
/// may less.
fn table(users: &[Row], grants: &[Row]) -> UserTable {
    let mut left_out = Vec::new();
    let mut by_user: HashMap<String, Vec<Grant>> = HashMap::new();
    for row in grants {
        let of = column::<String>(row, "user_name");
        match of.and_then(|of| Ok((of, grant(row)?))) {
            Ok((of, grant)) => by_user.entry(of).or_default().push(grant),
            Err(error) => left_out.push(format!("a right of {}: {error}", shown(row, "user_name"))),
        }
    }
    let mut read = Vec::with_capacity(users.len());
    for row in users {
        match user(row, &mut by_user) {
            Ok(user) => read.push(user),
            Err(error) => left_out.push(format!("{}: {error}", shown(row, "name"))),
        }
    }
    UserTable::new(read).leaving_out(left_out)
}

fn user(row: &Row, by_user: &mut HashMap<String, Vec<Grant>>) -> Result<User, StoreError> {
    let name: String = column(row, "name")?;
    let mut grants = by_user.remove(&name).unwrap_or_default();
    // Engines order texts each in their way.
    grants.sort_by(|one, other| one.pattern.as_str().cmp(other.pattern.as_str()));
    Ok(User {
        name: UserName::parse(&name).map_err(|_| wrong("name", &name))?,
        password: password(row)?,
        grants,
    })
}

/// Whose row it is, for people.
fn shown(row: &Row, name: &str) -> String {
    let name: Result<String, StoreError> = column(row, name);
    name.map_or_else(
        |_| "a user without name".to_owned(),
        |name| format!("user \"{}\"", name.escape_debug()),
    )
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
        value: value.escape_debug().to_string(),
    }
}
