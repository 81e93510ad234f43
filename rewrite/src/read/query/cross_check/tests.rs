//! What either reader makes of a query, and of another one.

use super::{Comparison, SecondReading};
use crate::lex::cursor::Cursor;
use crate::modes::{Flavour, Modes, Server};
use crate::read::insert::Insert;
use crate::read::insert_head::InsertHead;
use crate::read::query::outline::Outline;

const MODES: Modes = Modes::plain(Server {
    flavour: Flavour::MySql,
    version: 90_704,
});

fn insert(query: &str, modes: &Modes) -> (Vec<u8>, Insert) {
    let text = format!("INSERT INTO t (id,a) {query}").into_bytes();
    let head = InsertHead::read(&text, modes).expect("it has a head");
    let insert = Insert::read(head, &text, modes).expect("it can be read");
    (text, insert)
}

fn first(query: &str) -> Outline {
    let (text, insert) = insert(query, &MODES);
    let mut cursor = Cursor::new(&text, &MODES);
    cursor.at = insert.rows;
    cursor.outline().expect("the first reader can read it")
}

fn second_in(query: &str, modes: &Modes) -> SecondReading {
    let (text, insert) = insert(query, modes);
    insert.read_again(&text, modes)
}

fn second(query: &str) -> SecondReading {
    second_in(query, &MODES)
}

/// Each has something that no other has.
const UNLIKE: [&str; 13] = [
    "SELECT 5,a FROM u",
    "SELECT 5,1",
    "SELECT 5,a,b FROM u",
    "SELECT *,a FROM u",
    "SELECT DISTINCT 5,a FROM u",
    "SELECT 5,a FROM u GROUP BY a",
    "SELECT 5,a FROM u HAVING a>1",
    "SELECT 5,a FROM u ORDER BY a",
    "SELECT 5,a FROM u LIMIT 1",
    "WITH c AS (SELECT 1) SELECT 5,a FROM u",
    "SELECT 5,a FROM u UNION ALL SELECT 6,1",
    "SELECT 5,a FROM u UNION ALL SELECT 6,1 UNION ALL SELECT 7,2",
    "SELECT 5,a FROM u UNION ALL SELECT 6,*",
];

#[test]
fn readers_agree_on_the_same_query_and_on_no_other() {
    for one in UNLIKE {
        for other in UNLIKE {
            let wanted = match one == other {
                true => Comparison::Agrees,
                false => Comparison::Differs,
            };
            let found = second(other).compare(&first(one));
            assert_eq!(found, wanted, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn what_is_there_twice_is_there() {
    for query in [
        "SELECT 5,a FROM u UNION SELECT 6,b FROM w",
        "SELECT DISTINCT 5,a FROM u UNION SELECT DISTINCT 6,b FROM w",
        "SELECT 5,a FROM u GROUP BY a UNION SELECT 6,b FROM w GROUP BY b",
        "SELECT 5,a FROM u HAVING a>1 UNION SELECT 6,b FROM w HAVING b>1",
        "SELECT 5,a FROM u,w",
        "SELECT 5,a FROM u JOIN w ON (a=b)",
        "SELECT 5,1 FROM DUAL",
        "SELECT 5,a FROM u ORDER BY a;",
        "SELECT 5,(a) FROM u ON DUPLICATE KEY UPDATE a=(SELECT 1 UNION SELECT 2)",
        "SELECT 5,a FROM u WHERE a='é\\'' AND `b\\`=1",
        "SELECT 5,a /*!99999 ,b UNION SELECT NULL,2 */ FROM u",
    ] {
        let found = second(query).compare(&first(query));
        assert_eq!(found, Comparison::Agrees, "{query:?}");
    }
    let joined = second("SELECT 5,1 FROM dual JOIN w");
    assert_eq!(
        joined.compare(&first("SELECT 5,1 FROM dual")),
        Comparison::Differs
    );
    let outer = second("(SELECT 5,a FROM u ORDER BY a LIMIT 1) ORDER BY a LIMIT 1");
    let inner = first("SELECT 5,a FROM u ORDER BY a LIMIT 1");
    assert_eq!(outer.compare(&inner), Comparison::Agrees);
}

/// The first reader may see them where they are none.
#[test]
fn rollups_and_windows_are_not_overlooked() {
    let grouped = "SELECT 5,a FROM u GROUP BY a";
    let plain = "SELECT 5,a FROM u";
    for (query, like) in [
        ("SELECT 5,a FROM u GROUP BY a WITH ROLLUP", grouped),
        ("SELECT 5,a FROM u GROUP BY ROLLUP(a)", grouped),
        ("SELECT 5,a FROM u GROUP BY CUBE(a)", grouped),
        ("SELECT 5,a FROM u WINDOW w AS (ORDER BY a)", plain),
        ("SELECT 5,rank() OVER (ORDER BY a) FROM u", plain),
        (
            "SELECT 5,a FROM u QUALIFY rank() OVER (ORDER BY a)<3",
            plain,
        ),
        ("SELECT 5,rank() OVER (ORDER BY a) AS r FROM u", plain),
    ] {
        assert_eq!(second(query).compare(&first(like)), Comparison::Differs);
        assert_eq!(second(query).compare(&first(query)), Comparison::Agrees);
        assert_eq!(second(like).compare(&first(query)), Comparison::Agrees);
    }
    let twice = |part: &str| format!("{part} UNION {part}");
    for (part, like) in [
        ("SELECT 5,a FROM u GROUP BY a WITH ROLLUP", grouped),
        ("SELECT 5,rank() OVER () FROM u", plain),
    ] {
        let (both, neither) = (second(&twice(part)), first(&twice(like)));
        assert_eq!(both.compare(&first(&twice(part))), Comparison::Agrees);
        assert_eq!(both.compare(&neither), Comparison::Differs);
    }
}

#[test]
fn parts_that_are_no_plain_selects_are_like_nothing() {
    for (query, like) in [
        (
            "(SELECT 5,1) UNION SELECT 6,2",
            "SELECT 5,1 UNION SELECT 6,2",
        ),
        (
            "SELECT 5,1 UNION (SELECT 6,2)",
            "SELECT 5,1 UNION SELECT 6,2",
        ),
        (
            "WITH c AS (SELECT 1) (SELECT 5,1)",
            "WITH c AS (SELECT 1) SELECT 5,1",
        ),
        ("WITH c AS (SELECT 1) (SELECT 5,1)", "SELECT 5,1"),
    ] {
        let found = second(query).compare(&first(like));
        assert_eq!(found, Comparison::Differs, "{query:?}");
    }
}

/// The first reader does not know them, so rows that they leave out or sort could be overlooked.
#[test]
fn what_neither_server_knows_is_like_nothing() {
    for query in [
        "SELECT 5,a FROM u SORT BY a",
        "SELECT 5,a FROM u CLUSTER BY a",
        "SELECT 5,a FROM u DISTRIBUTE BY a",
    ] {
        let found = second(query).compare(&first("SELECT 5,a FROM u"));
        assert_eq!(found, Comparison::Differs, "{query:?}");
    }
}

#[test]
fn a_constant_is_one_in_all_parts() {
    for key in [
        "5",
        "'5'",
        "-5",
        "+(-5)",
        "NULL",
        "LAST_INSERT_ID(7)",
        "LAST_INSERT_ID(7)+1",
    ] {
        assert!(
            second(&format!("SELECT {key},a FROM u")).has_constant(0),
            "{key}"
        );
    }
    for key in ["a", "f(7)", "-a", "a+1", "(SELECT 1)", "*"] {
        assert!(
            !second(&format!("SELECT {key},1 FROM u")).has_constant(0),
            "{key}"
        );
    }
    assert!(!second("SELECT a,5 FROM u").has_constant(0));
    assert!(second("SELECT a,5 FROM u").has_constant(1));
    assert!(!second("SELECT a,5 FROM u").has_constant(2));
    assert!(!second("SELECT 5,1 UNION SELECT a,1 FROM u").has_constant(0));
    let ansi = Modes {
        ansi_quotes: true,
        ..MODES
    };
    assert!(!second_in("SELECT \"a\",'5' FROM u", &ansi).has_constant(0));
    assert!(second_in("SELECT \"a\",'5' FROM u", &ansi).has_constant(1));
}

#[test]
fn a_value_is_a_constant_or_made_of_nothing_else() {
    for key in [
        "5",
        "'abc'",
        "N'a'",
        "x'6ccd'",
        "_utf8mb4'a'",
        "_binary x'00'",
        "uuid()",
        "(UUID( ))",
        "UUID_SHORT()",
        "LOWER(UUID())",
        "REPLACE(UUID(),'-','')",
        "UNHEX(REPLACE(UUID(),'-',''))",
        "UUID_TO_BIN(UUID(),1)",
        "UUID() AS k",
    ] {
        let read = second(&format!("SELECT {key},a FROM u"));
        assert_ne!(read, SecondReading(None), "{key}");
        assert!(read.has_value(0), "{key}");
    }
    for key in ["a", "f()", "LENGTH('a')", "(SELECT 'a')", "*"] {
        let read = second(&format!("SELECT {key},1 FROM u"));
        assert!(!read.has_value(0), "{key}");
    }
    assert!(!second("SELECT UUID(),1").has_constant(0));
}

/// What the first reader takes for a comment, a string or a name, the other is to find out by itself.
#[test]
fn another_reader_gets_the_text_as_it_stands() {
    let query = "SELECT 5,'it''s' /* c */,`a b` -- d\n FROM u";
    let (text, insert) = insert(query, &MODES);
    let mut cursor = Cursor::new(&text, &MODES);
    cursor.at = insert.rows;
    let given = cursor.query_for_another().expect("it can be read");
    assert_eq!(given.as_deref().map(str::trim_start), Some(query));
}

#[test]
fn what_is_too_long_or_too_deep_is_not_read_again() {
    let is_read = |query: &str| second(query) != SecondReading(None);
    let long = |tokens: usize| format!("SELECT 5{}", ",1".repeat((tokens - 2) / 2));
    assert!(is_read(&long(super::TOKENS_MAX)));
    assert!(!is_read(&long(super::TOKENS_MAX + 2)));
    let deep = |depth: usize| format!("SELECT 5,{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(is_read(&deep(super::DEPTH_MAX)));
    assert!(!is_read(&deep(super::DEPTH_MAX + 1)));
    let beside = format!("SELECT 5{}", ",(1)".repeat(super::DEPTH_MAX + 1));
    assert!(is_read(&beside));
    assert!(!is_read("SELECT 5,1 FROM u WHERE !a"));
    let plain = Modes {
        no_backslash_escapes: true,
        ..MODES
    };
    assert_ne!(second_in("SELECT 5,'\\'", &plain), SecondReading(None));
}
