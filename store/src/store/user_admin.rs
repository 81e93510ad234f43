//! Adding, changing and removing users.

use keywright_core::Cause;
use uuid::Uuid;

use super::user_rows::grant;
use super::{Link, StoreError, Transaction, values};
use crate::failure::Failure;
use crate::users::{Grant, PasswordHash, Rights, UserChange, UserName};

/// Users of a store: all programs have them in memory.
const USERS_MAX: u64 = 10_000;
/// Patterns of one user: each request looks through them.
const GRANTS_MAX: u64 = 100;

/// A change of one user, which programs hear of by the next version.
#[derive(Debug)]
pub(crate) struct ChangeUser {
    pub(crate) name: UserName,
    pub(crate) change: UserChange,
}

impl Transaction<Result<(), Failure>> for ChangeUser {
    async fn run(&self, link: &mut Link) -> Result<Result<(), Failure>, StoreError> {
        link.begin().await?;
        // First, so that changes come one after another.
        let version = Uuid::new_v4().simple().to_string();
        let or_update = link.words().or_update("id");
        let write = format!(
            "INSERT INTO keywright_user_version (id, version) VALUES (1, ?) {or_update} version = ?"
        );
        link.change(write, values![&version, &version]).await?;
        let changed = self.change(link).await?;
        link.end(changed.is_ok()).await?;
        Ok(changed)
    }
}

impl ChangeUser {
    async fn change(&self, link: &mut Link) -> Result<Result<(), Failure>, StoreError> {
        let name = self.name.as_str();
        let select = "SELECT name FROM keywright_user WHERE name = ?";
        let is_there = link.first(select, values![name]).await?.is_some();
        match (&self.change, is_there) {
            (UserChange::Add { .. }, true) => Ok(Err(Failure::new(
                Cause::UserExists,
                format!("user \"{name}\" exists already"),
            ))),
            (UserChange::Add { password, grants }, false) => self.add(password, grants, link).await,
            (
                UserChange::SetPassword(_)
                | UserChange::Grant(_)
                | UserChange::Revoke(_)
                | UserChange::Remove,
                false,
            ) => Ok(Err(Failure::new(
                Cause::UserUnknown,
                format!("there is no user \"{name}\""),
            ))),
            (UserChange::SetPassword(password), true) => {
                let update = format!(
                    "UPDATE keywright_user SET password = ?, changed_at_ms = {} WHERE name = ?",
                    link.words().now_ms()
                );
                let values = values![password.as_str(), name];
                link.change_one(update, values).await.map(Ok)
            }
            (UserChange::Grant(grant), true) => self.grant(grant, link).await,
            (UserChange::Revoke(grant), true) => self.revoke(grant, link).await,
            (UserChange::Remove, true) => {
                let delete = "DELETE FROM keywright_user_grant WHERE user_name = ?";
                link.change(delete, values![name]).await?;
                let delete = "DELETE FROM keywright_user WHERE name = ?";
                link.change_one(delete, values![name]).await.map(Ok)
            }
        }
    }

    async fn add(
        &self,
        password: &PasswordHash,
        grants: &[Grant],
        link: &mut Link,
    ) -> Result<Result<(), Failure>, StoreError> {
        let count = "SELECT COUNT(*) AS count FROM keywright_user";
        let count = link.first(count, Vec::new()).await?;
        if count.map_or(Ok(0), |row| row.first::<u64>())? >= USERS_MAX {
            return Ok(Err(too_many(format!("there are {USERS_MAX} users"))));
        }
        let insert = format!(
            "INSERT INTO keywright_user (name, password, changed_at_ms) VALUES (?, ?, {})",
            link.words().now_ms()
        );
        let values = values![self.name.as_str(), password.as_str()];
        link.change_one(insert, values).await?;
        for grant in grants {
            if let Err(failure) = self.grant(grant, link).await? {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }

    /// What was granted on the same pattern stays.
    async fn grant(
        &self,
        grant: &Grant,
        link: &mut Link,
    ) -> Result<Result<(), Failure>, StoreError> {
        let Some(before) = self.granted(grant, link).await? else {
            let name = self.name.as_str();
            let count = "SELECT COUNT(*) AS count FROM keywright_user_grant WHERE user_name = ?";
            let count = link.first(count, values![name]).await?;
            if count.map_or(Ok(0), |row| row.first::<u64>())? >= GRANTS_MAX {
                let message = format!("user \"{name}\" has rights on {GRANTS_MAX} patterns");
                return Ok(Err(too_many(message)));
            }
            let insert = "INSERT INTO keywright_user_grant (user_name, name_pattern, rights) VALUES (?, ?, ?)";
            let values = values![name, grant.pattern.as_str(), grant.rights.to_string()];
            return link.change_one(insert, values).await.map(Ok);
        };
        self.set(grant, before.and(grant.rights), link).await?;
        Ok(Ok(()))
    }

    async fn revoke(
        &self,
        grant: &Grant,
        link: &mut Link,
    ) -> Result<Result<(), Failure>, StoreError> {
        let (name, pattern) = (self.name.as_str(), grant.pattern.as_str());
        let before = self.granted(grant, link).await?.unwrap_or_default();
        let after = before.without(grant.rights);
        if after == before {
            let message = format!("user \"{name}\" was granted nothing of that on \"{pattern}\"");
            let failure = Failure::new(Cause::UserInvalid, message);
            return Ok(Err(
                failure.hint("patterns are revoked as they were granted")
            ));
        }
        self.set(grant, after, link).await?;
        Ok(Ok(()))
    }

    async fn granted(&self, on: &Grant, link: &mut Link) -> Result<Option<Rights>, StoreError> {
        let select = "SELECT name_pattern, rights FROM keywright_user_grant WHERE user_name = ? AND name_pattern = ?";
        let values = values![self.name.as_str(), on.pattern.as_str()];
        let row = link.first(select, values).await?;
        row.map(|row| Ok(grant(&row)?.rights)).transpose()
    }

    async fn set(&self, on: &Grant, rights: Rights, link: &mut Link) -> Result<(), StoreError> {
        let (name, pattern) = (self.name.as_str(), on.pattern.as_str());
        if rights.is_empty() {
            let delete =
                "DELETE FROM keywright_user_grant WHERE user_name = ? AND name_pattern = ?";
            return link.change_one(delete, values![name, pattern]).await;
        }
        let update =
            "UPDATE keywright_user_grant SET rights = ? WHERE user_name = ? AND name_pattern = ?";
        // As it was before, MySQL counts none.
        link.change(update, values![rights.to_string(), name, pattern])
            .await
            .map(drop)
    }
}

fn too_many(message: String) -> Failure {
    Failure::new(
        Cause::UserInvalid,
        format!("{message}: there can be no more"),
    )
}
