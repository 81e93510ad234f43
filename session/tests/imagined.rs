//! What would become of statements, said without a server.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use keywright_core::KeyBatch;
use keywright_rewrite::{Flavour, KeyForm, Server};
use keywright_session::imagine::{Columns, Decision, Explained, Imagine, Imagined, State};
use keywright_session::{
    KeyRequest, Limits, Mode, OnAmbiguousId, OnExplicit, OnUnsupported, Pattern, Rule, Rules,
    SessionFacts, SeveralRows,
};

struct Examples;

impl Imagine for Examples {
    fn keys(&mut self, request: KeyRequest) -> KeyBatch {
        KeyBatch::Numbers {
            first: 1001,
            spacing: 1,
            count: request.count,
        }
    }

    fn columns(&mut self, schema: &[u8], table: &[u8]) -> Columns {
        match (schema, table) {
            (b"shop", b"orders") => Columns::Known(vec![b"id".to_vec(), b"a".to_vec()]),
            (b"shop", b"or`ders") => Columns::Known(vec![b"b".to_vec(), b"id".to_vec()]),
            (b"shop", b"gone") => Columns::NoTable,
            _ => Columns::NotKnown,
        }
    }
}

fn rule(on_unsupported: OnUnsupported) -> Rule {
    Rule {
        on_unsupported,
        repeatable: true,
        is_steady: true,
        is_signed: true,
        ..Rule::new(Pattern::parse("shop.*").unwrap(), "id", KeyForm::Integer)
    }
}

fn imagined(on_unsupported: OnUnsupported) -> Imagined {
    with(rule(on_unsupported), "utf8mb4")
}

fn with(rule: Rule, charset: &str) -> Imagined {
    let facts = SessionFacts {
        server: Server {
            flavour: Flavour::MariaDb,
            version: 101_119,
        },
        capabilities: 0,
        collation: 0,
        user: Vec::new(),
        database: None,
        status: 0,
        limits: Limits {
            rewrite_bytes_max: 5_000,
            ..Limits::default()
        },
    };
    let state = State {
        database: None,
        sql_mode: b"STRICT_TRANS_TABLES".to_vec(),
        charset: charset.as_bytes().to_vec(),
        increment: 1,
    };
    Imagined::new(Arc::new(Rules::new(vec![rule], false)), facts, state)
}

fn output(imagined: &mut Imagined, text: &str) -> Explained {
    imagined.query(text.as_bytes(), &mut Examples)
}

fn rewritten(text: &str) -> Explained {
    Explained {
        rule: Some(0),
        decision: Decision::Rewritten {
            text: text.as_bytes().to_vec(),
        },
    }
}

#[test]
fn the_text_that_the_server_would_get_is_shown() {
    let mut it = imagined(OnUnsupported::Refuse);
    assert_eq!(
        output(&mut it, "INSERT INTO shop.orders (a) VALUES (1), (2)"),
        rewritten("INSERT INTO shop.orders (`id`,a) VALUES (1001,1), (LAST_INSERT_ID(1001)+1,2)")
    );
    assert_eq!(
        output(&mut it, "INSERT INTO shop.`or``ders` VALUES (1, NULL)"),
        rewritten("INSERT INTO shop.`or``ders` (`b`,`id`) VALUES (1, LAST_INSERT_ID(1001))")
    );
}

#[test]
fn what_is_refused_is_named() {
    let mut it = imagined(OnUnsupported::Refuse);
    let refused = output(&mut it, "INSERT INTO shop.orders SELECT * FROM other");
    assert_eq!(refused.rule, Some(0));
    let Decision::Refused { construct, message } = refused.decision else {
        panic!("{refused:?}");
    };
    assert_eq!(construct, "insert_select");
    assert!(message.contains("INSERT … SELECT"), "{message}");
    let mut it = imagined(OnUnsupported::Pass);
    let passed = output(&mut it, "INSERT INTO shop.orders SELECT * FROM other");
    let construct = "insert_select";
    assert_eq!(passed.decision, Decision::Passed { construct });
}

#[test]
fn the_database_is_followed() {
    let mut it = imagined(OnUnsupported::Refuse);
    let text = "INSERT INTO orders (a) VALUES (1)";
    let untouched = Explained {
        rule: None,
        decision: Decision::Untouched,
    };
    assert_eq!(output(&mut it, text), untouched);
    assert_eq!(output(&mut it, "USE shop").decision, Decision::Untouched);
    assert!(matches!(
        output(&mut it, text).decision,
        Decision::Rewritten { .. }
    ));
    it.use_database(b"other", &mut Examples);
    assert_eq!(output(&mut it, text), untouched);
    assert_eq!(it.database(), Some(b"other".as_slice()));
}

#[test]
fn temporary_tables_hide_those_of_rules() {
    let mut it = imagined(OnUnsupported::Refuse);
    output(&mut it, "CREATE TEMPORARY TABLE shop.orders (id INT)");
    let text = "INSERT INTO shop.orders (id) VALUES (NULL)";
    assert_eq!(output(&mut it, text).decision, Decision::Untouched);
    output(&mut it, "DROP TABLE shop.orders");
    assert!(matches!(
        output(&mut it, text).decision,
        Decision::Rewritten { .. }
    ));
}

#[test]
fn sql_mode_is_followed_where_the_text_shows_it() {
    let mut it = imagined(OnUnsupported::Refuse);
    let zero = "INSERT INTO shop.orders (id) VALUES (0)";
    assert!(matches!(
        output(&mut it, zero).decision,
        Decision::Rewritten { .. }
    ));
    output(
        &mut it,
        "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='no_auto_value_on_zero' */",
    );
    assert_eq!(output(&mut it, zero).decision, Decision::Untouched);
    assert!(!it.lost_sql_mode());
    output(&mut it, "SET SESSION sql_mode = ''");
    assert!(matches!(
        output(&mut it, zero).decision,
        Decision::Rewritten { .. }
    ));
    output(&mut it, "SET sql_mode = @OLD_SQL_MODE");
    assert!(it.lost_sql_mode());
    output(&mut it, "SET GLOBAL sql_mode = 'NO_AUTO_VALUE_ON_ZERO'");
    assert!(matches!(
        output(&mut it, zero).decision,
        Decision::Rewritten { .. }
    ));
}

#[test]
fn columns_that_nobody_knows_are_said_to_be_missing() {
    let mut it = imagined(OnUnsupported::Refuse);
    let decision = output(&mut it, "INSERT INTO shop.unknown VALUES (1)").decision;
    let (schema, table) = (b"shop".to_vec(), b"unknown".to_vec());
    assert_eq!(decision, Decision::ColumnsNotKnown { schema, table });
    let gone = output(&mut it, "INSERT INTO shop.gone VALUES (1)");
    assert_eq!(gone.decision, Decision::Untouched);
}

/// What the server computes nobody knows before, also behind another such statement.
#[test]
fn a_computed_key_is_said_to_depend_on_its_value() {
    let mut it = imagined(OnUnsupported::Refuse);
    for key in ["@id + 1", "LAST_INSERT_ID()", "(SELECT 7)"] {
        let text = format!("INSERT INTO shop.orders (id, item) VALUES ({key}, 1)");
        assert_eq!(output(&mut it, &text).decision, Decision::ByValue, "{key}");
    }
    let refused = output(
        &mut it,
        "INSERT INTO shop.orders (id, item) VALUES (RAND(), 1)",
    );
    assert!(matches!(refused.decision, Decision::Refused { .. }));
}

#[test]
fn an_observing_rule_refuses_nothing() {
    let observing = || Rule {
        on_explicit: OnExplicit::Refuse,
        on_ambiguous_id: OnAmbiguousId::Refuse,
        several_rows: SeveralRows::Spaced,
        mode: Mode::Observe,
        ..rule(OnUnsupported::Refuse)
    };
    let passed = |construct| Decision::Passed { construct };
    let long = format!(
        "INSERT INTO shop.orders (a) VALUES ('{}')",
        "x".repeat(6_000)
    );
    let mut it = with(observing(), "utf8mb4");
    for (text, decision) in [
        ("INSERT INTO shop.orders (a) VALUES (1)", Decision::Observed),
        (
            "INSERT INTO shop.orders (id) VALUES (1)",
            passed("explicit"),
        ),
        ("INSERT INTO shop.orders (a) SELECT 1", Decision::Observed),
        (
            "INSERT INTO shop.orders (a) SELECT f(b) FROM u",
            passed("insert_select"),
        ),
        ("INSERT INTO shop.orders (id) SELECT 1", passed("explicit")),
        (
            "INSERT IGNORE INTO shop.orders (a) SELECT b FROM u",
            passed("ambiguous_id"),
        ),
        (
            "INSERT IGNORE INTO shop.orders (a) VALUES (1), (2)",
            passed("ambiguous_id"),
        ),
        (
            "PREPARE s FROM 'INSERT INTO shop.orders (a) VALUES (1)'",
            Decision::Untouched,
        ),
        ("EXECUTE s", Decision::Observed),
        ("CALL p()", Decision::Untouched),
        ("EXECUTE s", Decision::Untouched),
        (&long, Decision::Untouched),
    ] {
        assert_eq!(output(&mut it, text).decision, decision, "{text}");
    }
    let mut it = with(observing(), "gbk");
    let text = "INSERT INTO shop.orders (a) VALUES ('é')";
    assert_eq!(output(&mut it, text).decision, passed("charset"));
}

/// A statement with used keys is known to the server by a name that the client does not execute.
#[test]
fn a_text_is_executed_by_a_name_of_its_own() {
    let mut it = imagined(OnUnsupported::Pass);
    output(
        &mut it,
        "PREPARE s FROM 'INSERT INTO shop.orders (a) VALUES (1)'",
    );
    for _ in 0..2 {
        let Decision::Rewritten { text } = output(&mut it, "EXECUTE s").decision else {
            panic!("EXECUTE gets keys");
        };
        let expected = "PREPARE `keywright execute` FROM \
            'INSERT INTO shop.orders (`id`,a) VALUES (LAST_INSERT_ID(1001),1)'\n\
            EXECUTE `keywright execute`";
        assert_eq!(String::from_utf8_lossy(&text), expected);
    }
    output(&mut it, "CREATE TEMPORARY TABLE shop.orders (id INT)");
    assert_eq!(output(&mut it, "EXECUTE s").decision, Decision::Untouched);
    // Also when nothing of the client's is left that could be meant.
    output(&mut it, "DEALLOCATE PREPARE s");
    for own in [
        "EXECUTE `Keywright Execute`",
        "EXECUTE `keywright execute `",
        "EXECUTE `keywright éxecute`",
    ] {
        let decision = output(&mut it, own).decision;
        let is_refused = matches!(&decision, Decision::Refused { construct, .. } if *construct == "text_prepare");
        assert!(is_refused, "{own}: {decision:?}");
    }
}

#[test]
fn a_load_is_shown_with_its_keys() {
    let mut it = imagined(OnUnsupported::Refuse);
    let text = "LOAD DATA LOCAL INFILE 'f' INTO TABLE shop.orders (a)";
    let shown = output(&mut it, text);
    let Decision::Rewritten { text: new } = &shown.decision else {
        panic!("{shown:?}");
    };
    let new = String::from_utf8_lossy(new);
    let one = " SET `id`=CASE WHEN LAST_INSERT_ID()=0 THEN LAST_INSERT_ID(1001) ELSE ";
    assert!(new.starts_with(&format!("{text}{one}")), "{new}");
    let shown = output(&mut it, "LOAD DATA INFILE 'f' INTO TABLE shop.orders");
    assert!(
        matches!(shown.decision, Decision::Rewritten { .. }),
        "{shown:?}"
    );
    let shown = output(&mut it, "LOAD DATA LOCAL INFILE 'f' INTO TABLE free.t");
    assert_eq!(shown.decision, Decision::Untouched);
    output(&mut it, "CALL p()");
    let shown = output(&mut it, text);
    assert!(
        matches!(shown.decision, Decision::Rewritten { .. }),
        "{shown:?}"
    );
    let shown = output(&mut it, "LOAD XML INFILE 'f' INTO TABLE shop.orders");
    let construct = "load_xml";
    assert!(
        matches!(shown.decision, Decision::Refused { construct: other, .. } if other == construct)
    );
    let rule = Rule {
        mode: Mode::Observe,
        ..rule(OnUnsupported::Refuse)
    };
    let mut it = with(rule, "utf8mb4");
    assert_eq!(output(&mut it, text).decision, Decision::Observed);
}

#[test]
fn a_key_that_may_be_null_in_a_table_that_nobody_knows_is_told() {
    let text = Rule {
        form: KeyForm::Text,
        ..rule(OnUnsupported::Refuse)
    };
    let mut it = with(text, "utf8mb4");
    let computed = "INSERT INTO shop.unknown (id, a) VALUES (NULLIF(RAND(), 2), 1)";
    let decision = output(&mut it, computed).decision;
    let (schema, table) = (b"shop".to_vec(), b"unknown".to_vec());
    assert_eq!(decision, Decision::NullNotKnown { schema, table });
}
