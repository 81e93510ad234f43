//! Users of key ports: read, changed, and followed.

use std::sync::Arc;

use super::Keys;
use super::followed_users::{FollowedUsers, follow};
use crate::failure::Failure;
use crate::store::user_admin::ChangeUser;
use crate::store::user_rows::ReadUsers;
use crate::users::{UserChange, UserName, UserTable};

impl Keys {
    /// All users.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn users(&self) -> Result<UserTable, Failure> {
        let read = self.run(ReadUsers { known: None }).await?;
        Ok(read.map(|rows| rows.table).unwrap_or_default())
    }

    /// Changes a user. Programs hear of it within a second.
    ///
    /// # Errors
    /// There is no such user, or there is one already; the store cannot be used.
    pub async fn change_user(&self, name: UserName, change: UserChange) -> Result<(), Failure> {
        self.run(ChangeUser { name, change }).await?
    }

    /// Follows the users from now on, for as long as somebody has what this returns.
    pub fn follow_users(&self) -> FollowedUsers {
        let (followed, give, shared) = FollowedUsers::new();
        let mut sources = self.sources();
        if !sources.closed {
            let task = follow(Arc::clone(&self.0.store), give, Arc::clone(&shared));
            sources.followings.push(shared);
            sources.tasks.push(self.spawn(task));
        }
        drop(sources);
        followed
    }
}
