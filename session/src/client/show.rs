//! `SHOW KEYWRIGHT STATUS | RULES | SOURCES | CONNECTIONS [LIKE 'pattern']`: what the proxy says of itself, to users who may see it.
//! The server does not see the statement, so warnings, ROW_COUNT() and FOUND_ROWS() stay those of the statement before.

use keywright_wire::bytes::{HEADER_BYTES, Header, whole};
use keywright_wire::capability::EXTENDED_METADATA;
use keywright_wire::protocol::{
    AUTOCOMMIT, COM_QUERY, IN_READ_ONLY_TRANSACTION, IN_TRANSACTION, NO_BACKSLASH_ESCAPES,
};
use keywright_wire::rows::TextResult;

use crate::job::Job;
use crate::session::Session;
use crate::step::Step;

/// Status flags of the session rather than of one statement: in a transaction, autocommit, no backslash escapes, read only.
const STATUS_OF_SESSION: u16 =
    IN_TRANSACTION | AUTOCOMMIT | NO_BACKSLASH_ESCAPES | IN_READ_ONLY_TRANSACTION;
/// utf8mb4_general_ci, for clients that name no collation.
const COLLATION: u16 = 45;

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Names and values of all figures.
    Status,
    /// The rules and what became of statements on their tables.
    Rules,
    /// Where keys come from.
    Sources,
    /// Clients that have logged in.
    Connections,
}

/// A list that a client has asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Show {
    /// Which.
    listing: Listing,
    /// Only rows whose first value is like this.
    like: Option<String>,
}

/// A list: the names of its columns, and its rows; `None` is NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Names.
    pub columns: &'static [&'static str],
    /// Values.
    pub rows: Vec<Vec<Option<String>>>,
}

impl Show {
    /// The statement, if it is one of these.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim_end();
        let text = text.strip_suffix(';').unwrap_or(text);
        let text = keyword(text, "SHOW")?;
        let text = keyword(text, "KEYWRIGHT")?;
        let known = [
            ("STATUS", Listing::Status),
            ("RULES", Listing::Rules),
            ("SOURCES", Listing::Sources),
            ("CONNECTIONS", Listing::Connections),
        ];
        let mut known = known.into_iter();
        let (listing, rest) =
            known.find_map(|(word, listing)| Some((listing, keyword(text, word)?)))?;
        let like = match rest.trim() {
            "" => None,
            rest => Some(quoted(keyword(rest, "LIKE")?.trim())?.to_owned()),
        };
        Some(Self { listing, like })
    }

    /// Whether a row is asked for.
    fn wants(&self, row: &[Option<String>]) -> bool {
        let Some(pattern) = &self.like else {
            return true;
        };
        let first = row.first().and_then(Option::as_deref);
        first.is_some_and(|value| is_like(value, pattern))
    }
}

/// What follows a word.
fn keyword<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim_ascii_start();
    let (first, rest) = text.split_at_checked(word.len())?;
    let ends = !rest.starts_with(|next: char| next.is_alphanumeric() || "_$".contains(next));
    (first.eq_ignore_ascii_case(word) && ends).then_some(rest)
}

/// What stands between quotes, if nothing else does and no quote stands within.
fn quoted(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| {
        let content = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!content.contains(quote)).then_some(content)
    })
}

/// LIKE without regard to case: `%` stands for anything, `_` for one character, and `\` takes the next as it is.
fn is_like(value: &str, pattern: &str) -> bool {
    let mut parts = Vec::new();
    let mut signs = pattern.chars();
    while let Some(sign) = signs.next() {
        parts.push(match sign {
            '%' => Part::Any,
            '_' => Part::One,
            '\\' => Part::Same(signs.next().unwrap_or('\\')),
            same => Part::Same(same),
        });
    }
    let value: Vec<char> = value.chars().collect();
    // Whether what has been read so far is like the first so many parts.
    let mut is_like_first = vec![false; parts.len() + 1];
    let starts = parts.iter().take_while(|part| **part == Part::Any).count();
    is_like_first
        .iter_mut()
        .take(starts + 1)
        .for_each(|is| *is = true);
    for sign in value {
        let mut next = vec![false];
        for (part, pair) in parts.iter().zip(is_like_first.windows(2)) {
            let (before, here) = (pair.first() == Some(&true), pair.last() == Some(&true));
            next.push(match part {
                Part::Any => here || before || next.last() == Some(&true),
                Part::One => before,
                Part::Same(same) => before && same.to_lowercase().eq(sign.to_lowercase()),
            });
        }
        is_like_first = next;
    }
    is_like_first.last() == Some(&true)
}

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    One,
    Same(char),
}

impl Session {
    /// Whether this client gets an answer to `SHOW KEYWRIGHT …`. Others get the server's, which knows no such statement.
    pub fn allow_status(&mut self, is_allowed: bool) {
        self.sees_status = is_allowed;
    }

    /// The step if such a statement is at the front.
    pub(crate) fn show_asked(&mut self, bytes: &[u8]) -> Option<Step> {
        let is_turn = self.sees_status
            && self.is_clients_turn()
            && !matches!(self.job, Job::Answered | Job::Several(_));
        if !is_turn || bytes.get(HEADER_BYTES) != Some(&COM_QUERY) {
            return None;
        }
        let header = Header::read(bytes)?;
        let payload = whole(header, bytes)?;
        let text = payload.get(self.connection.front_of(payload).ok()?..)?;
        let show = Show::read(std::str::from_utf8(text).ok()?)?;
        self.show = Some(Box::new(show));
        Some(Step::Show(header.total()))
    }

    /// What [`Step::Show`] was about.
    pub fn shown(&self) -> Option<Listing> {
        self.show.as_ref().map(|show| show.listing)
    }

    /// Answers it with those rows that the client asks for.
    pub fn show(&mut self, list: &List) {
        let Some(show) = self.show.take() else {
            return;
        };
        let columns: Vec<&[u8]> = list.columns.iter().map(|name| name.as_bytes()).collect();
        let made = TextResult {
            sequence: 1,
            deprecate_eof: self.connection.deprecates_eof(),
            extended: self.connection.facts.capabilities & EXTENDED_METADATA != 0,
            status: self.connection.last_status & STATUS_OF_SESSION,
            collation: match self.connection.facts.collation {
                0 => COLLATION,
                chosen => chosen,
            },
            columns: &columns,
        };
        let rows = list.rows.iter().filter(|row| show.wants(row));
        let rows = rows.map(|row| {
            let values = row.iter();
            values
                .map(|value| value.as_deref().map(str::as_bytes))
                .collect()
        });
        made.write(rows, &mut self.connection.down);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_statements_are_read() {
        let listing = |text| Show::read(text).map(|show| (show.listing, show.like));
        assert_eq!(
            listing(" show keywright\n status ; "),
            Some((Listing::Status, None))
        );
        assert_eq!(
            listing("SHOW KEYWRIGHT RULES LIKE 'shop.%'"),
            Some((Listing::Rules, Some("shop.%".to_owned())))
        );
        assert_eq!(
            listing("SHOW KEYWRIGHT SOURCES LIKE\"a'b\";"),
            Some((Listing::Sources, Some("a'b".to_owned())))
        );
        for other in [
            "SHOW STATUS",
            "SHOW KEYWRIGHT",
            "SHOW KEYWRIGHTSTATUS",
            "SHOW KEYWRIGHT STATUSES",
            "SHOW KEYWRIGHT STATUS x",
            "SHOW KEYWRIGHT STATUS LIKE",
            "SHOW KEYWRIGHT STATUS LIKE x",
            "SHOW KEYWRIGHT STATUS LIKE 'x' 'y'",
            "SHOW KEYWRIGHT STATUS LIKE '",
            "SHOW KEYWRIGHT CONNECTIONS; SELECT 1",
        ] {
            assert_eq!(listing(other), None, "{other}");
        }
    }

    #[test]
    fn patterns_are_those_of_like() {
        for (value, pattern) in [
            ("", ""),
            ("", "%"),
            ("rule.shop.orders", "rule.%"),
            ("rule.shop.orders", "%SHOP%"),
            ("rule.shop.orders", "%o%r%s"),
            ("größe", "gr__e"),
            ("a_b", "a\\_b"),
            ("a\\", "a\\"),
        ] {
            assert!(is_like(value, pattern), "{value} like {pattern}");
        }
        for (value, pattern) in [
            ("a", ""),
            ("", "_"),
            ("ab", "a"),
            ("ab", "_"),
            ("axb", "a\\_b"),
            ("rule", "%rules%"),
        ] {
            assert!(!is_like(value, pattern), "{value} not like {pattern}");
        }
    }
}
