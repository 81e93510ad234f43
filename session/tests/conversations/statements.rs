//! Statements: written for what they reach, joined to others, and those of the corpora.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use fastrand::Rng;

use crate::pick;

/// Tables of rules, and others. Most often it is the one that may be switched.
const TABLES: &[&str] = &[
    "t", "t", "t", "t", "t", "t", "d.t", "`t`", "other.t", "strict", "seen", "seen", "pass", "txt",
    "bin", "once", "narrow", "without", "v", "w", "free", "T",
];

/// `{t}` is a table, `{n}` a small number.
const INSERTS: &[&str] = &[
    "INSERT INTO {t} (a) VALUES (1)",
    "INSERT INTO {t} (a) VALUES (1)",
    "INSERT INTO {t} (a) VALUES (1),(2),('x')",
    "INSERT INTO {t} (a, b) VALUES ({n}, 'it''s'),(2, NULL)",
    "INSERT INTO {t} (id, a) VALUES (NULL, 1),(0, 2),(7, 3)",
    "INSERT INTO {t} (id, a) VALUES (NULL, 1),(0, 2)",
    "INSERT INTO {t} (id, a) VALUES (5, 1)",
    "INSERT INTO {t} (id, a) VALUES (0, 1)",
    "INSERT INTO {t} (id, a) VALUES ('0', 1)",
    "INSERT INTO {t} VALUES (NULL, 1)",
    "INSERT INTO {t} VALUES (NULL, 1, 'x'), (DEFAULT, 2, 'y')",
    "INSERT INTO {t} SET a = 'it''s', id = DEFAULT",
    "INSERT INTO {t} SET a = 1",
    "REPLACE INTO {t} (a) VALUES ('\\'')",
    "INSERT IGNORE INTO {t} (a) VALUES (1)",
    "INSERT IGNORE INTO {t} (a) VALUES (1),(2)",
    "INSERT IGNORE INTO {t} (id, a) VALUES (5, 1),(NULL, 2)",
    "INSERT IGNORE INTO {t} (a) VALUES (LAST_INSERT_ID(7))",
    "INSERT INTO {t} (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
    "INSERT INTO {t} (a) VALUES (1),(2) ON DUPLICATE KEY UPDATE a = LAST_INSERT_ID(a)",
    "INSERT INTO {t} (a) VALUES (LAST_INSERT_ID())",
    "INSERT INTO {t} (a) VALUES (ROW_COUNT() + LAST_INSERT_ID())",
    "INSERT INTO {t} (a) VALUES (f(1))",
    "INSERT INTO {t} (a) VALUES (1),(2) RETURNING id",
    "INSERT IGNORE INTO {t} (a) VALUES (1) RETURNING id",
    "INSERT INTO {t} (id, a) VALUES (RAND(), 1)",
    "INSERT INTO {t} () VALUES ()",
    "INSERT DELAYED INTO {t} (a) VALUES (1)",
    "INSERT INTO {t} (nr, a) VALUES (NULL, 1)",
    "INSERT INTO {t} (a) VALUES ('",
    "/*! INSERT */ INTO {t} (a) VALUES (1)",
    "INSERT INTO {t} PARTITION (p0) (a) VALUES (1)",
    "SELECT NEXT VALUE FOR {t}",
    "SELECT NEXT {n} VALUES FOR {t} AS id",
];

const SELECTS: &[&str] = &[
    "INSERT INTO {t} (a) SELECT a FROM u",
    "INSERT INTO {t} (a) SELECT a FROM u",
    "INSERT INTO {t} (a) SELECT a FROM u LIMIT 7",
    "INSERT INTO {t} (a) SELECT a FROM u LIMIT 100",
    "INSERT INTO {t} (a) SELECT 1",
    "INSERT IGNORE INTO {t} (a) SELECT 1 FROM dual",
    "INSERT IGNORE INTO {t} (a) SELECT a FROM u",
    "INSERT INTO {t} (a) SELECT f(a) FROM u",
    "INSERT INTO {t} (a) SELECT LAST_INSERT_ID() FROM u",
    "INSERT INTO {t} (id, a) SELECT 5, a FROM u",
    "INSERT INTO {t} (id, a) SELECT 0, a FROM u",
    "INSERT INTO {t} (a) SELECT a FROM u ON DUPLICATE KEY UPDATE a = 1",
    "INSERT INTO {t} (a) SELECT a FROM u UNION SELECT 2",
    "INSERT INTO {t} (a) SELECT a, COUNT(*) FROM u GROUP BY a WITH ROLLUP",
    "INSERT INTO {t} SELECT NULL, a FROM u",
    "REPLACE INTO {t} (a) SELECT a FROM u",
];

const LOADS: &[&str] = &[
    "LOAD DATA LOCAL INFILE 'f' INTO TABLE {t} (a)",
    "LOAD DATA LOCAL INFILE 'f' INTO TABLE {t} (a)",
    "LOAD DATA LOCAL INFILE 'f' INTO TABLE {t}",
    "LOAD DATA LOCAL INFILE 'f' IGNORE INTO TABLE {t} (a) SET b = 1",
    "LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE {t}",
    "LOAD DATA INFILE 'f' INTO TABLE {t} (a)",
    "LOAD DATA INFILE 'f' INTO TABLE {t} (a)",
    "LOAD DATA INFILE 'f' INTO TABLE {t} (id, a)",
    "LOAD DATA INFILE 'f' INTO TABLE {t} (a) SET b = f(1)",
    "LOAD DATA INFILE 'f' INTO TABLE {t} (a) SET b = (SELECT 1)",
    "LOAD XML INFILE 'f' INTO TABLE {t}",
];

/// `{s}` is a statement between quotes, `{p}` the name of a prepared one.
const TEXT_PREPARED: &[&str] = &[
    "PREPARE {p} FROM {s}",
    "PREPARE {p} FROM {s}",
    "PREPARE {p} FROM {s}",
    "EXECUTE {p}",
    "EXECUTE {p}",
    "EXECUTE {p}",
    "EXECUTE {p} USING @a",
    "DEALLOCATE PREPARE {p}",
    "PREPARE {p} FROM @text",
    "EXECUTE IMMEDIATE {s}",
];
const NAMES: &[&str] = &[
    "s",
    "s",
    "s",
    "S",
    "p",
    "p",
    "`é`",
    "`keywright execute`",
    "`keywright executé`",
];

const OTHERS: &[&str] = &[
    "SELECT LAST_INSERT_ID()",
    "SELECT LAST_INSERT_ID()",
    "SELECT LAST_INSERT_ID(), ROW_COUNT()",
    "SELECT LAST_INSERT_ID(7)",
    "SELECT ROW_COUNT()",
    "SELECT f(1)",
    "SELECT a FROM {t}",
    "SELECT 1",
    "UPDATE {t} SET a = LAST_INSERT_ID(a)",
    "UPDATE u SET a = f(1)",
    "DELETE FROM {t}",
    "SHOW WARNINGS",
    "CALL p()",
    "CALL p()",
    "SET sql_mode = 'ANSI_QUOTES'",
    "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
    "SET sql_mode = 'STRICT_TRANS_TABLES'",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "SET sql_mode = ''",
    "SET insert_id = 77",
    "SET insert_id = 77",
    "SET auto_increment_increment = 3",
    "SET auto_increment_increment = 1",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "SET NAMES latin1",
    "SET @a = 1",
    "USE other",
    "USE d",
    "CREATE TEMPORARY TABLE {t} (id INT, a INT)",
    "CREATE TEMPORARY TABLE {t} (id INT, a INT)",
    "DROP TEMPORARY TABLE {t}",
    "DROP TABLE {t}",
    "DROP TABLE {t}, nosuch",
    "ALTER TABLE {t} ADD c INT",
    "ALTER TABLE {t} DROP id",
    "RENAME TABLE {t} TO u",
    "CREATE TABLE {t} (id BIGINT, a INT)",
    "TRUNCATE {t}",
    "BEGIN",
    "BEGIN",
    "BEGIN",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "BEGIN NOT ATOMIC INSERT INTO t (a) VALUES (1); END",
    "SET STATEMENT max_statement_time=10 FOR INSERT INTO {t} (a) VALUES (1)",
    "SET STATEMENT max_statement_time=10 FOR LOAD DATA INFILE 'f' INTO TABLE {t} (a)",
    "SET STATEMENT max_statement_time=10 FOR EXECUTE s",
    "SET STATEMENT max_statement_time=10 FOR SELECT 1",
    "ANALYZE TABLE {t}",
    "EXPLAIN INSERT INTO {t} (a) VALUES (1)",
    "LOCK TABLES {t} WRITE",
    "XA START 'x'",
    "DO LAST_INSERT_ID(5)",
    "SHOW KEYWRIGHT STATUS",
    "SHOW KEYWRIGHT RULES LIKE 'r%'",
    "SHOW KEYWRIGHT CONNECTIONS;",
    "",
    "NONSENSE",
    "INSERT INTO\u{a0}t (a) VALUES (1)",
];

/// Statements for the binary protocol.
const PREPARED: &[&str] = &[
    "INSERT INTO {t} (a) VALUES (?)",
    "INSERT INTO {t} (a) VALUES (?)",
    "INSERT INTO {t} (id, a) VALUES (?, ?)",
    "INSERT INTO {t} (id, a) VALUES (?, ?)",
    "INSERT INTO {t} (id, a, b) VALUES (?, ?, ?),(NULL, ?, 1)",
    "INSERT INTO {t} (a) VALUES (?),(?),(3)",
    "INSERT IGNORE INTO {t} (a) VALUES (?),(?)",
    "INSERT IGNORE INTO {t} (a) VALUES (?)",
    "INSERT INTO {t} (a) VALUES (?) ON DUPLICATE KEY UPDATE a = ?",
    "INSERT INTO {t} VALUES (?, ?)",
    "INSERT INTO {t} VALUES (NULL, ?, ?)",
    "INSERT INTO {t} (a) VALUES (1)",
    "INSERT INTO {t} (id, a) VALUES (0, ?)",
    "INSERT INTO {t} (id, a) VALUES (5, ?)",
    "INSERT INTO {t} (a) VALUES (?) RETURNING id",
    "INSERT INTO {t} (a) VALUES (LAST_INSERT_ID() + ?)",
    "REPLACE INTO {t} (a) VALUES (?)",
    "INSERT INTO {t} (a) SELECT a FROM free WHERE a > ?",
    "INSERT INTO {t} (a) SELECT a FROM free WHERE a > ?",
    "INSERT INTO {t} (a, b) SELECT ?, ?",
    "INSERT INTO {t} (a, b) SELECT ?, a FROM u WHERE a > ? LIMIT 7",
    "INSERT IGNORE INTO {t} (a) SELECT a FROM u",
    "INSERT INTO {t} (id, a) SELECT 0, a FROM u WHERE a > ?",
    "SELECT ?",
    "SELECT LAST_INSERT_ID()",
    "SET sql_mode = ?",
    "SET insert_id = ?",
    "CALL p(?)",
    "CREATE TEMPORARY TABLE {t} (a INT)",
    "DROP TABLE {t}",
    "ALTER TABLE {t} ADD c INT",
    "LOAD DATA INFILE 'f' INTO TABLE {t} (a)",
    "UPDATE {t} SET a = ?",
    "SELECT a FROM {t} WHERE a = ?",
];

/// A text as a client sends it in COM_QUERY.
pub(crate) fn text(random: &mut Rng) -> String {
    let text = single(random);
    let more = match random.u8(..) {
        0..=25 => random.usize(1..4),
        _ => 0,
    };
    let all = (0..more).fold(text, |all, _| format!("{all}; {}", single(random)));
    match random.u8(..) {
        0..=5 => format!("{all};"),
        6 | 7 => format!("{all} ; "),
        _ => all,
    }
}

fn single(random: &mut Rng) -> String {
    let of = match random.u8(0..100) {
        0..=33 => INSERTS,
        34..=45 => SELECTS,
        46..=52 => LOADS,
        53..=62 => TEXT_PREPARED,
        63..=92 => OTHERS,
        _ => return corpus(random).to_owned(),
    };
    let text = pick(random, of);
    let text = match text.contains("{s}") {
        true => text.replace("{s}", &quoted(random)),
        false => text.to_owned(),
    };
    filled(&text, random)
}

/// A text as a client sends it in COM_STMT_PREPARE.
pub(crate) fn prepared(random: &mut Rng) -> String {
    match random.u8(0..100) {
        0..=79 => filled(pick(random, PREPARED), random),
        80..=89 => single(random),
        _ => corpus(random).to_owned(),
    }
}

/// An INSERT of about so many bytes.
pub(crate) fn long(bytes: usize, random: &mut Rng) -> String {
    let front = pick(
        random,
        &[
            "INSERT INTO t (a, b) VALUES (1, 'x')",
            "INSERT INTO t (a, b) VALUES (1, 'x')",
            "INSERT INTO {t} (a, b) VALUES (1, 'x')",
            "INSERT INTO {t} (id, a, b) VALUES (NULL, 1, 'x')",
            "INSERT INTO free (a, b) VALUES (1, 'x')",
            "SET STATEMENT a=1 FOR INSERT INTO {t} (a, b) VALUES (1, 'x')",
        ],
    );
    let row = match front.contains("NULL") {
        true => ", (NULL, 1234567, 'a row that has some length, so that there are not too many')",
        false => ", (1234567, 'a row that has some length, so that there are not too many')",
    };
    let rows = row.repeat(bytes / row.len());
    let end = pick(random, &["", "", " ON DUPLICATE KEY UPDATE a = 1"]);
    filled(&format!("{front}{rows}{end}"), random)
}

fn quoted(random: &mut Rng) -> String {
    let of = pick(
        random,
        &[INSERTS, INSERTS, INSERTS, SELECTS, LOADS, PREPARED],
    );
    let text = pick(random, of).replace('\\', "").replace('\'', "''");
    format!("'{text}'")
}

/// With a table, a number and a name in their places.
pub(crate) fn filled(text: &str, random: &mut Rng) -> String {
    let table = pick(random, TABLES);
    let number = random.u8(..).to_string();
    let text = text.replace("{t}", table).replace("{n}", &number);
    match text.contains("{p}") {
        true => text.replace("{p}", pick(random, NAMES)),
        false => text,
    }
}

fn corpus(random: &mut Rng) -> &'static str {
    static CORPUS: OnceLock<Vec<String>> = OnceLock::new();
    let corpus = CORPUS.get_or_init(read_corpora);
    &corpus[random.usize(..corpus.len())]
}

/// The statements of both corpora; what belongs to their outcomes is left out where that is easily told.
fn read_corpora() -> Vec<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut above = here.ancestors();
    let root = above
        .find(|dir| dir.join("rewrite/tests/corpus").is_dir())
        .expect("the repository");
    let mut statements = Vec::new();
    for text in texts(&root.join("tests/corpus")) {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with(['#', '@', '=', '-']));
        let lines: Vec<&str> = lines.collect();
        let all = lines.join("\n").replace("{db}", "d").replace("{DB}", "D");
        statements.extend(all.split(";\n").map(|text| text.trim().to_owned()));
    }
    for text in texts(&root.join("rewrite/tests/corpus")) {
        let lines = text.lines().filter(|line| !line.starts_with([' ', '/']));
        statements.extend(lines.map(str::to_owned));
    }
    statements.retain(|text| !text.is_empty() && text.len() < 1_000);
    assert!(statements.len() > 1_000, "{} statements", statements.len());
    statements
}

/// The files of a directory, in the order of their names.
fn texts(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a corpus");
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let texts = files.iter().map(fs::read_to_string);
    texts.map(|text| text.expect("a text")).collect()
}
