//! What keeps a server from being fed, by what it concerns: each has its own, which nothing but its own success ends.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use keywright_core::Tag;
use tokio::time::Instant;

/// What goes on for so long is told once more.
const TOLD_AGAIN: Duration = Duration::from_mins(10);

/// What nobody has wanted for so long is in trouble no more: another program feeds it, or it is gone. Who wants something is told of every few seconds,
/// but to one program at a time.
const UNWANTED: Duration = Duration::from_mins(1);

/// What a trouble concerns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// The connection to the server, and with it all that is fed there.
    Connection,
    /// One tag.
    Tag(Tag),
    /// One tag of one database, by its object id on the server. Others that have the tag may be fed.
    TagOf(Tag, String),
    /// One database whose snowflake ids are fed.
    Database(Database),
}

/// A database whose snowflake ids are fed. The owner of its lease says which one it is; the others are for people, and a name may change, or not be known.
#[derive(Debug, Clone)]
pub(super) struct Database {
    pub(super) owner: String,
    /// Its object id on the server.
    pub(super) oid: String,
    pub(super) name: Option<String>,
}

impl PartialEq for Database {
    fn eq(&self, other: &Self) -> bool {
        self.owner == other.owner
    }
}

impl Eq for Database {}

impl PartialOrd for Database {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Database {
    fn cmp(&self, other: &Self) -> Ordering {
        self.owner.cmp(&other.owner)
    }
}

impl fmt::Display for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, oid, name } = self;
        match name {
            Some(name) => write!(formatter, "database \"{name}\" ({owner})"),
            None => write!(
                formatter,
                "database with object id {oid}, see pg_database ({owner})"
            ),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection => formatter.write_str("connection"),
            Self::Tag(tag) => write!(formatter, "tag \"{tag}\""),
            Self::TagOf(tag, oid) => write!(
                formatter,
                "tag \"{tag}\" of the database with object id {oid}, see pg_database"
            ),
            Self::Database(database) => database.fmt(formatter),
        }
    }
}

/// All troubles of one server: one at most of each subject.
#[derive(Debug, Default)]
pub(super) struct Troubles(BTreeMap<Subject, Trouble>);

#[derive(Debug)]
struct Trouble {
    /// As it was met last.
    text: String,
    /// When the log told of it.
    told: Instant,
    /// When the subject was known to want something.
    wanted: Instant,
}

impl Troubles {
    /// Notes what keeps the subject from being fed, and says whether it is news: neither of this subject nor of another the log told the same of late.
    pub(super) fn failed(&mut self, subject: &Subject, text: String) -> bool {
        let lately = self
            .0
            .values()
            .filter(|known| !known.is_other(&text) && known.told.elapsed() < TOLD_AGAIN);
        let known = lately.map(|known| known.told).max();
        let now = Instant::now();
        let trouble = Trouble {
            text,
            told: known.unwrap_or(now),
            wanted: now,
        };
        self.0.insert(subject.clone(), trouble);
        known.is_none()
    }

    /// The subject was fed. Returns it, as it was known, if it was in trouble.
    pub(super) fn succeeded(&mut self, subject: &Subject) -> Option<Subject> {
        let (known, _) = self.0.remove_entry(subject)?;
        Some(known)
    }

    /// These want something now. Returns the subjects whose trouble ends because they have wanted nothing for long.
    pub(super) fn wanted_by(
        &mut self,
        subjects: impl Iterator<Item = Subject>,
        now: Instant,
    ) -> Vec<Subject> {
        // Mostly there is none.
        if self.0.is_empty() {
            return Vec::new();
        }
        for subject in subjects {
            if let Some(trouble) = self.0.get_mut(&subject) {
                trouble.wanted = now;
            }
        }
        let over = self.0.iter().filter(|(subject, trouble)| {
            **subject != Subject::Connection && now.duration_since(trouble.wanted) >= UNWANTED
        });
        let over: Vec<Subject> = over.map(|(subject, _)| subject.clone()).collect();
        for subject in &over {
            self.0.remove(subject);
        }
        over
    }

    /// One of them, that of the connection before others.
    pub(super) fn first(&self) -> Option<&str> {
        let trouble = self.0.values().next()?;
        Some(&trouble.text)
    }
}

impl Trouble {
    /// Whether it is another than the failure that `text` tells of: not by how long is still to be waited.
    fn is_other(&self, text: &str) -> bool {
        !without_waits(&self.text).eq(without_waits(text))
    }
}

/// The words of a message, but for numbers of milliseconds.
fn without_waits(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(' ');
    let following = words.clone().skip(1).chain([""]);
    words
        .zip(following)
        .filter(|(word, next)| !is_wait(word, next))
        .map(|(word, _)| word)
}

fn is_wait(word: &str, next: &str) -> bool {
    next.starts_with("ms") && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AWAY: &str = "the store is away";

    fn tag(name: &str) -> Subject {
        Subject::Tag(Tag::parse(name).unwrap())
    }

    #[test]
    fn a_wait_that_grows_shorter_is_no_news() {
        let known = Trouble {
            text: "all of 1-9 are in use; the next is free in 1208229 ms (or wait)".to_owned(),
            told: Instant::now(),
            wanted: Instant::now(),
        };
        for (text, is_other) in [
            (
                "all of 1-9 are in use; the next is free in 1208229 ms (or wait)",
                false,
            ),
            (
                "all of 1-9 are in use; the next is free in 998 ms (or wait)",
                false,
            ),
            (
                "all of 1-7 are in use; the next is free in 1208229 ms (or wait)",
                true,
            ),
            (
                "all of 1-9 are in use; the next is free in 1208229 ms",
                true,
            ),
            ("tag \"orders\" is exhausted at 998", true),
        ] {
            assert_eq!(known.is_other(text), is_other, "{text}");
        }
    }

    #[test]
    fn a_trouble_is_told_once_while_others_are_fed() {
        let mut troubles = Troubles::default();
        let (orders, bills) = (tag("orders"), tag("bills"));
        assert!(troubles.failed(&orders, "exhausted".to_owned()));
        assert_eq!(troubles.succeeded(&bills), None, "it was in no trouble");
        assert!(!troubles.failed(&orders, "exhausted".to_owned()));
        assert_eq!(troubles.first(), Some("exhausted"));
        assert!(troubles.succeeded(&orders).is_some());
        assert_eq!(troubles.first(), None);
        assert!(troubles.failed(&orders, "exhausted".to_owned()), "again");
    }

    #[test]
    fn what_all_suffer_from_is_told_once() {
        let mut troubles = Troubles::default();
        let (orders, bills) = (tag("orders"), tag("bills"));
        assert!(troubles.failed(&orders, AWAY.to_owned()));
        assert!(!troubles.failed(&bills, AWAY.to_owned()));
        assert!(troubles.succeeded(&orders).is_some());
        assert_eq!(troubles.first(), Some(AWAY), "of the other");
    }

    #[test]
    fn a_database_is_told_by_its_name() {
        let database = |owner: &str, name: Option<&str>| {
            Subject::Database(Database {
                owner: owner.to_owned(),
                oid: "17448".to_owned(),
                name: name.map(str::to_owned),
            })
        };
        let named = "database \"shop\" (77 17448 ab)";
        let shop = database("77 17448 ab", Some("shop"));
        assert_eq!(shop.to_string(), named);
        let unnamed = database("77 17448 ab", None);
        assert_eq!(
            unnamed.to_string(),
            "database with object id 17448, see pg_database (77 17448 ab)"
        );
        let of_one = Subject::TagOf(Tag::parse("orders").unwrap(), "17448".to_owned());
        assert_eq!(
            of_one.to_string(),
            "tag \"orders\" of the database with object id 17448, see pg_database"
        );
        // Who is fed again, or wants nothing any more, is told by the name that was found when it failed.
        let mut troubles = Troubles::default();
        assert!(troubles.failed(&shop, AWAY.to_owned()));
        let of_another_life = database("77 17448 cd", None);
        assert_eq!(troubles.succeeded(&of_another_life), None);
        let known = troubles.succeeded(&unnamed);
        assert_eq!(known.map(|known| known.to_string()).as_deref(), Some(named));
    }

    #[test]
    fn who_wants_nothing_for_long_is_in_trouble_no_more() {
        let mut troubles = Troubles::default();
        let (orders, bills) = (tag("orders"), tag("bills"));
        for subject in [&Subject::Connection, &orders, &bills] {
            troubles.failed(subject, AWAY.to_owned());
        }
        let nobody = std::iter::empty::<Subject>;
        let later = Instant::now() + UNWANTED;
        let over = troubles.wanted_by([orders.clone()].into_iter(), later);
        assert_eq!(over, [bills]);
        let over = troubles.wanted_by(nobody(), later + UNWANTED / 2);
        assert!(over.is_empty(), "{over:?}");
        let over = troubles.wanted_by(nobody(), later + UNWANTED);
        assert_eq!(over, [orders]);
        assert!(troubles.succeeded(&Subject::Connection).is_some());
    }
}
