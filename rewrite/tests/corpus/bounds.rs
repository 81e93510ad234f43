//! As many keys and parameters as there can be.

use keywright_core::KeyBatch;
use keywright_rewrite::{Insert, InsertHead, KeyColumn, KeyForm, Load, Unread, Unsupported};

use crate::setting::{Setting, shown};

#[test]
fn ranges_of_keys_are_put_together() {
    let setting = Setting::parse("");
    let modes = &setting.modes[0];
    let key = KeyColumn {
        name: b"id",
        form: KeyForm::Integer,
        live: &[],
        watched: false,
        is_signed: true,
        is_strict: false,
    };
    let text = b"LOAD DATA INFILE 'f' INTO TABLE t (id)";
    let plan = Load::read(text, modes)
        .and_then(|load| load.plan(text, modes, &key))
        .expect("it can be planned");
    let spliced = |keys: Vec<u64>| {
        let mut out = Vec::new();
        plan.splice(text, &KeyBatch::Listed(keys), false, &mut out)
            .map(|()| shown(&out).replace("LAST_INSERT_ID", "L"))
    };
    assert_eq!(
        spliced(vec![7, 10, 13, 20, 40]).expect("two ranges"),
        "LOAD DATA INFILE 'f' INTO TABLE t (id) SET `id`=CASE \
         WHEN `id`<>0 THEN CAST(`id` AS SIGNED)*6364136223846793005*6364136223846793005 \
         WHEN L()=0 THEN L(7) WHEN L()>=7 AND L()<13 THEN L(L()+3) \
         WHEN L()=13 THEN L(20) WHEN L()>=20 AND L()<40 THEN L(L()+20) \
         ELSE L()*7046029254386353131*7046029254386353131 END"
    );
    assert!(spliced(vec![0, 1]).is_err(), "0 is no key");
    assert!(spliced(vec![5, 5]).is_err(), "never the same twice");
    assert!(spliced(vec![]).is_err());
    // Two of them are a range.
    let far_apart = |count: u64| (0..count).map(|n| 1 + n * n).collect();
    assert!(
        spliced(far_apart(2_000)).is_ok(),
        "as many ranges as can be"
    );
    assert!(spliced(far_apart(2_001)).is_err(), "too many ranges");
}

/// Servers number parameters with 16 bits.
#[test]
fn as_many_parameters_are_prepared_as_the_servers_take() {
    const MOST: usize = 65_535;
    let setting = Setting::parse("maria");
    let modes = &setting.modes[0];
    let key = KeyColumn {
        name: b"id",
        form: KeyForm::Integer,
        live: &[],
        watched: false,
        is_signed: true,
        is_strict: false,
    };
    let read = |text: &[u8]| {
        InsertHead::read(text, modes)
            .and_then(|head| Insert::read(head, text, modes))
            .expect("it can be read")
    };
    let rows = |own: usize| {
        let text = format!("INSERT INTO t(a) VALUES {}", vec!["(?)"; own].join(","));
        let text = text.as_bytes();
        let plan = read(text)
            .plan(text, modes, &key)
            .expect("it can be planned");
        let prepared = plan.prepare(text, plan.variant(None), 1)?;
        Ok(own + prepared.injected.len())
    };
    // Two of them are the first key's.
    assert_eq!(rows(MOST - 2), Ok(MOST));
    let too_many: Result<usize, Unread> = Err(Unsupported::Parameters.into());
    assert_eq!(rows(MOST - 1), too_many);
    let query = |own: usize| {
        let list = vec!["?"; own].join(",");
        let text = format!("INSERT INTO t(a) SELECT a FROM u WHERE b IN ({list}) LIMIT 1");
        let text = text.as_bytes();
        let insert = read(text);
        let second = insert.read_again(text, modes);
        let plan = insert
            .plan_query(text, modes, &key, &second, None)
            .expect("it can be planned");
        Ok(own + plan.prepare(text)?.injected.len())
    };
    assert_eq!(query(MOST - 1), Ok(MOST));
    assert_eq!(query(MOST), too_many);
}
