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
        Standing::Opening,
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
    assert_eq!(
        plan_prepare(Some(&closed), "c"),
        Ok(Plan::Change("c".to_owned()))
    );
    let opening = row(Standing::Opening);
    assert_eq!(
        plan_prepare(Some(&opening), "c"),
        Ok(Plan::AsItIs("a".to_owned()))
    );
    assert_eq!(
        plan_prepare(Some(&row(Standing::Open)), "c"),
        Err(Refused::Open)
    );
}

#[test]
fn an_open_row_is_never_claimed_for_another() {
    let none = BTreeSet::new();
    let claim = |row: &HomeRow, is_open| plan_claim(Some(row), ("h", is_open), &none);
    assert_eq!(claim(&row(Standing::Open), IsOpen::Yes), Err(Refused::Open));
    assert_eq!(
        claim(&row(Standing::Opening), IsOpen::NotYet),
        Err(Refused::UnderWay)
    );
    let thirds = row(Standing::Elsewhere("third".to_owned()));
    assert_eq!(claim(&thirds, IsOpen::Yes), Err(Refused::AnothersIds));
    let led = BTreeSet::from(["third".to_owned()]);
    assert_eq!(
        plan_claim(Some(&thirds), ("h", IsOpen::Yes), &led),
        Ok(Plan::Change(50))
    );
    let dropped = HomeRow {
        is_dropped: true,
        ..row(Standing::Open)
    };
    assert_eq!(claim(&dropped, IsOpen::NotYet), Ok(Plan::Change(50)));
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
