//! What holds for every text: nothing panics, only the splices differ, a second time changes nothing.

mod texts;

use keywright_core::KeyBatch;
use keywright_rewrite::{
    CharsetClass, Flavour, Insert, InsertHead, KeyColumn, KeyForm, Load, Modes, Plan, Server,
    Unread, Unsupported, kind, load_target, prepare_source, sight, split, tables_touched,
    use_target,
};
use proptest::prelude::*;

use texts::{modes, pieces, statements};

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
        sight(text, modes),
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

fn check(text: &[u8], modes: &Modes, form: KeyForm) -> Result<(), TestCaseError> {
    let Ok(plan) = plan(text, modes, form) else {
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
        Err(Unread::Unsupported(Unsupported::Key(_))) if plan.unsure_of_zero() => {}
        Err(error) => prop_assert!(false, "{error} in {}", String::from_utf8_lossy(&once)),
    }
    Ok(())
}

/// A LOAD DATA keeps all its bytes, and is not filled a second time.
fn check_load(text: &[u8], modes: &Modes) -> Result<(), TestCaseError> {
    let key = KeyColumn {
        name: b"id",
        form: KeyForm::Integer,
        live: &[],
        watched: false,
        is_signed: false,
        is_strict: false,
    };
    let plan = |text: &[u8]| Load::read(text, modes)?.plan(text, modes, &key);
    let Ok(planned) = plan(text) else {
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_panic(text in prop::collection::vec(any::<u8>(), 0..200), modes in modes()) {
        read_all(&text, &modes);
        check(&text, &modes, KeyForm::Integer)?;
    }

    #[test]
    fn almost_statements_are_rewritten_once(text in pieces(), modes in modes()) {
        read_all(&text, &modes);
        check(&text, &modes, KeyForm::Integer)?;
        check(&text, &modes, KeyForm::Text)?;
    }

    #[test]
    fn statements_with_a_head_are_rewritten_once(rest in pieces(), modes in modes()) {
        for head in ["INSERT INTO t(a) VALUES (", "INSERT INTO t(a, id) VALUES (", "INSERT INTO t VALUES (1,2,", "INSERT INTO t SET "] {
            let text = [head.as_bytes(), &rest].concat();
            read_all(&text, &modes);
            check(&text, &modes, KeyForm::Integer)?;
            check(&text, &modes, KeyForm::Bytes)?;
        }
    }

    #[test]
    fn loads_are_filled_once(rest in pieces(), modes in modes()) {
        check_load(&rest, &modes)?;
        for head in ["LOAD DATA INFILE 'f' INTO TABLE t ", "LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a) SET b = ", "LOAD DATA INFILE 'f' INTO TABLE t (id,"] {
            check_load(&[head.as_bytes(), &rest].concat(), &modes)?;
        }
    }

    #[test]
    fn accepted_statements_are_planned(text in statements(), modes in modes()) {
        // DEFAULT for a value whose name is asked for and zeros beside NULL are the only reasons to refuse these.
        match plan(text.as_bytes(), &modes, KeyForm::Integer) {
            Ok(_) | Err(Unread::Unsupported(Unsupported::ZeroUnsure)) => {}
            Err(error) => prop_assert!(modes.no_backslash_escapes || list_is_short(&text), "{error} in {text}"),
        }
        check(text.as_bytes(), &modes, KeyForm::Integer)?;
        check(text.as_bytes(), &modes, KeyForm::Text)?;
    }

    #[test]
    fn what_begins_alike_reads_alike(text in prop_oneof![statements().prop_map(String::into_bytes), pieces()], rest in pieces(), modes in modes()) {
        let read = |text: &[u8]| InsertHead::read(text, &modes).and_then(|head| Insert::read(head, text, &modes));
        if let Ok(insert) = read(&text)
            && let Some(beginning) = insert.beginning(&text, &modes)
        {
            let other = [beginning, &rest].concat();
            prop_assert_eq!(read(&other), Ok(insert), "{} and {}", String::from_utf8_lossy(&text), String::from_utf8_lossy(&other));
        }
    }

    #[test]
    fn a_second_reader_reads_both_or_neither(text in statements(), mut modes in modes()) {
        // The second reader knows neither of these modes.
        (modes.ansi_quotes, modes.no_backslash_escapes) = (false, false);
        if let Ok(plan) = plan(text.as_bytes(), &modes, KeyForm::Integer) {
            let mut new = Vec::new();
            plan.splice(text.as_bytes(), &keys(&plan, KeyForm::Integer), &mut new).expect("as many keys as asked for");
            let new = String::from_utf8(new).expect("the input was UTF-8");
            prop_assert_eq!(parses(&text), parses(&new), "{} became {}", text, new);
            if plan.keys() == 0 || text.contains("(a, b)") || text.contains("(b)") {
                prop_assert!(contains_in_order(new.as_bytes(), text.as_bytes()));
            }
        }
    }
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
        ansi_quotes: false,
        no_backslash_escapes: false,
        no_auto_value_on_zero: Some(false),
        strict: Some(true),
        charset: CharsetClass::Safe,
        server: Server {
            flavour: Flavour::MariaDb,
            version: 101_119,
        },
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
    assert_eq!(cut("SELECT 'open; SELECT 2"), ["SELECT 'open; SELECT 2!"]);
    assert_eq!(
        cut("/*!50000 SELECT 1 */; SELECT 2"),
        ["/*!50000 SELECT 1 */;", " SELECT 2"]
    );
    assert_eq!(cut(""), [""; 0]);
}
