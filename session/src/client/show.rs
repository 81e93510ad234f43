//! `SHOW KEYWRIGHT STATUS | RULES | SOURCES | CONNECTIONS [LIKE 'pattern']`: what the proxy says of itself, to users who may see it.

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
    pub(crate) listing: Listing,
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
    pub(crate) fn read(text: &str) -> Option<Self> {
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
    pub(crate) fn wants(&self, row: &[Option<String>]) -> bool {
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
