//! Acts that come to something only in this order: a few of them, with others between.

use fastrand::Rng;
use keywright_wire::protocol::{COM_CHANGE_USER, COM_RESET_CONNECTION, COM_SET_OPTION};

use crate::circumstances::{Circumstances, Version};
use crate::client::{Bytes, OnStatement, What, packet, query};
use crate::pick;
use crate::statements::{filled, long};

/// A step begins with what it is; behind `q` and `p` stands a text that is sent or prepared.
const SCENARIOS: &[&[&str]] = &[
    // What was prepared out of a text may be another one meanwhile.
    &[
        "q PREPARE s FROM 'INSERT INTO {t} (a) VALUES (1)'",
        "q EXECUTE s",
        "q SELECT 1; PREPARE s FROM 'SELECT 1'",
        "q EXECUTE s",
    ],
    &[
        "q PREPARE s FROM 'INSERT INTO {t} (a) VALUES (1)'",
        "q EXECUTE s",
        "q EXECUTE `keywright executé`",
        "q EXECUTE `keywright execute`",
        "q EXECUTE s",
    ],
    &[
        "q PREPARE s FROM 'INSERT INTO {t} (a) VALUES (1)'",
        "q DEALLOCATE PREPARE `é`",
        "q EXECUTE S",
        "q USE other",
        "q EXECUTE s",
    ],
    // Long data before an execution that finds no keys, or whose statement has changed.
    &[
        "p INSERT INTO {t} (a) VALUES (?)",
        "e",
        "l",
        "e",
        "l",
        "e",
        "l",
        "e",
    ],
    &[
        "p INSERT INTO {t} (a) VALUES (?)",
        "l",
        "defined",
        "e",
        "l",
        "r",
        "e",
    ],
    // Other rows ask for a key each time.
    &[
        "p INSERT INTO {t} (id) VALUES (?),(?),(?),(?),(?),(?),(?),(?),(?),(?),(?),(?),(?),(?)",
        "e",
        "e",
        "e",
        "e",
        "e",
        "e",
        "e",
        "e",
        "e",
        "e",
        "e",
        "e",
        "c",
    ],
    // Tables that change under statements.
    &[
        "p INSERT INTO {t} VALUES (?, ?)",
        "e",
        "defined",
        "e",
        "e",
        "defined",
        "e",
        "e",
        "c",
    ],
    &[
        "p INSERT INTO {t} VALUES (?, ?)",
        "e",
        "q ALTER TABLE {t} ADD c INT",
        "e",
        "e",
    ],
    &[
        "p INSERT INTO {t} (a) SELECT a FROM u WHERE a > ?",
        "e",
        "defined",
        "e",
        "b",
        "c",
        "e",
    ],
    &[
        "q INSERT INTO {t} (a) VALUES (1)",
        "looked",
        "q INSERT INTO {t} VALUES (1, 2)",
        "q INSERT INTO {t} (a) VALUES (1)",
    ],
    // Rules that change under them.
    &[
        "publish observe",
        "p INSERT INTO t (a) VALUES (?)",
        "e",
        "e",
        "publish rewrite",
        "e",
        "e",
        "publish observe",
        "e",
        "e",
    ],
    &[
        "publish observe",
        "p INSERT INTO t (a) VALUES (?)",
        "b",
        "b",
        "publish rewrite",
        "b",
        "e",
        "b",
        "publish observe",
        "b",
        "b",
    ],
    &[
        "publish observe",
        "q BEGIN",
        "q INSERT INTO t (a) VALUES (1)",
        "publish hold",
        "q COMMIT",
        "q INSERT INTO t (a) VALUES (1)",
        "waited",
    ],
    &[
        "publish observe",
        "q BEGIN",
        "q INSERT INTO t (a) VALUES (1)",
        "publish hold",
        "q NONSENSE",
        "ask",
        "q INSERT INTO t (a) VALUES (1)",
        "waited",
    ],
    &[
        "publish observe",
        "q INSERT IGNORE INTO t (a) VALUES (1)",
        "publish rewrite",
        "waited",
    ],
    &[
        "publish observe",
        "q INSERT INTO t (a) VALUES (1)",
        "waited",
        "publish rewrite",
    ],
    &[
        "publish observe",
        "q LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a)",
        "q SELECT 1",
    ],
    &[
        "publish observe",
        "p INSERT IGNORE INTO t (a) SELECT a FROM u",
        "e",
        "publish rewrite",
        "e",
    ],
    &[
        "publish observe",
        "p INSERT INTO t (a) VALUES (?)",
        "typed",
        "publish rewrite",
        "untyped",
        "publish observe",
        "untyped",
    ],
    &[
        "publish rewrite",
        "p INSERT INTO t (a) VALUES (?)",
        "e",
        "publish ahead",
        "e",
        "waited",
        "publish rewrite",
        "e",
    ],
    // The client's own insert_id.
    &[
        "p INSERT INTO {t} (a) VALUES (?)",
        "e",
        "q SET insert_id = 77",
        "e",
        "e",
        "q SET insert_id = 77",
        "e",
        "c",
    ],
    &[
        "p INSERT INTO {t} (a) SELECT a FROM u WHERE a > ?",
        "q SET insert_id = 77",
        "e",
        "e",
        "c",
    ],
    &[
        "q SET insert_id = 77",
        "q INSERT INTO {t} (a) VALUES (1); INSERT INTO {t} (a) VALUES (2)",
    ],
    // What 0 means.
    &[
        "q SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
        "p INSERT INTO {t} (id, a) VALUES (0, ?)",
        "e",
        "q SET sql_mode = ''",
        "e",
        "e",
    ],
    &[
        "p INSERT INTO {t} (id, a) VALUES (0, ?)",
        "e",
        "q SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
        "e",
        "b",
        "q SET sql_mode = ''",
        "e",
    ],
    // What LAST_INSERT_ID() shows.
    &[
        "q INSERT INTO {t} (a) VALUES (1)",
        "q INSERT INTO {t} (a) SELECT 1",
        "q INSERT INTO {t} (a) VALUES (2)",
        "q SELECT LAST_INSERT_ID()",
    ],
    &[
        "q INSERT INTO {t} (a) VALUES (1)",
        "q INSERT INTO {t} (a) SELECT a FROM u",
        "q INSERT INTO {t} (a) VALUES (2)",
        "q LOAD DATA INFILE 'f' INTO TABLE {t} (a)",
        "q SELECT LAST_INSERT_ID()",
    ],
    &[
        "q INSERT IGNORE INTO {t} (a) VALUES (1)",
        "q INSERT INTO {t} (a) VALUES (1),(2)",
        "q SELECT ROW_COUNT(), LAST_INSERT_ID()",
    ],
    // Temporary tables.
    &[
        "q CREATE TEMPORARY TABLE {t} (a INT)",
        "q INSERT INTO {t} (a) VALUES (1)",
        "q DROP TEMPORARY TABLE {t}",
        "q INSERT INTO {t} (a) VALUES (1)",
    ],
    &[
        "q CREATE TEMPORARY TABLE {t} (a INT)",
        "p INSERT INTO {t} (a) VALUES (?)",
        "e",
        "q DROP TABLE {t}, nosuch",
        "e",
        "q INSERT INTO {t} (a) VALUES (1)",
    ],
    // Users and options.
    &[
        "option 0",
        "q SELECT 1; INSERT INTO {t} (a) VALUES (1)",
        "user",
        "q SELECT 1; INSERT INTO {t} (a) VALUES (1)",
    ],
    &[
        "option 1",
        "user",
        "q SELECT 1; INSERT INTO {t} (a) VALUES (1)",
    ],
    &[
        "p INSERT INTO {t} (a) VALUES (?)",
        "e",
        "reset",
        "e",
        "q INSERT INTO {t} (a) VALUES (1)",
    ],
    // No memory for what is long.
    &[
        "full",
        "long",
        "q INSERT INTO {t} (a) VALUES (1)",
        "p INSERT INTO {t} (a) VALUES (?)",
    ],
    &[
        "full",
        "q SELECT 1",
        "p INSERT INTO {t} (a) VALUES (?)",
        "e",
        "long",
    ],
    // Where it lies.
    &[
        "q INSERT INTO t (a) VALUES (1)",
        "long",
        "long",
        "long of 5",
    ],
];

/// One of them.
pub(crate) fn scenario(circumstances: &Circumstances, random: &mut Rng) -> Vec<What> {
    let steps = pick(random, SCENARIOS);
    // All on one table, mostly that of the rule that may change.
    let table = match random.u8(0..4) {
        0 => filled("{t}", random),
        _ => "t".to_owned(),
    };
    let steps = steps.iter();
    steps
        .filter_map(|step| what(&step.replace("{t}", &table), circumstances, random))
        .collect()
}

fn what(step: &str, circumstances: &Circumstances, random: &mut Rng) -> Option<What> {
    let (is, of) = step.split_once(' ').unwrap_or((step, ""));
    let command = |payload: &[u8]| {
        let mut bytes = Vec::new();
        packet(0, payload, &mut bytes);
        What::Command(Bytes(bytes))
    };
    let statement = |what| What::OnStatement(0, what);
    Some(match is {
        "q" => query(0, of, circumstances, random),
        "p" => What::Prepare(of.to_owned()),
        "e" => statement(OnStatement::Execute(random.u64(..), None)),
        "typed" => statement(OnStatement::Execute(random.u64(..), Some(true))),
        "untyped" => statement(OnStatement::Execute(random.u64(..), Some(false))),
        "b" => statement(OnStatement::Bulk(random.u64(..))),
        "l" => statement(OnStatement::LongData(0)),
        "c" => statement(OnStatement::Close),
        "r" => statement(OnStatement::Reset),
        "long" => {
            let sequence = if of.is_empty() { 0 } else { 5 };
            query(sequence, &long(40_000, random), circumstances, random)
        }
        "option" => command(&[COM_SET_OPTION, u8::from(of == "1"), 0]),
        "user" => command(&[&[COM_CHANGE_USER][..], b"root\0\0d\0\x2d\0"].concat()),
        "reset" => command(&[COM_RESET_CONNECTION]),
        "defined" => What::Defined,
        "looked" => What::Looked(true),
        "full" => What::MemoryFull,
        "waited" => What::Waited,
        "ask" => What::AskWhetherOpen,
        "publish" => {
            let version = Version {
                rewrites: of == "rewrite" || of == "ahead",
                is_held: of == "hold",
                waits_for_store: false,
                servers: 0,
                is_ahead: of == "ahead",
            };
            circumstances.begins_with?;
            What::Publish(version, true)
        }
        other => unreachable!("{other}"),
    })
}
