use super::*;

fn row(standing: Standing) -> HomeRow {
    HomeRow {
        free: 50,
        key_space: "a".to_owned(),
        standing,
        is_dropped: false,
    }
}

#[test]
fn what_stands_in_a_row_is_read_as_it_was_written() {
    let heir = Heir::parse("7 16384 ab").unwrap();
    for standing in [
        Standing::Open,
        Standing::Opening(None),
        Standing::Opening(Some("ab12".to_owned())),
        Standing::Elsewhere("ab12".to_owned()),
        Standing::Native(heir),
    ] {
        let text = standing.text();
        assert_eq!(Standing::parse(text.as_deref()), Some(standing));
    }
    assert_eq!(Standing::parse(Some("nobody")), None);
}

#[test]
fn a_closed_row_that_is_to_open_gets_another_key_space() {
    let closed = row(Standing::Elsewhere("b".to_owned()));
    let source = |key_space: &str, lists_target| Source {
        key_space: key_space.to_owned(),
        leads: BTreeSet::from(["led".to_owned()]),
        lists_target,
    };
    let waiting = |key_space: &str, before: Option<&str>| Waiting {
        key_space: key_space.to_owned(),
        before: before.map(str::to_owned),
    };
    let from_b = source("b", false);
    assert_eq!(
        plan_prepare(Some(&closed), "c", &from_b),
        Ok(Plan::Change(waiting("c", Some("b"))))
    );
    let opening = row(Standing::Opening(None));
    assert_eq!(
        plan_prepare(Some(&opening), "c", &from_b),
        Ok(Plan::AsItIs(waiting("a", None)))
    );
    assert_eq!(
        plan_prepare(Some(&row(Standing::Open)), "c", &from_b),
        Err(Refused::Open)
    );
    // One whose ids come from a third row does not open for a move from another.
    for standing in [
        Standing::Elsewhere("third".to_owned()),
        Standing::Opening(Some("third".to_owned())),
    ] {
        let thirds = row(standing);
        assert_eq!(
            plan_prepare(Some(&thirds), "c", &from_b),
            Err(Refused::AnothersIds)
        );
        assert!(plan_prepare(Some(&thirds), "c", &source("b", true)).is_ok());
        assert!(plan_prepare(Some(&thirds), "c", &source("third", false)).is_ok());
    }
    let led = row(Standing::Elsewhere("led".to_owned()));
    assert!(plan_prepare(Some(&led), "c", &from_b).is_ok());
}

#[test]
fn an_open_row_is_never_claimed_for_another() {
    let none = BTreeSet::new();
    let claim = |row: &HomeRow| plan_claim(Some(row), "h", &none);
    assert_eq!(claim(&row(Standing::Open)), Err(Refused::Open));
    for before in [None, Some("h".to_owned())] {
        let waits = row(Standing::Opening(before));
        assert_eq!(claim(&waits), Err(Refused::UnderWay));
    }
    let of_third = HomeRow {
        is_dropped: true,
        ..row(Standing::Opening(Some("third".to_owned())))
    };
    assert_eq!(claim(&of_third), Err(Refused::AnothersIds));
    let thirds = row(Standing::Elsewhere("third".to_owned()));
    assert_eq!(claim(&thirds), Err(Refused::AnothersIds));
    let led = BTreeSet::from(["third".to_owned()]);
    assert_eq!(plan_claim(Some(&thirds), "h", &led), Ok(Plan::Change(50)));
    let dropped = HomeRow {
        is_dropped: true,
        ..row(Standing::Open)
    };
    assert_eq!(claim(&dropped), Ok(Plan::Change(50)));
}

#[test]
fn a_way_over_several_stores_leads_home() {
    let of = |key_space: &str, to: &str| HomeRow {
        key_space: key_space.to_owned(),
        ..row(Standing::Elsewhere(to.to_owned()))
    };
    let rows = [of("a", "b"), of("b", "h"), of("x", "y")];
    assert_eq!(
        leads_to("h", &rows),
        BTreeSet::from(["a".to_owned(), "b".to_owned()])
    );
}

#[test]
fn a_list_of_stores_holds_each_once() {
    let more = ["two".to_owned(), "one".to_owned()];
    let list = listed(Some("one"), &more, None).unwrap();
    assert_eq!(list.as_deref(), Some("one two"));
    assert_eq!(
        listed(list.as_deref(), &[], Some("two"))
            .unwrap()
            .as_deref(),
        Some("one")
    );
    assert_eq!(listed(Some("one"), &[], Some("one")).unwrap(), None);
    let others = ["one", "three"].map(|mark| OtherStore {
        name: mark.to_owned(),
        mark: mark.to_owned(),
    });
    let lacks = not_closed_in(&others, list.as_deref());
    assert_eq!(lacks, [&others[1]]);
    assert_eq!(not_closed_in(&[], None), Vec::<&OtherStore>::new());
}
