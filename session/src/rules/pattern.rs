//! Which tables a rule is for.

use thiserror::Error;
use wildmatch::WildMatch;

use crate::rules::outline::Outline;

/// `schema.table`, both with `*` for any characters and `?` for one.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    schema: String,
    table: String,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{text}\" is not schema.table, where both may have * and ?")]
pub struct PatternError {
    text: String,
}

impl Pattern {
    /// Reads `schema.table`.
    ///
    /// # Errors
    /// [`PatternError`] when one of both is missing, or there is a third.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        match text.split_once('.') {
            Some((schema, table))
                if !schema.is_empty() && !table.is_empty() && !table.contains('.') =>
            {
                Ok(Self {
                    schema: schema.to_owned(),
                    table: table.to_owned(),
                })
            }
            Some(_) | None => Err(PatternError {
                text: text.to_owned(),
            }),
        }
    }

    /// The schema's part.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The table's part.
    pub fn table(&self) -> &str {
        &self.table
    }
}

/// A pattern in the form in which the server compares names.
pub(super) struct Matcher {
    schema: Glob,
    table: Glob,
}

impl Matcher {
    pub(super) fn new(schema: String, table: String) -> Self {
        Self {
            schema: Glob::new(schema),
            table: Glob::new(table),
        }
    }

    pub(super) fn matches_schema(&self, name: &[u8]) -> bool {
        self.schema.matches(name)
    }

    pub(super) fn matches_table(&self, name: &[u8]) -> bool {
        self.table.matches(name)
    }

    pub(super) fn may_match_schema(&self, name: &Outline) -> bool {
        name.may_match(&self.schema.text)
    }

    pub(super) fn may_match_table(&self, name: &Outline) -> bool {
        name.may_match(&self.table.text)
    }
}

/// One part of a pattern.
struct Glob {
    text: String,
    /// Where it has `*` or `?`.
    wild: Option<WildMatch>,
}

impl Glob {
    fn new(text: String) -> Self {
        let is_wild = text.contains(['*', '?']);
        Self {
            wild: is_wild.then(|| WildMatch::new(&text)),
            text,
        }
    }

    /// Names that are no UTF-8 match nothing: rules are written in it.
    fn matches(&self, name: &[u8]) -> bool {
        match &self.wild {
            None => self.text.as_bytes() == name,
            Some(pattern) => std::str::from_utf8(name).is_ok_and(|name| pattern.matches(name)),
        }
    }
}
