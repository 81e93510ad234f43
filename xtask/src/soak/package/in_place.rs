//! Statements of a page for one kind of server. What MySQL wants in place of MariaDB's last lines stands in comments behind these.

use anyhow::{Context, Result};
use keywright_testkit::Flavour;

use super::page::Block;

const COMMENT: &str = "-- ";
/// The comment before what MySQL wants begins so, and goes on with one of [`LINES`] and a colon.
const IN_PLACE: &str = "-- On MySQL, in place of the last ";
/// How many lines are replaced, as pages write it.
const LINES: [(&str, usize); 5] = [
    ("line", 1),
    ("two lines", 2),
    ("three lines", 3),
    ("four lines", 4),
    ("five lines", 5),
];

/// The block as somebody types it for that server.
///
/// # Errors
/// The block does not say what MySQL wants, or not so that it can be followed, whichever server it is for.
pub(super) fn statements(block: &Block, flavour: Flavour) -> Result<String> {
    let of_mysql = of_mysql(block).with_context(|| {
        format!(
            "{}: the walk follows a comment {IN_PLACE:?} with the number of lines, and comments with the statements behind it",
            block.place
        )
    })?;
    Ok(match flavour {
        Flavour::MariaDb => block.text(),
        Flavour::MySql => of_mysql,
    })
}

/// `None`: no comment says it, or not so that it can be followed.
fn of_mysql(block: &Block) -> Option<String> {
    let is_comment = |line: &String| line.starts_with(COMMENT);
    let (of_mariadb, comments) = block
        .lines
        .split_at(block.lines.iter().position(is_comment)?);
    let (said, instead) = comments.split_first()?;
    let replaced = said.strip_prefix(IN_PLACE)?.strip_suffix(':')?;
    let (_, replaced) = LINES.into_iter().find(|(words, _)| *words == replaced)?;
    let kept = of_mariadb.len().checked_sub(replaced)?;
    let instead: Option<Vec<&str>> = instead
        .iter()
        .map(|line| line.strip_prefix(COMMENT))
        .collect();
    let instead = instead.filter(|lines| !lines.is_empty())?;
    let kept = of_mariadb.iter().take(kept).map(String::as_str);
    let lines: Vec<&str> = kept.chain(instead).collect();
    Some(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::super::mysql::{ON_EACH_SHARD, PAGE};
    use super::super::page::Page;
    use super::*;

    fn block(text: &str) -> Block {
        Block {
            mark: vec!["sql".to_owned()],
            lines: text.lines().map(str::to_owned).collect(),
            place: "p.md:1".to_owned(),
        }
    }

    #[test]
    fn mysql_gets_its_lines_in_place_of_as_many_as_the_comment_says() {
        for (text, of_mysql) in [
            (
                "A;\nB;\nC;\n-- On MySQL, in place of the last line:\n-- D;\n",
                "A;\nB;\nD;\n",
            ),
            (
                "A;\nB;\nC;\n-- On MySQL, in place of the last two lines:\n-- D;\n-- E;\n",
                "A;\nD;\nE;\n",
            ),
        ] {
            let block = block(text);
            let of = |flavour| statements(&block, flavour).unwrap();
            assert_eq!(of(Flavour::MySql), of_mysql);
            assert_eq!(of(Flavour::MariaDb), text);
        }
    }

    #[test]
    fn what_the_walk_cannot_follow_is_told() {
        for text in [
            "A;\nB;\n",
            "A;\nB;\n-- On MySQL in place of the last line:\n-- C;\n",
            "A;\nB;\n-- On MySQL, in place of the last lines:\n-- C;\n",
            "A;\nB;\n-- On MySQL, in place of the last line:\n",
            "A;\nB;\n-- On MySQL, in place of the last line:\n-- C;\nD;\n",
            "A;\nB;\n-- On MySQL, in place of the last three lines:\n-- C;\n",
        ] {
            for flavour in Flavour::ALL {
                let error = statements(&block(text), flavour).unwrap_err();
                assert!(error.to_string().starts_with("p.md:1: "), "{error}");
            }
        }
    }

    /// A server refuses the privileges and tables that only the other kind has, and the walk on MySQL is long.
    #[test]
    fn each_kind_of_server_gets_the_grants_of_the_quick_start() {
        let mut page = Page::read(PAGE).unwrap();
        page.next("shell").unwrap();
        page.next(ON_EACH_SHARD).unwrap();
        let accounts = page.next(ON_EACH_SHARD).unwrap();
        let of = |flavour| {
            let text = statements(&accounts, flavour).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with(COMMENT));
            lines.collect::<Vec<_>>().join("\n")
        };
        let (on_mariadb, on_mysql) = (of(Flavour::MariaDb), of(Flavour::MySql));
        for both in [
            "CREATE USER keywright_admin@",
            "LOCK TABLES",
            "ON mysql.user TO",
            "GRANT PROCESS, ",
        ] {
            for text in [&on_mariadb, &on_mysql] {
                assert_eq!(text.matches(both).count(), 1, "{both}\n{text}");
            }
        }
        for (only, text, other) in [
            ("mysql.proc", &on_mariadb, &on_mysql),
            ("SLAVE MONITOR", &on_mariadb, &on_mysql),
            ("XA_RECOVER_ADMIN", &on_mysql, &on_mariadb),
            ("SHOW_ROUTINE", &on_mysql, &on_mariadb),
        ] {
            assert!(text.contains(only), "{only}\n{text}");
            assert!(!other.contains(only), "{only}\n{other}");
        }
    }
}
