//! Constants in the key's place: what the rewriter takes them for, and what both servers make of them. Wherever a server makes a
//! key of its own the rewriter must have put one in, or have refused.

use keywright_rewrite::{
    CharsetClass, Flavour as Of, Insert, InsertHead, KeyColumn, KeyForm, Modes, Server, Unread,
};
use keywright_testkit::{AT_FENCE, Flavour, Reply, Result, Upstream, Wire};

keywright_testkit::on_both_flavours!(
    no_constant_makes_the_server_issue,
    no_constant_of_a_later_row_makes_a_careless_engine_issue,
);

/// sql_mode, and what it says.
const SQL_MODES: [(&str, bool, bool); 4] = [
    ("STRICT_TRANS_TABLES", true, false),
    ("", false, false),
    ("STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO", true, true),
    ("NO_AUTO_VALUE_ON_ZERO", false, true),
];

/// What stands in strings: in front, in the middle, behind.
const FRONTS: &[&str] = &[
    "", " ", "\\t", "\\n", "\\r", "\\0", "+", "-", " -", "--", "' '",
];
const MIDDLES: &[&str] = &[
    "",
    "0",
    "00",
    "0.4",
    "0.5",
    "1",
    "7",
    ".",
    "0.",
    ".0",
    ".4",
    ".5",
    "e",
    "0e",
    "0e+",
    "0e0",
    "0e1",
    "0e100",
    "0e999",
    "1e-1",
    "1e-99",
    "1e-100",
    "1e-400",
    "1e99",
    "1e400",
    "4e-1",
    "04e-1",
    "5e-1",
    "0x0",
    "0x1",
    "abc",
    "nan",
    "inf",
    "0.49999999999999999999999999999999999999",
    "12345678901234567890123",
    "0,5",
    "\u{664}",
];
const BACKS: &[&str] = &[
    "",
    " ",
    "\\n",
    "\\t",
    "\\0",
    "' '",
    "' ' '\\n",
    "a",
    ".",
    "-",
    "e",
    "e5",
    "' /*!' '*/ '",
];

/// Numbers and other literals, and the signs before them.
const LITERALS: &[&str] = &[
    "0",
    "1",
    "7",
    "00",
    "0.0",
    "0.",
    "0.4",
    "0.5",
    ".4",
    ".5",
    "0e0",
    "1e0",
    "1e-1",
    "4e-1",
    "5e-1",
    "0.5e0",
    "0.5e-3",
    "0.50000001e0",
    "1.5e0",
    "1e-300",
    "1e-400",
    "1e300",
    "1e400",
    "0x00",
    "0x01",
    "0x0000000000000000000",
    "0x00000000000000000000",
    "0x0100000000000000000000",
    "0xFFFFFFFFFFFFFFFF",
    "x''",
    "x'00'",
    "x'01'",
    "x'30'",
    "x'3030'",
    "x'310a'",
    "x'300a'",
    "x'20'",
    "b''",
    "b'0'",
    "b'1'",
    "0b0",
    "0b1",
    "b'00000000'",
    "b'000000001'",
    "NULL",
    "TRUE",
    "FALSE",
    "DEFAULT",
    "DEFAULT(id)",
    "(NULL)",
    "(0)",
    "((7))",
    "LAST_INSERT_ID(7)",
    "LAST_INSERT_ID(7)+1",
    "\\N",
    "_latin1'0'",
    "N'0'",
    "9223372036854775808",
    "18446744073709551616",
    "9999999999999999999999999999999999999999999999999999999999999999999999",
    "0.4999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999",
    "0.0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000009",
    "0.00000000000000000000000000000000000000000000000000000000000000000000009e70",
    "/*!0*/",
    "/*! NULL */",
    "{d '2020-01-01'}",
];
const SIGNS: &[&str] = &["", "-", "+", "- -", "-("];

/// Statements that insert constants: those that are no strings in all ways.
fn statements(table: &str) -> Vec<String> {
    let mut found = Vec::new();
    for literal in LITERALS {
        for sign in SIGNS {
            let close = if sign.ends_with('(') { ")" } else { "" };
            let constant = format!("{sign}{literal}{close}");
            found.extend([
                format!("INSERT INTO {table}(id,a) VALUES ({constant},1)"),
                format!("INSERT INTO {table}(id,a) SELECT {constant},1"),
                format!("INSERT INTO {table} SET a=1,id={constant}"),
                format!("INSERT IGNORE INTO {table}(id,a) VALUES ({constant},1)"),
                format!("INSERT INTO {table}(id,a) VALUES (5,1),({constant},1)"),
            ]);
        }
    }
    for (number, front) in FRONTS.iter().enumerate() {
        for middle in MIDDLES {
            for back in BACKS {
                let constant = format!("'{front}{middle}{back}'");
                found.push(match number % 2 {
                    0 => format!("INSERT INTO {table}(id,a) VALUES ({constant},1)"),
                    _ => format!("INSERT INTO {table}(id,a) SELECT {constant},1"),
                });
            }
        }
    }
    found
}

/// What the rewriter takes a statement for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Key,
    Passed,
    Refused,
}

struct Reader {
    modes: Modes,
    is_signed: bool,
    is_strict: bool,
}

impl Reader {
    fn verdict(&self, text: &str) -> Fate {
        let key = KeyColumn {
            name: b"id",
            form: KeyForm::Integer,
            live: &[],
            watched: false,
            is_signed: self.is_signed,
            is_strict: self.is_strict,
        };
        let (text, modes) = (text.as_bytes(), &self.modes);
        let asks = InsertHead::read(text, modes)
            .and_then(|head| Insert::read(head, text, modes))
            .and_then(|insert| match insert.is_query() {
                true => insert
                    .plan_query(text, modes, &key, &insert.read_again(text, modes), None)
                    .map(|plan| !plan.explicit()),
                false => insert.plan(text, modes, &key).map(|plan| plan.keys() > 0),
            });
        match asks {
            Ok(true) => Fate::Key,
            Ok(false) | Err(Unread::Refused) => Fate::Passed,
            Err(Unread::Unsupported(_)) => Fate::Refused,
        }
    }
}

fn reader(flavour: Flavour, (_, strict, zero_is_value): (&str, bool, bool)) -> Reader {
    let (of, version) = match flavour {
        Flavour::MariaDb => (Of::MariaDb, 101_119),
        Flavour::MySql => (Of::MySql, 90_704),
    };
    Reader {
        modes: Modes {
            strict: Some(strict),
            no_auto_value_on_zero: Some(zero_is_value),
            charset: CharsetClass::Safe,
            ..Modes::plain(Server {
                flavour: of,
                version,
            })
        },
        is_signed: false,
        is_strict: true,
    }
}

/// Whether the server would have made a key.
fn issues(server: &mut Wire, text: &str) -> Result<bool> {
    Ok(match server.query(text)?.last() {
        Some(Reply::Failed(fault)) => AT_FENCE.contains(&fault.errno),
        // With IGNORE MariaDB leaves the row out.
        Some(Reply::Done(done)) if done.affected_rows == 0 => {
            let warnings = server.rows("SHOW WARNINGS")?;
            warnings
                .iter()
                .any(|row| row.get(1).is_some_and(|code| code == "167"))
        }
        _ => false,
    })
}

fn no_constant_makes_the_server_issue(flavour: Flavour) -> Result<()> {
    let upstream = Upstream::shared(flavour)?;
    let mut server = upstream.wire("mysql")?;
    server.run("DROP DATABASE IF EXISTS constants")?;
    server.run("CREATE DATABASE constants CHARACTER SET utf8mb4")?;
    server.run("USE constants")?;
    let (mut wrong, mut counts) = (Vec::new(), [0_usize; 3]);
    for (table, kind, fence) in [
        ("s", "BIGINT", 1_u64 << 63),
        ("u", "BIGINT UNSIGNED", u64::MAX),
    ] {
        server.run(format!(
            "CREATE TABLE {table} (a INT, id {kind} AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB AUTO_INCREMENT = {fence}"
        ))?;
        for mode in SQL_MODES {
            server.run(format!("SET sql_mode = '{}'", mode.0))?;
            server.run("SET autocommit = 0")?;
            for text in statements(table) {
                let issues = issues(&mut server, &text)?;
                server.run("ROLLBACK")?;
                let mut reader = reader(flavour, mode);
                for is_signed in [false, table == "s"] {
                    reader.is_signed = is_signed;
                    let verdict = reader.verdict(&text);
                    counts[verdict as usize] += 1;
                    let is_right = match verdict {
                        Fate::Key => issues,
                        Fate::Passed => !issues,
                        Fate::Refused => true,
                    };
                    if !is_right {
                        wrong.push(format!("{text} under {:?}: {verdict:?}", mode.0));
                    }
                }
            }
        }
    }
    println!("{}: key, passed, refused: {counts:?}", flavour.name());
    wrong.dedup();
    assert!(
        wrong.is_empty(),
        "{} of them: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(60)]
    );
    // Else it would show nothing.
    assert!(counts.iter().all(|count| *count > 1_000), "{counts:?}");
    Ok(())
}

/// There strictness does not hold behind the first row.
fn no_constant_of_a_later_row_makes_a_careless_engine_issue(flavour: Flavour) -> Result<()> {
    let upstream = Upstream::shared(flavour)?;
    let mut server = upstream.wire("mysql")?;
    server.run("DROP DATABASE IF EXISTS careless")?;
    server.run("CREATE DATABASE careless CHARACTER SET utf8mb4")?;
    server.run("USE careless")?;
    let literals = LITERALS.iter().map(|literal| (*literal).to_owned());
    let negative = LITERALS.iter().map(|literal| format!("-{literal}"));
    let words = ["''", "'abc'", "'0 '", "'-1'", "'-0.4'", "'7'", "'0'"];
    let constants: Vec<String> = literals
        .chain(negative)
        .chain(words.map(str::to_owned))
        .collect();
    let mut wrong = Vec::new();
    for (table, kind) in [("s", "BIGINT"), ("u", "BIGINT UNSIGNED")] {
        server.run(format!(
            "CREATE TABLE {table} (a INT, id {kind} AUTO_INCREMENT PRIMARY KEY) ENGINE = MyISAM"
        ))?;
        for mode in SQL_MODES {
            server.run(format!("SET sql_mode = '{}'", mode.0))?;
            for constant in &constants {
                server.run(format!("TRUNCATE {table}"))?;
                let text = format!("INSERT INTO {table}(id,a) VALUES (5,1),({constant},2)");
                server.query(&text)?;
                let found = server.rows(format!("SELECT id FROM {table} WHERE a = 2"))?;
                let issued = found == [["6"]];
                let verdict = Reader {
                    is_signed: table == "s",
                    is_strict: false,
                    ..reader(flavour, mode)
                }
                .verdict(&text);
                if issued && verdict == Fate::Passed {
                    wrong.push(format!("{text} under {:?}: {verdict:?}", mode.0));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}
