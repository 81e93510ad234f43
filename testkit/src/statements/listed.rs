//! Differences that are known and documented.

use super::changes::Change;
use super::grammar::Case;
use super::side::StatementResult;
use super::sides::Difference;
use crate::Flavour;

/// Values that move the counter of the server's own keys, and may use it up.
const BEYOND_ALL_KEYS: [&str; 4] = ["1e30", "99999999999", "9223372036854775808", "~"];

/// MySQL warns of text right behind a version, and the key in its place is not behind one.
const VERSION_BEFORE_TEXT: &str = "/*!50000NULL*/";

/// How a difference is recognised.
struct Listed {
    name: &'static str,
    is_it: fn(Flavour, &Case, &Difference) -> bool,
}

const LISTED: [Listed; 19] = [
    Listed {
        // The server quotes what it was sent; in a warning, where it is a hint that it cannot read.
        name: "text of a syntax error",
        is_it: |_, _, both| {
            const SYNTAX_ERROR: u16 = 1064;
            let sides = [&both.native, &both.proxied];
            let is_error = sides.iter().all(|side| side.errno == Some(SYNTAX_ERROR));
            let of_hint = |side: &&StatementResult| {
                side.afterwards.contains("Optimizer hint syntax error near")
            };
            // Which index such a query uses is another of these differences.
            let [native, proxied] = sides.map(|side| without_index_bit(&side.reply));
            let is_warning = sides.iter().all(of_hint) && native == proxied;
            (is_error || is_warning) && same_rows(both)
        },
    },
    Listed {
        name: "key of the application's beyond those of the tag",
        is_it: |_, case, _| moves_counter(case),
    },
    Listed {
        name: "warning 4164 of a version comment",
        is_it: |flavour, case, both| {
            flavour == Flavour::MySql
                && case.text.contains(VERSION_BEFORE_TEXT)
                && both.native.errno == both.proxied.errno
                && same_rows_with_keys(both)
        },
    },
    Listed {
        name: "status bit of a query without index",
        is_it: |_, _, both| {
            without_index_bit(&both.native.reply) == without_index_bit(&both.proxied.reply)
                && both.native.afterwards == both.proxied.afterwards
                && same_rows(both)
        },
    },
    Listed {
        // Natively it is one of the column that the parameter stood for when the statement was prepared.
        name: "number that was bound as text, after its parameter came to stand for another column",
        is_it: |flavour, case, both| {
            let as_number = |table: &str| table.replace(" \"", "\"");
            flavour == Flavour::MySql
                && case.change == Change::Moved
                && case.is_late
                && both.native.reply == both.proxied.reply
                && both.native.afterwards == both.proxied.afterwards
                && as_number(&both.native.table) == as_number(&both.proxied.table)
        },
    },
    Listed {
        // The server may still think of the MyISAM table of the statement before; a question in between ends that.
        name: "warning 6414 of tables of two engines",
        is_it: |flavour, _, both| {
            const TWO_ENGINES: &str = "\"6414\"";
            let is_seen = both.native.afterwards.contains(TWO_ENGINES)
                && !both.proxied.afterwards.contains(TWO_ENGINES);
            let settled = |reply: &str| without_index_bit(&without_warnings(reply));
            flavour == Flavour::MySql
                && (is_seen || both.is_behind_other_engine)
                && settled(&both.native.reply) == settled(&both.proxied.reply)
                && same_rows_with_keys(both)
        },
    },
    Listed {
        // It depends on whether columns are listed, and on whether rows are put aside.
        name: "1292 of text that is no number in a computed value of a query",
        is_it: |flavour, case, both| {
            const TRUNCATED: u16 = 1292;
            let sides = [&both.native, &both.proxied];
            let failed = sides.map(|side| side.errno == Some(TRUNCATED));
            let is_of_one = failed[0] != failed[1] && sides.iter().any(|side| side.errno.is_none());
            let [native, proxied] =
                sides.map(|side| without_index_bit(&without_warnings(&side.reply)));
            let of_warnings = native == proxied
                && without_lines(&both.native.afterwards, "\"1292\"")
                    == without_lines(&both.proxied.afterwards, "\"1292\"")
                && same_rows_with_keys(both);
            flavour == Flavour::MariaDb
                && case.text.to_ascii_uppercase().contains("SELECT")
                && (is_of_one || (both.native.errno.is_none() && of_warnings))
        },
    },
    Listed {
        name: "error 1869",
        is_it: |flavour, _, both| {
            const CONFLICTS_IN_UPDATE: u16 = 1869;
            flavour == Flavour::MySql && both.native.errno == Some(CONFLICTS_IN_UPDATE)
        },
    },
    Listed {
        name: "LAST_INSERT_ID() of a statement that fails behind its first row",
        is_it: |_, _, both| {
            both.native.errno.is_some()
                && both.native.reply == both.proxied.reply
                && same_rows_with_keys(both)
        },
    },
    Listed {
        name: "id of several rows of which some were not inserted",
        is_it: |_, case, both| {
            // Only of several rows, or a query's, the server says this.
            // A key that is no number may be among them, too, of which the server warns.
            let settled = |reply: &str| without_id(&without_warnings(reply));
            let is_of_rows =
                case.text.contains("RETURNING") || both.native.reply.contains("Records: ");
            is_of_rows
                && (case.text.contains("ON DUPLICATE") || case.text.contains("IGNORE"))
                && !all_or_none_went_in(case, &both.native.reply)
                && settled(&both.native.reply) == settled(&both.proxied.reply)
                && same_rows_with_keys(both)
        },
    },
    Listed {
        name: "a union that is ordered by a column's name and has two columns of one name",
        is_it: |flavour, case, both| {
            const TWO_OF_ONE_NAME: u16 = 1060;
            flavour == Flavour::MariaDb
                && case.text.to_ascii_uppercase().contains("ORDER BY")
                && has_several_parts(case)
                && both.native.errno.is_none()
                && both.proxied.errno == Some(TWO_OF_ONE_NAME)
                && both.proxied.table.is_empty()
        },
    },
    Listed {
        name: "which of two errors a query has",
        is_it: |flavour, case, both| {
            const NOT_IN_GROUP_BY: u16 = 1055;
            const NO_GROUP_BY: u16 = 1140;
            const NO_COLUMN: u16 = 1054;
            const AMBIGUOUS: u16 = 1052;
            const UNLIKE_PARTS: u16 = 1222;
            let is_other = match both.proxied.errno {
                Some(NO_COLUMN | AMBIGUOUS) => true,
                Some(UNLIKE_PARTS) => flavour == Flavour::MySql && has_several_parts(case),
                _ => false,
            };
            matches!(both.native.errno, Some(NOT_IN_GROUP_BY | NO_GROUP_BY))
                && is_other
                && same_rows(both)
        },
    },
    Listed {
        // The query is a table of WITH there, whose columns have a character set.
        name: "error 3854 of text that the client's character set does not have",
        is_it: |flavour, _, both| {
            const CANNOT_CONVERT: u16 = 3854;
            const INCORRECT_STRING: u16 = 1366;
            flavour == Flavour::MySql
                && matches!(both.native.errno, None | Some(INCORRECT_STRING))
                && both.proxied.errno == Some(CANNOT_CONVERT)
        },
    },
    Listed {
        name: "number of the row in an error's text",
        is_it: |_, _, both| {
            both.native.errno.is_some()
                && without_number(&both.native.reply, "row")
                    == without_number(&both.proxied.reply, "row")
                && both.native.afterwards == both.proxied.afterwards
                && same_rows(both)
        },
    },
    Listed {
        // Of rows that ORDER BY does not tell apart, the one that is replaced by its like does not count twice.
        name: "replaced rows of a query whose order is not settled",
        is_it: |_, case, both| {
            let settled =
                |reply: &str| without_number(&without_number(reply, "affected"), "Duplicates:");
            case.text
                .trim_start()
                .to_ascii_uppercase()
                .starts_with("REPLACE")
                && both.native.errno.is_none()
                && settled(&both.native.reply) == settled(&both.proxied.reply)
                && same_rows(both)
        },
    },
    Listed {
        // The server stores it as 0, which asks for a key, and gets the key instead.
        name: "warning 1366 of a key that is no number",
        is_it: |_, _, both| {
            both.native.errno.is_none()
                && without_warnings(&both.native.reply) == without_warnings(&both.proxied.reply)
                && without_key_warnings(&both.native.afterwards)
                    == without_key_warnings(&both.proxied.afterwards)
                && same_rows(both)
        },
    },
    Listed {
        name: "which error of a query with ROLLUP",
        is_it: |_, case, both| {
            rolls_up(case)
                && both.native.errno.is_some()
                && both.proxied.errno.is_some()
                && same_rows(both)
        },
    },
    Listed {
        name: "key column without its table beside a row alias",
        is_it: |flavour, case, both| {
            const AMBIGUOUS: u16 = 1052;
            flavour == Flavour::MySql
                && case.text.contains(" AS n")
                && both.proxied.errno == Some(AMBIGUOUS)
                && both.proxied.table.is_empty()
        },
    },
    Listed {
        name: "order of rows that only a query inside the query, or a window beside ROLLUP, asks for",
        is_it: |flavour, case, both| {
            let is_window = flavour == Flavour::MariaDb
                && rolls_up(case)
                && case.text.to_ascii_uppercase().contains(" OVER ");
            let inner = ["WITH c AS (", "FROM (SELECT", "FROM (select"];
            let (native, proxied) = (
                sorted_without_keys(&both.native),
                sorted_without_keys(&both.proxied),
            );
            // Which of two rows with one unique value goes in follows from their order.
            let same_rows = match case.may_leave_out() {
                true => native.len() == proxied.len(),
                false => native == proxied,
            };
            (is_window || inner.iter().any(|inner| case.text.contains(inner)))
                && without_index_bit(&both.native.reply) == without_index_bit(&both.proxied.reply)
                && same_rows
        },
    },
];

/// Whether the server's next key may be beyond all others, in the same statement too.
fn moves_counter(case: &Case) -> bool {
    BEYOND_ALL_KEYS
        .iter()
        .any(|number| case.text.contains(number))
}

/// Whether the answer tells which rows went in, so that the id is exact: all of them, or none. Of RETURNING it does not, and beside an
/// update a row that stays as it was counts as none. Behind the INSERT's line there may be that of a comment, which affects none.
fn all_or_none_went_in(case: &Case, reply: &str) -> bool {
    let mut lines = reply.lines();
    let said = lines.find(|line| line.contains("Records: "));
    !case.text.contains("ON DUPLICATE")
        && said.is_some_and(|said| said.contains("Duplicates: 0 ") || said.contains("affected 0 "))
}

/// Whether queries are put together in it, as with UNION.
fn has_several_parts(case: &Case) -> bool {
    let text = case.text.to_ascii_uppercase();
    ["UNION", "EXCEPT", "INTERSECT"]
        .iter()
        .any(|word| text.contains(word))
}

fn rolls_up(case: &Case) -> bool {
    case.text.to_ascii_uppercase().contains("ROLLUP")
}

/// The reply without the status bit of a query that used no index.
fn without_index_bit(reply: &str) -> String {
    const NO_INDEX: u32 = 0x20;
    let words = reply.split(' ').map(|word| {
        let digits = word.strip_prefix("0x");
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(bits) => format!("{:#x}", bits & !NO_INDEX),
            None => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The reply without the number behind a word.
fn without_number(reply: &str, behind: &str) -> String {
    let mut words: Vec<&str> = reply.split(' ').collect();
    let named = words.iter().position(|word| *word == behind);
    if let Some(number) = named.and_then(|at| words.get_mut(at + 1)) {
        *number = number.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    words.join(" ")
}

/// The reply without the numbers of warnings.
fn without_warnings(reply: &str) -> String {
    let counted = without_number(reply, "warnings");
    // The last word between quotes.
    without_number(&counted, "Warnings:")
}

/// What is said afterwards without lines that say something.
fn without_lines(afterwards: &str, what: &str) -> String {
    let lines: Vec<&str> = afterwards
        .lines()
        .filter(|line| !line.is_empty() && !line.contains(what))
        .collect();
    lines.join("\n")
}

/// What is said afterwards without warnings of a key that is no number.
fn without_key_warnings(afterwards: &str) -> String {
    let is_other =
        |line: &&str| !line.is_empty() && !line.contains("\"1366\" | \"Incorrect integer value");
    let lines: Vec<&str> = afterwards.lines().filter(is_other).collect();
    lines.join("\n")
}

/// The reply without the id that it says was generated.
fn without_id(reply: &str) -> String {
    let mut words: Vec<&str> = reply.split(' ').collect();
    if let Some(at) = words.iter().position(|word| *word == "id") {
        words.drain(at..(at + 2).min(words.len()));
    }
    words.join(" ")
}

fn sorted_without_keys(seen: &StatementResult) -> Vec<&str> {
    let rows = seen.table.lines();
    let mut rows: Vec<&str> = rows
        .filter_map(|row| Some(row.split_once(" | ")?.1))
        .collect();
    rows.sort_unstable();
    rows
}

fn same_rows(both: &Difference) -> bool {
    both.native.table == both.proxied.table
}

/// The same rows with keys in the same places. Where LAST_INSERT_ID() shows a key that no row has, those of rows count from there.
fn same_rows_with_keys(both: &Difference) -> bool {
    let unnumbered = |table: &str| -> Vec<String> {
        let parts = table.split("\"#");
        let cut = |part: &str| match part.split_once('.') {
            Some((name, rest)) => {
                format!(
                    "{name}{}",
                    rest.trim_start_matches(|c: char| c.is_ascii_digit())
                )
            }
            None => part.to_owned(),
        };
        let mut parts = parts.map(str::to_owned);
        let first = parts.next();
        first
            .into_iter()
            .chain(parts.map(|part| cut(&part)))
            .collect()
    };
    unnumbered(&both.native.table) == unnumbered(&both.proxied.table)
}

/// The name of the difference, if it is one of those.
pub(super) fn name(flavour: Flavour, case: &Case, difference: &Difference) -> Option<&'static str> {
    if difference.native.asked != difference.proxied.asked {
        return None;
    }
    let mut listed = LISTED.iter();
    let found = listed.find(|listed| (listed.is_it)(flavour, case, difference));
    found.map(|listed| listed.name)
}
