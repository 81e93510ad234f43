//! Users of key ports and what they may: by patterns of names. Who they are and what they may is kept in the store, and followed by all
//! programs.

mod grants;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use keywright_core::Cause;

use crate::failure::Failure;

pub use grants::{Grant, NamePattern, Right, Rights};

/// Longest name of a user, characters.
const NAME_CHARS_MAX: usize = 64;

/// A user's name: no colon, since HTTP has one behind it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserName(String);

impl UserName {
    /// Reads one.
    ///
    /// # Errors
    /// [`Cause::UserInvalid`].
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let is_char = |byte: u8| byte.is_ascii_graphic() && byte != b':';
        match (1..=NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(is_char) {
            true => Ok(Self(text.to_owned())),
            false => Err(Failure::new(
                Cause::UserInvalid,
                format!(
                    "a user's name has 1 to {NAME_CHARS_MAX} visible ASCII characters, and no colon"
                ),
            )),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A password as it is kept: hashed. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Arc<str>);

impl PasswordHash {
    /// A PHC string.
    pub fn new(phc: impl Into<Arc<str>>) -> Self {
        Self(phc.into())
    }

    /// The PHC string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PasswordHash(..)")
    }
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Who it is.
    pub name: UserName,
    /// What he must say.
    pub password: PasswordHash,
    /// What he may do, in the order of patterns.
    pub grants: Vec<Grant>,
}

impl User {
    /// Whether he may do that with a name.
    pub fn may(&self, right: Right, name: &[u8]) -> bool {
        let mut grants = self.grants.iter();
        grants.any(|grant| grant.rights.has(right) && grant.pattern.matches(name))
    }

    /// Whether any of his grants is for this name.
    pub fn sees(&self, name: &[u8]) -> bool {
        self.grants.iter().any(|grant| grant.pattern.matches(name))
    }

    /// Whether he may add, change and remove users.
    pub fn administers(&self) -> bool {
        let mut grants = self.grants.iter();
        grants.any(|grant| grant.rights.has(Right::Administer) && grant.pattern.is_all())
    }
}

/// All users, as of one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserTable {
    users: BTreeMap<String, Arc<User>>,
    left_out: Vec<String>,
}

impl UserTable {
    /// Of these users.
    pub fn new(users: impl IntoIterator<Item = User>) -> Self {
        let named = |user: User| (user.name.as_str().to_owned(), Arc::new(user));
        Self {
            users: users.into_iter().map(named).collect(),
            left_out: Vec::new(),
        }
    }

    /// The same beside rows of users and rights that cannot be read, as people are told of them.
    #[must_use]
    pub fn leaving_out(self, rows: Vec<String>) -> Self {
        Self {
            left_out: rows,
            ..self
        }
    }

    /// Rows of users and rights that cannot be read: these users are not there, and these rights nobody has.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The user of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<User>> {
        self.users.get(name)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<User>> {
        self.users.values()
    }
}

/// What is to become of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserChange {
    /// There is one more.
    Add {
        /// Its password.
        password: PasswordHash,
        /// What it may do.
        grants: Vec<Grant>,
    },
    /// It has another password. Who is connected has to log in again.
    SetPassword(PasswordHash),
    /// It may do this, too.
    Grant(Grant),
    /// It may not do this any more; the pattern is one that it was granted.
    Revoke(Grant),
    /// It is no more.
    Remove,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(pattern: &str, rights: &str) -> Grant {
        let pattern = NamePattern::parse(pattern).unwrap();
        Grant::new(pattern, Rights::parse(rights).unwrap()).unwrap()
    }

    fn user(grants: &[(&str, &str)]) -> User {
        let grants = grants.iter();
        User {
            name: UserName::parse("app").unwrap(),
            password: PasswordHash::new("$argon2id$secret"),
            grants: grants
                .map(|(pattern, rights)| grant(pattern, rights))
                .collect(),
        }
    }

    #[test]
    fn names_that_are_none_are_refused() {
        let long = "a".repeat(NAME_CHARS_MAX + 1);
        for name in ["", "a b", "a:b", "ü", "a\n", "a\0", long.as_str()] {
            assert!(UserName::parse(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_user_may_what_one_of_his_grants_says() {
        let app = user(&[("shop.*", "use,create"), ("*.log", "use,manage")]);
        assert!(app.may(Right::Use, b"shop.orders"));
        assert!(app.may(Right::Create, b"shop.orders"));
        assert!(!app.may(Right::Manage, b"shop.orders"));
        assert!(app.may(Right::Manage, b"shop.log"));
        assert!(!app.may(Right::Use, b"bank.orders"));
        assert!(!app.administers());
        let root = user(&[("*", "administer")]);
        assert!(root.administers() && !root.may(Right::Use, b"orders"));
    }

    #[test]
    fn a_hash_is_not_shown() {
        assert!(!format!("{:?}", user(&[])).contains("secret"));
    }
}
