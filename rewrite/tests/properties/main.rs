//! What holds for every text: nothing panics, only the splices differ, a second time changes nothing.

mod texts;

use std::cell::Cell;

use keywright_core::KeyBatch;
use keywright_rewrite::{
    CharsetClass, Flavour, Insert, InsertHead, KeyColumn, KeyForm, Load, Modes, Plan, Server,
    Unread, Unsupported, kind, last_insert_id_use, load_target, prepare_source, split,
    tables_touched, use_target,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use texts::{few_pieces, keys_as_written, modes, pieces, statements, values};

/// Texts that a property is tried on.
const CASES: u32 = 4_000;

fn live() -> Vec<Vec<u8>> {
    [&b"id"[..], b"a", b"b"].map(<[u8]>::to_vec).to_vec()
}

fn plan(text: &[u8], modes: &Modes, form: KeyForm) -> Result<Plan, Unread> {
    let live = live();
    let key = KeyColumn {
        name: b"id",
        form,
        live: &live,
        watched: false,
        is_signed: false,
        is_strict: false,
    };
    let head = InsertHead::read(text, modes)?;
    Insert::read(head, text, modes)?.plan(text, modes, &key)
}

fn keys(plan: &Plan, form: KeyForm) -> KeyBatch {
    match form {
        KeyForm::Integer => KeyBatch::Numbers {
            first: 1_000_001,
            spacing: 1,
            count: plan.keys(),
        },
        KeyForm::Text => KeyBatch::Texts((0..plan.keys()).map(|key| format!("k-{key}")).collect()),
        KeyForm::Bytes => KeyBatch::Bytes((0..plan.keys()).map(|_| [7; 16]).collect()),
    }
}

/// Everything that reads text, on one text.
fn read_all(text: &[u8], modes: &Modes) {
    let _ = (
        kind(text, modes),
        last_insert_id_use(text, modes),
        use_target(text, modes),
        load_target(text, modes),
    );
    let _ = (prepare_source(text, modes), tables_touched(text, modes));
    let whole: usize = split(text, modes)
        .iter()
        .map(|piece| piece.range.len())
        .sum();
    assert_eq!(whole, text.len());
}

/// `new` is `old` with some bytes replaced, each by something with a key in it: every byte of `old` that is no key of ours
/// comes again in order.
fn contains_in_order(new: &[u8], old: &[u8]) -> bool {
    let mut rest = new.iter();
    old.iter().all(|byte| rest.any(|other| other == byte))
}

/// Of how many texts a property could be tried: one that holds where nothing can be planned says nothing.
#[derive(Debug, Default)]
struct Share {
    texts: Cell<u32>,
    planned: Cell<u32>,
}

impl Share {
    fn count(&self, is_planned: bool) {
        self.texts.set(self.texts.get() + 1);
        self.planned.set(self.planned.get() + u32::from(is_planned));
    }
}

/// Tries a property on texts, of which it must be possible to plan so many of a hundred.
fn hold<S: Strategy>(
    texts: &S,
    planned_percent_min: u32,
    property: impl Fn(S::Value, &Share) -> Result<(), TestCaseError>,
) {
    let share = Share::default();
    let mut runner = TestRunner::new(ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    if let Err(error) = runner.run(texts, |text| property(text, &share)) {
        panic!("{error}");
    }
    let (texts, planned) = (share.texts.get(), share.planned.get());
    assert!(
        planned * 100 >= texts * planned_percent_min,
        "{planned} of {texts} were planned"
    );
}

fn check(text: &[u8], modes: &Modes, form: KeyForm, share: &Share) -> Result<(), TestCaseError> {
    let plan = plan(text, modes, form);
    share.count(plan.is_ok());
    let Ok(plan) = plan else {
        return Ok(());
    };
    let mut once = Vec::new();
    plan.splice(text, &keys(&plan, form), &mut once)
        .expect("as many keys as asked for");
    if plan.keys() == 0 && plan.key_parameters().is_empty() {
        prop_assert_eq!(&once, text);
    }
    for asking in std::iter::once(None).chain(plan.key_parameters().iter().map(|one| Some(one.row)))
    {
        let prepared = plan
            .prepare(text, plan.variant(asking), 1)
            .expect("few parameters");
        let ascending = prepared
            .injected
            .windows(2)
            .all(|two| two[0].at < two[1].at);
        prop_assert!(ascending);
    }
    match self::plan(&once, modes, form) {
        Ok(again) => {
            prop_assert_eq!(again.keys(), 0, "{}", String::from_utf8_lossy(&once));
            prop_assert_eq!(again.rows(), plan.rows());
            let mut twice = Vec::new();
            again
                .splice(&once, &keys(&again, form), &mut twice)
                .expect("no key is needed");
            prop_assert_eq!(&twice, &once);
        }
        // What was written for a zero whose meaning is not known is an expression, and is not filled again.
        Err(Unread::Unsupported(Unsupported::Key(_))) if plan.zero_is_ambiguous() => {}
        Err(error) => prop_assert!(false, "{error} in {}", String::from_utf8_lossy(&once)),
    }
    Ok(())
}

/// A LOAD DATA keeps all its bytes, and is not filled a second time.
fn check_load(text: &[u8], modes: &Modes, share: &Share) -> Result<(), TestCaseError> {
    let key = KeyColumn {
        name: b"id",
        form: KeyForm::Integer,
        live: &[],
        watched: false,
        is_signed: false,
        is_strict: false,
    };
    let plan = |text: &[u8]| Load::read(text, modes)?.plan(text, modes, &key);
    let planned = plan(text);
    share.count(planned.is_ok());
    let Ok(planned) = planned else {
        return Ok(());
    };
    let keys = KeyBatch::Listed(vec![5, 6, 9]);
    let mut once = Vec::new();
    planned
        .splice(text, &keys, false, &mut once)
        .expect("two ranges");
    prop_assert!(contains_in_order(&once, text));
    let again = plan(&once);
    let is_refused = matches!(again, Err(Unread::Unsupported(Unsupported::LoadWith(_))));
    prop_assert!(
        is_refused,
        "{:?} of {}",
        again,
        String::from_utf8_lossy(&once)
    );
    Ok(())
}

#[test]
fn any_bytes_are_read_without_panic() {
    let texts = (prop::collection::vec(any::<u8>(), 0..200), modes());
    hold(&texts, 0, |(text, modes), share| {
        read_all(&text, &modes);
        check(&text, &modes, KeyForm::Integer, share)
    });
}

#[test]
fn almost_statements_are_read_without_panic() {
    hold(&(pieces(), modes()), 0, |(text, modes), share| {
        read_all(&text, &modes);
        check(&text, &modes, KeyForm::Integer, share)?;
        check(&text, &modes, KeyForm::Text, share)
    });
}

#[test]
fn statements_with_a_head_are_rewritten_once() {
    const HEADS: [(&str, &str); 6] = [
        ("INSERT INTO t(a) VALUES (", ""),
        ("INSERT INTO t(a) VALUES (", ")"),
        ("INSERT INTO t(a, id) VALUES (1, ", ")"),
        ("INSERT INTO t VALUES (1,2,", ")"),
        ("INSERT INTO t SET ", ""),
        ("INSERT INTO t SET a = ", ""),
    ];
    let rests = prop_oneof![pieces(), few_pieces()];
    hold(&(rests, modes()), 15, |(rest, modes), share| {
        for (head, end) in HEADS {
            let text = [head.as_bytes(), &rest, end.as_bytes()].concat();
            read_all(&text, &modes);
            check(&text, &modes, KeyForm::Integer, share)?;
            check(&text, &modes, KeyForm::Bytes, share)?;
        }
        Ok(())
    });
}

#[test]
fn rows_with_anything_in_them_are_rewritten_once() {
    let texts = (values(), keys_as_written(), modes());
    hold(&texts, 90, |(values, key, modes), share| {
        for text in [
            format!("INSERT INTO t(a) VALUES ({values})"),
            format!("INSERT INTO t(a, id) VALUES ({values}, {key})"),
            format!("INSERT INTO t SET a = {values}, id = {key}"),
        ] {
            check(text.as_bytes(), &modes, KeyForm::Integer, share)?;
            check(text.as_bytes(), &modes, KeyForm::Bytes, share)?;
        }
        Ok(())
    });
}

#[test]
fn loads_are_filled_once() {
    const HEADS: [&str; 3] = [
        "LOAD DATA INFILE 'f' INTO TABLE t ",
        "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a) SET b = ",
        "LOAD DATA INFILE 'f' INTO TABLE t (id,",
    ];
    let rests = prop_oneof![pieces(), few_pieces()];
    hold(&(rests, modes()), 8, |(rest, modes), share| {
        check_load(&rest, &modes, share)?;
        for head in HEADS {
            check_load(&[head.as_bytes(), &rest].concat(), &modes, share)?;
        }
        Ok(())
    });
}

#[test]
fn loads_with_anything_in_them_are_filled_once() {
    hold(&(values(), modes()), 50, |(value, modes), share| {
        for text in [
            format!("LOAD DATA INFILE 'f' INTO TABLE t (a) SET b = {value}"),
            format!("LOAD DATA LOCAL INFILE 'f' INTO TABLE t (id, @b) SET b = {value};"),
        ] {
            check_load(text.as_bytes(), &modes, share)?;
        }
        Ok(())
    });
}

#[test]
fn accepted_statements_are_planned() {
    hold(&(statements(), modes()), 80, |(text, modes), share| {
        let is_unsafe = modes.charset == CharsetClass::TrailByteMayBeBackslash && !text.is_ascii();
        // DEFAULT for a value whose name is asked for and zeros beside NULL are the only reasons to refuse these.
        match plan(text.as_bytes(), &modes, KeyForm::Integer) {
            Ok(_) | Err(Unread::Unsupported(Unsupported::ZeroAmbiguous)) => {}
            Err(Unread::Unsupported(Unsupported::Charset)) => prop_assert!(is_unsafe, "{}", text),
            Err(error) => prop_assert!(
                modes.no_backslash_escapes || list_is_short(&text),
                "{error} in {text}"
            ),
        }
        check(text.as_bytes(), &modes, KeyForm::Integer, share)?;
        check(text.as_bytes(), &modes, KeyForm::Text, share)
    });
}

#[test]
fn what_begins_alike_reads_alike() {
    let texts = prop_oneof![statements().prop_map(String::into_bytes), pieces()];
    hold(
        &(texts, pieces(), modes()),
        25,
        |(text, rest, modes), share| {
            let read = |text: &[u8]| {
                InsertHead::read(text, &modes).and_then(|head| Insert::read(head, text, &modes))
            };
            let read_first = read(&text).ok();
            let beginning = read_first
                .as_ref()
                .and_then(|insert| insert.beginning(&text, &modes));
            share.count(beginning.is_some());
            if let (Some(insert), Some(beginning)) = (&read_first, beginning) {
                let other = [beginning, &rest].concat();
                let also_read = read(&other).ok();
                prop_assert_eq!(
                    also_read.as_ref(),
                    Some(insert),
                    "{} and {}",
                    String::from_utf8_lossy(&text),
                    String::from_utf8_lossy(&other)
                );
            }
            Ok(())
        },
    );
}

#[test]
fn a_beginning_ends_behind_the_parenthesis_of_the_first_row() {
    let modes = Modes::plain(Server {
        flavour: Flavour::MariaDb,
        version: 101_119,
    });
    for (text, beginning) in [
        (
            "INSERT INTO t (a) VALUES(1)",
            Some("INSERT INTO t (a) VALUES("),
        ),
        (
            "INSERT INTO t (a) VALUES (1)",
            Some("INSERT INTO t (a) VALUES ("),
        ),
        ("INSERT INTO t (a) VALUES  (1)", None),
    ] {
        let read = InsertHead::read(text.as_bytes(), &modes)
            .and_then(|head| Insert::read(head, text.as_bytes(), &modes))
            .expect("it can be read");
        let found = read.beginning(text.as_bytes(), &modes);
        assert_eq!(found, beginning.map(str::as_bytes), "{text}");
    }
}

#[test]
fn a_second_reader_reads_both_or_neither() {
    hold(&(statements(), modes()), 75, |(text, mut modes), share| {
        // The second reader knows neither of these modes.
        (modes.ansi_quotes, modes.no_backslash_escapes) = (false, false);
        let plan = plan(text.as_bytes(), &modes, KeyForm::Integer);
        share.count(plan.is_ok());
        let Ok(plan) = plan else {
            return Ok(());
        };
        let mut new = Vec::new();
        plan.splice(text.as_bytes(), &keys(&plan, KeyForm::Integer), &mut new)
            .expect("as many keys as asked for");
        let new = String::from_utf8(new).expect("the input was UTF-8");
        prop_assert_eq!(parses(&text), parses(&new), "{} became {}", text, new);
        if plan.keys() == 0 || text.contains("(a, b)") || text.contains("(b)") {
            prop_assert!(contains_in_order(new.as_bytes(), text.as_bytes()));
        }
        Ok(())
    });
}

fn list_is_short(text: &str) -> bool {
    text.contains(" t  VALUES") && !text.contains(", ")
}

fn parses(text: &str) -> bool {
    sqlparser::parser::Parser::parse_sql(&sqlparser::dialect::MySqlDialect {}, text).is_ok()
}

#[test]
fn statements_are_cut_where_the_server_cuts_them() {
    let maria = Modes {
        no_auto_value_on_zero: Some(false),
        strict: Some(true),
        ..Modes::plain(Server {
            flavour: Flavour::MariaDb,
            version: 101_119,
        })
    };
    let cut = |text: &str| -> Vec<String> {
        let mark = |indivisible| if indivisible { "!" } else { "" };
        split(text.as_bytes(), &maria)
            .into_iter()
            .map(|piece| format!("{}{}", &text[piece.range], mark(piece.indivisible)))
            .collect()
    };
    assert_eq!(cut("SELECT 1; SELECT 2"), ["SELECT 1;", " SELECT 2"]);
    assert_eq!(
        cut("SELECT ';'; /* ; */ SELECT \"a;b\" -- ;\n;"),
        ["SELECT ';';", " /* ; */ SELECT \"a;b\" -- ;\n;"]
    );
    assert_eq!(
        cut("BEGIN; INSERT INTO t VALUES (';'); COMMIT"),
        ["BEGIN;", " INSERT INTO t VALUES (';');", " COMMIT"]
    );
    assert_eq!(
        cut("SELECT 1; CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END; SELECT 3"),
        [
            "SELECT 1;",
            " CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END; SELECT 3!"
        ]
    );
    let library = "CREATE LIBRARY l LANGUAGE JAVASCRIPT AS $$ let a = 1; let b = \"x\"; $$";
    assert_eq!(cut(library), [format!("{library}!")]);
    assert_eq!(
        cut("ALTER LIBRARY l COMMENT 'x'; SELECT 1"),
        ["ALTER LIBRARY l COMMENT 'x';", " SELECT 1"]
    );
    let behind_set = "SET STATEMENT a=1 FOR SET STATEMENT b=';' FOR BEGIN NOT ATOMIC DO 1; END";
    assert_eq!(cut(behind_set), [format!("{behind_set}!")]);
    assert_eq!(
        cut("SET STATEMENT a=1 FOR DO 1; DO 2"),
        ["SET STATEMENT a=1 FOR DO 1;", " DO 2"]
    );
    assert_eq!(
        cut("BEGIN NOT ATOMIC SELECT 1; END"),
        ["BEGIN NOT ATOMIC SELECT 1; END!"]
    );
    // In sql_mode ORACLE.
    assert_eq!(
        cut("SELECT 1; BEGIN SELECT 2; SELECT 3; END"),
        ["SELECT 1;", " BEGIN SELECT 2; SELECT 3; END!"]
    );
    assert_eq!(cut("SELECT 'open; SELECT 2"), ["SELECT 'open; SELECT 2!"]);
    assert_eq!(
        cut("/*!50000 SELECT 1 */; SELECT 2"),
        ["/*!50000 SELECT 1 */;", " SELECT 2"]
    );
    assert_eq!(cut(""), [""; 0]);
}
