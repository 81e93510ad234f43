//! The mark that a database and the store have in common where the store assigned the database its worker id. Each ask draws another, so of
//! two databases with one mark (a copy and its original) the second to ask is found.

use std::fmt;

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// How often was asked until it was drawn: a store that counts fewer has gone back, a database has not.
    pub asks: u32,
    /// What nobody else draws.
    pub random: u128,
}

impl Mark {
    /// Reads one as it is written; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (asks, random) = text.split_once('.')?;
        let mark = Self {
            asks: asks.parse().ok()?,
            random: u128::from_str_radix(random, 16).ok()?,
        };
        (mark.to_string() == text).then_some(mark)
    }
}

/// Without blank, equals sign or quote: it stands in a security label.
impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:032x}", self.asks, self.random)
    }
}

#[cfg(test)]
mod tests {
    use super::Mark;

    #[test]
    fn marks_are_read_as_they_are_written_and_not_otherwise() {
        for (asks, random) in [(0, 0), (1, 1), (u32::MAX, u128::MAX)] {
            let mark = Mark { asks, random };
            assert_eq!(Mark::parse(&mark.to_string()), Some(mark));
        }
        let zeros = "0".repeat(32);
        for text in [
            "",
            ".",
            "1",
            "1.",
            "1.0",
            &format!("+1.{zeros}"),
            &format!("01.{zeros}"),
            &format!("1.{}A", &zeros[1..]),
            &format!("1.0{zeros}"),
            &format!("4294967296.{zeros}"),
            &format!("1.{zeros} "),
            &format!("-1.{zeros}"),
        ] {
            assert_eq!(Mark::parse(text), None, "{text}");
        }
    }
}
