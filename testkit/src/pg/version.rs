//! The versions of PostgreSQL that tests run on.

use std::fmt;

use anyhow::Context;

use crate::Result;

/// A major version of PostgreSQL that the extension supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PgVersion {
    /// 14, from a wheel.
    V14,
    /// 15, Debian's: what tests use unless told otherwise.
    V15,
    /// 16, from a wheel.
    V16,
    /// 17, from a wheel.
    V17,
    /// 18, from a wheel.
    V18,
}

impl PgVersion {
    /// All of them, oldest first.
    pub const ALL: [PgVersion; 5] = [
        PgVersion::V14,
        PgVersion::V15,
        PgVersion::V16,
        PgVersion::V17,
        PgVersion::V18,
    ];

    /// The variable that says which version tests use.
    pub const VARIABLE: &'static str = "KEYWRIGHT_PG";

    /// The major version's number.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            PgVersion::V14 => 14,
            PgVersion::V15 => 15,
            PgVersion::V16 => 16,
            PgVersion::V17 => 17,
            PgVersion::V18 => 18,
        }
    }

    /// The version with that number.
    ///
    /// # Errors
    /// It is not supported.
    pub fn parse(number: &str) -> Result<PgVersion> {
        let found = PgVersion::ALL
            .into_iter()
            .find(|version| version.to_string() == number);
        found.with_context(|| {
            format!("PostgreSQL {number:?} is not supported: 14, 15, 16, 17 and 18 are")
        })
    }

    /// What the environment asks tests to use: [`PgVersion::VARIABLE`], or 15.
    ///
    /// # Errors
    /// The variable names no supported version.
    pub fn under_test() -> Result<PgVersion> {
        match std::env::var(PgVersion::VARIABLE) {
            Ok(number) => PgVersion::parse(&number),
            Err(_) => Ok(PgVersion::V15),
        }
    }
}

impl fmt::Display for PgVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}
