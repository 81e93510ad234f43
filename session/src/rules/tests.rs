//! Which rule a table has, by its name.

use keywright_rewrite::KeyForm;

use super::{KeyColumnState, Pattern, PatternError, Rule, Rules, TableSnapshot, View, ViewKey};

fn rules(pattern: &str, lower_case: bool) -> Result<Rules, PatternError> {
    let rule = Rule::new(Pattern::parse(pattern)?, "id", KeyForm::Integer);
    Ok(Rules::new(vec![rule], lower_case))
}

fn matches(rules: &Rules, schema: &str, table: &[u8]) -> bool {
    let found = rules.find(schema.as_bytes(), table).is_some();
    assert_eq!(found, rules.may_match(Some(schema.as_bytes()), table));
    found
}

#[test]
fn names_are_compared_as_the_server_compares_them() -> Result<(), PatternError> {
    for pattern in ["Shop_*.Größe", "Shop_1.Gr*e"] {
        let exact = rules(pattern, false)?;
        assert!(matches(&exact, "Shop_1", "Größe".as_bytes()));
        assert!(!matches(&exact, "shop_1", "Größe".as_bytes()));
        assert!(!matches(&exact, "Shop_1", "GRÖßE".as_bytes()));
        assert!(!exact.same_name("Größe".as_bytes(), "GRÖßE".as_bytes()));
        let folded = rules(pattern, true)?;
        assert!(folded.same_name("Größe".as_bytes(), "GRÖßE".as_bytes()));
        assert!(!folded.same_name("Größe".as_bytes(), "Große".as_bytes()));
        assert!(matches(&folded, "SHOP_1", "GRÖßE".as_bytes()));
        assert!(!matches(&folded, "shop", "größe".as_bytes()));
    }
    Ok(())
}

#[test]
fn letters_are_folded_one_by_one_as_the_server_folds_them() -> Result<(), PatternError> {
    for pattern in ["shop.ΑΡΙΘΜΟΣ", "shop.ΑΡΙΘΜΟΣ*", "SHOP.αριθμοσ", "shop.*Σ"]
    {
        let folded = rules(pattern, true)?;
        assert!(matches(&folded, "shop", "αριθμοσ".as_bytes()), "{pattern}");
        assert!(matches(&folded, "shop", "ΑΡΙΘΜΟΣ".as_bytes()), "{pattern}");
        assert!(!matches(&folded, "shop", "αριθμος".as_bytes()), "{pattern}");
    }
    let folded = rules("shop.ordini", true)?;
    assert!(matches(&folded, "shop", "ORDİNİ".as_bytes()));
    assert!(folded.same_name("ordini".as_bytes(), "ORDİNİ".as_bytes()));
    Ok(())
}

#[test]
fn the_name_of_a_file_is_that_of_its_table() -> Result<(), PatternError> {
    for lower_case in [false, true] {
        let rules = rules("shop.or-ders", lower_case)?;
        for schema in ["shop", "#mysql50#shop"] {
            for (table, is_it) in [
                ("#mysql50#or-ders", true),
                ("#mysql50#or@002dders", true),
                ("#mysql50#or@002D@00ders", false),
                ("#mysql50#or@002", false),
                ("#mysql50#or@d800ders", false),
                ("#mysql50#other", false),
                ("#mysql50#", false),
                ("#MYSQL50#or-ders", lower_case),
                ("x#mysql50#or-ders", false),
            ] {
                assert_eq!(matches(&rules, schema, table.as_bytes()), is_it, "{table}");
            }
        }
        assert!(!rules.same_name(b"or-ders", b"#mysql50#or-ders"));
        assert!(rules.may_match(None, b"#mysql50#or-ders"));
    }
    Ok(())
}

#[test]
fn names_that_are_no_text_match_nothing() -> Result<(), PatternError> {
    for lower_case in [false, true] {
        for pattern in ["*.*", "shop.*", "shop.t"] {
            let rules = rules(pattern, lower_case)?;
            assert!(!matches(&rules, "shop", b"t\xff"));
            assert!(rules.same_name(b"t\xff", b"t\xff"));
            assert!(!rules.same_name(b"t\xff", b"t\xfe"));
        }
    }
    Ok(())
}

#[test]
fn tables_that_were_seen_are_known_by_name() -> Result<(), PatternError> {
    let tables = [
        ("Orders", KeyColumnState::Present),
        ("Short", KeyColumnState::TooNarrow),
        ("Log", KeyColumnState::Missing),
    ]
    .map(|(name, key_column)| TableSnapshot {
        schema: "Shop".to_owned(),
        name: name.to_owned(),
        key_column,
        is_not_null: (key_column == KeyColumnState::Present).then_some(true),
        traits: None,
    });
    for (lower_case, is_all) in [(false, false), (false, true), (true, true)] {
        let rules = rules("S*.*", lower_case)?.with_tables(&tables, is_all);
        // Else nobody looked for others.
        let other = [KeyColumnState::Present, KeyColumnState::NoTable][usize::from(is_all)];
        assert_eq!(rules.key_column_state(b"Shop", b"new"), other);
        assert_eq!(rules.key_column_state(b"Sales", b"Log"), other);
        assert_eq!(rules.is_not_null(b"Shop", b"new"), None);
        for table in &tables {
            let name = table.name.as_bytes();
            assert_eq!(rules.key_column_state(b"Shop", name), table.key_column);
            assert_eq!(rules.is_not_null(b"Shop", name), table.is_not_null);
            let in_other_case = rules.key_column_state(b"SHOP", &name.to_ascii_uppercase());
            let expected = if lower_case { table.key_column } else { other };
            assert_eq!(in_other_case, expected);
        }
    }
    Ok(())
}

#[test]
fn views_have_the_rule_of_the_table_behind_them() -> Result<(), PatternError> {
    let view = |name: &str, key| View {
        schema: "Shop".to_owned(),
        name: name.to_owned(),
        rule: 0,
        key,
    };
    let views = [
        view("Shown", ViewKey::Column("nr".to_owned())),
        view("t1", ViewKey::Unsupported("that does not show the key")),
    ];
    for lower_case in [false, true] {
        let rules = rules("Shop.t*", lower_case)?.with_views(&views);
        let found = |table: &str| {
            let (index, rule) = rules.find(b"Shop", table.as_bytes())?;
            assert!(rules.may_match(Some(b"Shop"), table.as_bytes()));
            assert!(rules.may_match(None, table.as_bytes()));
            assert_eq!(rules.configured(index), 0);
            Some((rule.column.clone(), rules.unsupported(index).is_some()))
        };
        assert_eq!(found("t"), Some(("id".to_owned(), false)));
        assert_eq!(found("Shown"), Some(("nr".to_owned(), false)));
        // The name matches the rule's pattern as well.
        assert_eq!(found("t1"), Some(("id".to_owned(), true)));
        assert_eq!(found("SHOWN").is_some(), lower_case);
        assert!(!matches(&rules, "other", b"Shown"));
    }
    Ok(())
}
