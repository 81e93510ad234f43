//! Which tables a rule is for.

use thiserror::Error;

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
