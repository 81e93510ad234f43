//! Who clients of a key port are, and what they may.

use std::sync::Arc;

use keywright_core::Cause;
use keywright_store::Failure;
use keywright_store::users::{Right, User};

use crate::port::keys::{NamedKeys, PortKeys};
use crate::users::{self, PortUsers};

/// Who a client is.
#[derive(Debug, Clone)]
pub(super) enum Who {
    /// Somebody who is told nothing.
    Stranger,
    /// Somebody of a listener without users, who may take keys of every name.
    Anybody,
    /// A user.
    User(Arc<User>),
}

impl Who {
    /// What lists and clients call it.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Stranger | Self::Anybody => "default",
            Self::User(user) => user.name.as_str(),
        }
    }

    /// Whether it may take keys of a name, and look at them. Who may not, is not told whether there is such a name.
    ///
    /// # Errors
    /// It may not, or has not said who it is.
    pub(super) fn may_use(&self, name: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stranger => Err(password_missing()),
            Self::Anybody => Ok(()),
            Self::User(user) => users::may(user, Right::Use, name),
        }
    }

    /// Whether it may do that with a name. Where there are no users nobody may.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn may_manage(&self, right: Right, name: &[u8]) -> Result<(), Failure> {
        users::may(self.user()?, right, name)
    }

    /// Whether it may add, change and remove users.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn may_administer(&self) -> Result<(), Failure> {
        users::may_administer(self.user()?)
    }

    /// The same as the store has it by now.
    ///
    /// # Errors
    /// The user was removed, or has another password; or nobody knows.
    pub(super) fn now(&self, keys: &PortKeys) -> Result<Self, Failure> {
        match &keys.users {
            Some(users) => self.now_among(users),
            None => Ok(self.clone()),
        }
    }

    /// The same among these users.
    ///
    /// # Errors
    /// As of [`Self::now`].
    pub(super) fn now_among(&self, users: &PortUsers) -> Result<Self, Failure> {
        let Self::User(user) = self else {
            return Ok(self.clone());
        };
        let now = users.still(user)?.ok_or_else(|| {
            let message = format!(
                "user \"{}\" was removed, or has another password",
                user.name
            );
            Failure::new(Cause::PasswordMissing, message)
        })?;
        Ok(Self::User(now))
    }

    fn user(&self) -> Result<&User, Failure> {
        match self {
            Self::User(user) => Ok(user),
            Self::Stranger => Err(password_missing()),
            Self::Anybody => Err(Failure::new(
                Cause::CommandRefused,
                "nothing is managed through a listener without users",
            )
            .hint("keywright init, advance and tag do it, or users = true of the [[listener]]")),
        }
    }

    /// The names that it is told of.
    pub(super) fn names<'a>(&self, keys: &'a PortKeys) -> Vec<&'a Arc<NamedKeys>> {
        let mut names = keys.names();
        match self {
            Self::Stranger => names.clear(),
            Self::Anybody => {}
            Self::User(user) => names.retain(|named| user.sees(named.name.as_bytes())),
        }
        names
    }
}

fn password_missing() -> Failure {
    Failure::new(Cause::PasswordMissing, "Authentication required.")
}
