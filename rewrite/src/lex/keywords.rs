//! Keywords before whose parenthesis nothing is called.

use crate::lex::builtins::holds;
use crate::modes::{Flavour, Server};

/// Words that are reserved in both flavours, so that `word (`, with a blank between, calls no stored function; sorted.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "all", "and", "any", "as", "between", "by", "check", "default", "distinct", "div", "else", "exists", "from",
    "having", "if", "in", "index", "interval", "into", "join", "key", "left", "like", "limit", "mod", "not", "on",
    "or", "over", "primary", "references", "regexp", "replace", "right", "rlike", "select", "set", "some", "table", "then",
    "union", "unique", "using", "values", "when", "where", "xor",
];

/// Whether `word (`, with a blank between, is certainly no call of a stored function.
pub(crate) fn is_reserved(word: &[u8]) -> bool {
    holds(RESERVED, word)
}

/// More such words of both flavours, sorted, before whose parenthesis no function of any kind is called.
const NO_CALLS: &[&str] = &[
    "binary",
    "case",
    "group",
    "match",
    "partition",
    "straight_join",
];

/// Such words of MySQL, by the version since which they are. MariaDB calls stored functions by these names.
const NO_CALLS_OF_MYSQL: &[(&str, u32)] = &[
    ("against", 0),
    ("escape", 0),
    ("lateral", 80_014),
    ("of", 80_001),
];

/// Whether a word without quotes, and without a point before it, calls nothing although a parenthesis follows, at once or not.
pub(crate) fn is_no_call(word: &[u8], server: Server) -> bool {
    let of_mysql = server.flavour == Flavour::MySql
        && NO_CALLS_OF_MYSQL.iter().any(|(known, since)| {
            server.version >= *since && word.eq_ignore_ascii_case(known.as_bytes())
        });
    of_mysql || is_reserved(word) || holds(NO_CALLS, word)
}

#[cfg(test)]
mod tests {
    use super::{NO_CALLS, RESERVED, is_no_call, is_reserved};
    use crate::lex::builtins::is_built_in;
    use crate::modes::{Flavour, Server};

    const MARIA: Server = Server {
        flavour: Flavour::MariaDb,
        version: 101_119,
    };
    const MYSQL: Server = Server {
        flavour: Flavour::MySql,
        version: 90_704,
    };

    #[test]
    fn the_tables_are_sorted() {
        assert!(RESERVED.is_sorted() && NO_CALLS.is_sorted());
        assert!(is_reserved(b"Values"));
    }

    #[test]
    fn keywords_of_one_flavour_are_names_of_functions_in_the_other() {
        for word in ["Of", "lateral", "ESCAPE", "against"] {
            assert!(is_no_call(word.as_bytes(), MYSQL), "{word}");
            assert!(!is_no_call(word.as_bytes(), MARIA), "{word}");
            assert!(!is_built_in(word.as_bytes(), MARIA), "{word}");
        }
        for word in ["Partition", "CASE", "match", "in"] {
            assert!(is_no_call(word.as_bytes(), MYSQL), "{word}");
            assert!(is_no_call(word.as_bytes(), MARIA), "{word}");
        }
        assert!(!is_no_call(b"ifnull", MYSQL) && !is_no_call(b"member", MYSQL));
    }
}
