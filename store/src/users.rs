//! Users of key ports and what they may: by patterns of names. Who they are and what they may is kept in the store, and followed by all
//! programs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use keywright_core::Cause;
use wildmatch::WildMatch;

use crate::failure::Failure;

/// Longest name of a user, characters.
const NAME_CHARS_MAX: usize = 64;
/// Longest pattern of names, characters.
const PATTERN_CHARS_MAX: usize = 255;
/// Longest name that can be given keys, bytes: no pattern matches a longer one.
const MATCHED_BYTES_MAX: usize = 512;
/// The pattern of all names.
const ALL_NAMES: &str = "*";

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Cause::UserInvalid, message)
}

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
            false => Err(invalid(format!(
                "a user's name has 1 to {NAME_CHARS_MAX} visible ASCII characters, and no colon"
            ))),
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

/// What a user may do with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Take keys of it, and look at it.
    Use,
    /// Make its tag.
    Create,
    /// Raise its tag.
    Manage,
    /// Add, change and remove users; that is for all names.
    Administer,
}

impl Right {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Use, Self::Create, Self::Manage, Self::Administer];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Use => "use",
            Self::Create => "create",
            Self::Manage => "manage",
            Self::Administer => "administer",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Use => 1,
            Self::Create => 2,
            Self::Manage => 4,
            Self::Administer => 8,
        }
    }
}

/// Some of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Reads `use,create`.
    ///
    /// # Errors
    /// [`Cause::UserInvalid`].
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut rights = Self::default();
        for word in text.split(',').map(str::trim) {
            let right = Right::ALL.into_iter().find(|right| right.name() == word);
            let right = right.ok_or_else(|| {
                invalid("rights are use, create, manage and administer, with commas between them")
            })?;
            rights.0 |= right.bit();
        }
        Ok(rights)
    }

    /// Whether one is among them.
    pub fn has(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These and those.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These without those.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

/// With commas.
impl fmt::Display for Rights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        for right in Right::ALL.into_iter().filter(|right| self.has(*right)) {
            if !std::mem::take(&mut is_first) {
                formatter.write_str(",")?;
            }
            formatter.write_str(right.name())?;
        }
        Ok(())
    }
}

/// Names: `*` stands for any characters, `?` for one, as in the tables of a rule.
#[derive(Debug, Clone)]
pub struct NamePattern {
    text: String,
    matcher: WildMatch,
}

impl NamePattern {
    /// Reads one.
    ///
    /// # Errors
    /// [`Cause::UserInvalid`].
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let is_pattern = (1..=PATTERN_CHARS_MAX).contains(&text.chars().count())
            && !text.chars().any(char::is_control)
            // MySQL takes texts for the same that differ in blanks at their ends.
            && text.trim() == text;
        match is_pattern {
            true => Ok(Self {
                matcher: WildMatch::new(text),
                text: text.to_owned(),
            }),
            false => Err(invalid(format!(
                "a pattern of names has 1 to {PATTERN_CHARS_MAX} characters, none that controls and no blanks at its ends: shop.* or *"
            ))),
        }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is for all names.
    pub fn is_all(&self) -> bool {
        self.text == ALL_NAMES
    }

    /// Whether a name is one of these. One that is not UTF-8 is nobody's.
    pub fn matches(&self, name: &[u8]) -> bool {
        name.len() <= MATCHED_BYTES_MAX
            && std::str::from_utf8(name).is_ok_and(|name| self.matcher.matches(name))
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NamePattern {}

/// What a user may do with some names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The names.
    pub pattern: NamePattern,
    /// What he may do.
    pub rights: Rights,
}

impl Grant {
    /// Puts both together.
    ///
    /// # Errors
    /// [`Cause::UserInvalid`]: users are not administered for some names, since whoever could give rights would have them all.
    pub fn new(pattern: NamePattern, rights: Rights) -> Result<Self, Failure> {
        match rights.has(Right::Administer) && !pattern.is_all() {
            true => Err(invalid("administer is for all names: give it on *")),
            false => Ok(Self { pattern, rights }),
        }
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
    fn names_are_those_that_their_pattern_says() {
        for (pattern, name, is_its) in [
            ("*", "orders", true),
            ("*", "", true),
            ("orders", "orders", true),
            ("orders", "orders2", false),
            ("orders", "Orders", false),
            ("shop.*", "shop.orders", true),
            ("shop.*", "shop.", true),
            ("shop.*", "shop", false),
            ("shop.*", "shopXorders", false),
            ("*.orders", "shop.orders", true),
            ("s*p.o*s", "shop.orders", true),
            ("s*p.o*s", "shop.order", false),
            ("order?", "orders", true),
            ("order?", "order", false),
            ("?", "ü", true),
            ("**", "orders", true),
            ("[a-z]*", "orders", false),
            ("\\*", "*", false),
            ("(.*)", "orders", false),
        ] {
            let matches = NamePattern::parse(pattern)
                .unwrap()
                .matches(name.as_bytes());
            assert_eq!(matches, is_its, "{pattern} {name}");
        }
        let all = NamePattern::parse("*").unwrap();
        assert!(!all.matches(b"\xff"));
        assert!(all.matches(&[b'a'; MATCHED_BYTES_MAX]));
        assert!(!all.matches(&[b'a'; MATCHED_BYTES_MAX + 1]));
    }

    #[test]
    fn texts_that_are_none_are_refused() {
        let long = "a".repeat(NAME_CHARS_MAX + 1);
        for name in ["", "a b", "a:b", "ü", "a\n", "a\0", long.as_str()] {
            assert!(UserName::parse(name).is_err(), "{name:?}");
        }
        let long = "a".repeat(PATTERN_CHARS_MAX + 1);
        for pattern in ["", "a\n", "\0", "a ", " a", " ", long.as_str()] {
            assert!(NamePattern::parse(pattern).is_err(), "{pattern:?}");
        }
        for rights in ["", "all", "use,", "use;create", "USE"] {
            assert!(Rights::parse(rights).is_err(), "{rights:?}");
        }
        let administer = Rights::parse("use,administer").unwrap();
        let some = NamePattern::parse("shop.*").unwrap();
        assert!(Grant::new(some, administer).is_err());
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
    fn rights_are_written_as_they_are_read() {
        let rights = Rights::parse("administer, use").unwrap();
        assert_eq!(rights.to_string(), "use,administer");
        let rest = rights.without(Rights::parse("use,create").unwrap());
        assert_eq!(rest.to_string(), "administer");
        assert!(rest.without(rest).is_empty());
        assert_eq!(rest.and(Rights::parse("use").unwrap()), rights);
    }

    #[test]
    fn a_hash_is_not_shown() {
        assert!(!format!("{:?}", user(&[])).contains("secret"));
    }
}
