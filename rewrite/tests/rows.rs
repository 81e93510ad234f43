//! Rows with nothing but constants in them are read in a short way: what comes of it is what the long way makes of them.

use keywright_core::KeyBatch;
use keywright_rewrite::{Flavour, Insert, InsertHead, KeyColumn, KeyForm, Modes, Server, Unread};
use proptest::prelude::*;
use proptest::sample::select;

/// What stands between commas; some of it is more than one value, or none.
const VALUES: [&str; 36] = [
    "'a string longer than thirty-two bytes, (with), marks'",
    "'and one with a doubled quote there '', and more'",
    "1",
    "12",
    "-1",
    "2.5e1",
    "0x1f",
    "x'00'",
    "'a'",
    "'it''s'",
    r"'\\'",
    r"'\''",
    "'open",
    "\"d\"",
    "NULL",
    "null",
    " NULL",
    "NULL ",
    "t.NULL",
    "t. NULL",
    "1NULL",
    "NULLs",
    "@NULL",
    "NOW()",
    "`b`",
    "null+1",
    "?",
    "(1)",
    "--1",
    "1--2",
    "- 1",
    "1 -1",
    "1 -- x\n",
    "/* c */ 1",
    "",
    ";",
];

const MODES: Modes = Modes {
    no_auto_value_on_zero: Some(false),
    strict: Some(true),
    ..Modes::plain(Server {
        flavour: Flavour::MariaDb,
        version: 101_119,
    })
};

/// What the key's column may be called.
const KEYS: [&[u8]; 3] = [b"id", b"null", b"now"];

fn rows() -> impl Strategy<Value = Vec<Vec<&'static str>>> {
    let plain = select(&VALUES[..11]);
    let any = select(&VALUES[..]);
    let value = prop_oneof![6 => plain, 1 => any];
    prop::collection::vec(prop::collection::vec(value, 1..4), 1..12)
}

/// The text with its keys, without blanks; and how many rows got one.
fn rewritten(
    text: &str,
    key: &[u8],
    values: usize,
    modes: &Modes,
) -> Result<(u64, Vec<u8>), Unread> {
    let live: Vec<Vec<u8>> = [b"a", b"b", b"c"]
        .iter()
        .take(values)
        .map(|name| name.to_vec())
        .collect();
    let key = KeyColumn {
        name: key,
        form: KeyForm::Integer,
        live: &live,
        watched: false,
        is_signed: false,
        is_strict: false,
    };
    let head = InsertHead::read(text.as_bytes(), modes)?;
    let plan = Insert::read(head, text.as_bytes(), modes)?.plan(text.as_bytes(), modes, &key)?;
    let keys = KeyBatch::Numbers {
        first: 7_000_000_000_000_000_001,
        spacing: 1,
        count: plan.keys(),
    };
    let mut out = Vec::new();
    // A plan of no keys writes the text as it is.
    plan.splice(text.as_bytes(), &keys, &mut out)
        .map_err(|_| Unread::Refused)?;
    out.retain(|byte| *byte != b' ');
    Ok((plan.keys(), out))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_ways_agree(
        rows in rows(),
        values in 1_usize..4,
        key in select(&KEYS[..]),
        between in select(&[",", ", ", " ,", ",  ", ",\n"][..]),
        behind in select(&["", " ", ";", " ON DUPLICATE KEY UPDATE a = 1", " ON DUPLICATE KEY UPDATE a = id"][..]),
        (ansi_quotes, no_backslash_escapes) in any::<(bool, bool)>(),
    ) {
        let modes = Modes { ansi_quotes, no_backslash_escapes, ..MODES };
        let columns = &["a", "b", "c"][..values];
        let text = |open: &str| {
            let rows: Vec<String> = rows.iter().map(|row| format!("{open}{})", row.join(","))).collect();
            format!("INSERT INTO t ({}) VALUES {}{behind}", columns.join(","), rows.join(between))
        };
        // A row whose values begin behind a blank is not taken for one of the short kind.
        let (short, long) = (text("("), text("( "));
        prop_assert_eq!(
            rewritten(&short, key, values, &modes),
            rewritten(&long, key, values, &modes),
            "{}", short
        );
    }
}

#[test]
fn a_column_may_be_called_null() -> Result<(), Unread> {
    const KEY: &str = "LAST_INSERT_ID(7000000000000000001)";
    // A value that refers to the key goes before it.
    for (row, with_key) in [
        ("NULL", format!("({KEY},NULL)")),
        ("t.NULL", format!("(t.NULL,{KEY})")),
        ("t. NULL", format!("(t.NULL,{KEY})")),
        ("`t`.null", format!("(`t`.null,{KEY})")),
    ] {
        let text = format!("INSERT INTO t (a) VALUES ({row})");
        let (_, out) = rewritten(&text, b"null", 1, &MODES)?;
        let out = String::from_utf8_lossy(&out);
        assert!(out.ends_with(&with_key), "{row}: {out}");
    }
    Ok(())
}
