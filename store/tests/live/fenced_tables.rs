//! Which tables have their fence by which rule: recorded with what comes into force, and forgotten with it.

use std::collections::BTreeSet;

use keywright_store::Keys;
use keywright_store::switch::{
    Change, Committed, Dropped, FencedTable, Phase, Reached, Recorded, RuleName, Switchboard,
    TableName,
};
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, open, runtime, segment, small_steps, tag};
use crate::switches::{generation, here, recorded, space};

on_engines!(
    what_is_in_force_says_which_tables_have_their_fence,
    a_table_that_brings_a_fence_costs_what_was_reserved_once,
    a_table_of_another_rule_in_force_is_left_to_it,
    that_a_fence_was_lifted_is_recorded_until_the_table_is_fenced,
    what_is_in_force_has_its_fence_whatever_was_lifted_before,
);

fn rule(tables: &str) -> RuleName {
    RuleName {
        tables: tables.to_owned(),
        column: "id".to_owned(),
    }
}

/// A table of server `s`.
fn fenced(table: &str, tables: &str, keys: &str) -> FencedTable {
    FencedTable {
        server: "s".to_owned(),
        schema: "shop".to_owned(),
        table: table.to_owned(),
        rule: rule(tables),
        keys: space(keys),
    }
}

fn change(tables: &str, from: Option<&str>, to: Option<&str>) -> Change {
    Change {
        rule: rule(tables),
        from: from.map(space),
        to: to.map(space),
    }
}

/// A rule's tables, which have come to 5,000, go over to keys.
async fn switch(board: &Switchboard, change: Change, tables: &[&str]) -> Result<()> {
    let (name, keys) = (change.rule.tables.clone(), change.to.clone().unwrap());
    let attempt = board.begin(&[change]).await?.unwrap();
    let mut reached = Reached::default();
    for table in tables.iter().copied() {
        assert!(board.record(attempt, recorded(table, 5_000)).await?);
        reached.add_table(("s", "shop", table), &keys);
        reached.add_fenced(FencedTable {
            keys: keys.clone(),
            ..fenced(table, &name, "one")
        });
    }
    assert_eq!(
        board.commit(attempt, reached, here()).await?,
        Committed::Done
    );
    Ok(())
}

async fn names(board: &Switchboard) -> Result<Vec<String>> {
    let fenced = board.fenced("s").await?.into_iter();
    Ok(fenced
        .map(|its| format!("{} {} {}", its.table, its.rule.tables, its.keys))
        .collect())
}

fn what_is_in_force_says_which_tables_have_their_fence(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_fenced_switch")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for name in ["one", "two", "three"] {
            keys.create_tag(&tag(name), &small_steps(100)).await?;
        }
        let board = Switchboard::new(&keys);
        // More than one statement writes.
        let many: Vec<String> = (0..150).map(|at| format!("orders_{at:03}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        switch(&board, change("shop.orders*", None, Some("one")), &many).await?;
        let lines = change("shop.line*", None, Some("three"));
        switch(&board, lines, &["line_a", "line_b"]).await?;
        let all = names(&board).await?;
        assert_eq!(all.len(), 152);
        assert_eq!(all[0], "line_a shop.line* segment:three");
        assert_eq!(all[2], "orders_000 shop.orders* segment:one");
        assert_eq!(all[151], "orders_149 shop.orders* segment:one");
        assert_eq!(board.fenced("another").await?, []);

        // Given up: what is in force is as it was.
        let over = change("shop.orders*", Some("one"), Some("two"));
        let attempt = board.begin(std::slice::from_ref(&over)).await?.unwrap();
        assert!(board.record(attempt, recorded("orders_000", 1)).await?);
        assert!(board.end(attempt).await? && board.release(attempt, None).await?);
        assert_eq!(names(&board).await?, all);

        // A table that is not there any more keeps what was said of it, and so it is no table of the other tag.
        switch(&board, over, &many[1..]).await?;
        let all = names(&board).await?;
        assert_eq!(all.len(), 152);
        assert_eq!(all[2], "orders_000 shop.orders* segment:one");
        assert_eq!(all[3], "orders_001 shop.orders* segment:two");
        // Unless it is said of another by now.
        board
            .forget_fenced(fenced("orders_000", "shop.orders*", "two"))
            .await?;
        assert_eq!(names(&board).await?, all);
        board
            .forget_fenced(fenced("orders_000", "shop.orders*", "one"))
            .await?;
        assert_eq!(names(&board).await?, [&all[..2], &all[3..]].concat());

        // Native again, also where the attempt has not met them.
        let back = change("shop.orders*", Some("two"), None);
        let attempt = board.begin(&[back]).await?.unwrap();
        assert!(board.record(attempt, recorded("orders_001", 0)).await?);
        assert_eq!(
            board.commit(attempt, Reached::default(), here()).await?,
            Committed::Done
        );
        assert_eq!(names(&board).await?.len(), 151, "they may have keys yet");
        assert!(board.complete(attempt).await?);
        assert_eq!(names(&board).await?, &all[..2]);
        Ok::<(), anyhow::Error>(())
    })
}

/// The first program that finds it has the others drop what they have. One that comes second finds the record.
fn a_table_that_brings_a_fence_costs_what_was_reserved_once(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_fenced_brought")?;
    runtime()?.block_on(async {
        let (keys, other) = (open(&schema.raw())?, open(&schema.raw())?);
        keys.init().await?;
        keys.create_tag(&tag("one"), &small_steps(100)).await?;
        let (board, second) = (Switchboard::new(&keys), Switchboard::new(&other));
        let orders = change("shop.or*", None, Some("one"));
        switch(&board, orders, &["orders"]).await?;
        let source = keys.source(&segment("one"))?;
        keys.follow(&space("one"), 1);
        let last = source.take(1, true).await?.number(0).unwrap();
        let span = board.span(&space("one")).await?.unwrap();
        let came = || fenced("or_came", "shop.or*", "one");
        let is = |generation_is: u64| {
            let board = &board;
            async move {
                let now = generation(&board.standing().await?, "one");
                assert_eq!(now, Some(generation_is));
                Ok::<(), anyhow::Error>(())
            }
        };

        // Above what was reserved nothing helps but the switch.
        let beyond = board.admit(came(), true, span.bound + 1).await?;
        assert_eq!(beyond, Dropped::Not);
        assert_eq!(names(&board).await?.len(), 1);
        is(1).await?;
        let dropped = board.admit(came(), true, last + 10).await?;
        assert_eq!(dropped, Dropped::All(span));
        is(2).await?;
        assert_eq!(
            names(&second).await?,
            [
                "or_came shop.or* segment:one",
                "orders shop.or* segment:one"
            ]
        );
        for board in [&second, &board] {
            let again = board.admit(came(), true, last + 10).await?;
            assert_eq!(again, Dropped::Nothing);
        }
        is(2).await?;
        // It has lost its fence, as by TRUNCATE: whatever was said of it.
        let lost = second.admit(came(), false, last + 10).await?;
        assert!(matches!(lost, Dropped::All(_)), "{lost:?}");
        is(3).await?;
        // All keys are above the ids of this one.
        let new = fenced("or_new", "shop.or*", "one");
        assert_eq!(second.admit(new, true, 1).await?, Dropped::Nothing);
        assert_eq!(names(&board).await?.len(), 3);
        is(3).await?;
        // Its rule gives other keys.
        let other = fenced("or_other", "shop.or*", "two");
        assert_eq!(board.admit(other, true, 1).await?, Dropped::Not);

        keys.follow(&space("one"), 3);
        let key = source.take(1, true).await?.number(0).unwrap();
        assert!(key >= last + 10, "{key} {last}");
        Ok::<(), anyhow::Error>(())
    })
}

/// By the files of two programs the table is one rule's or the other's. Whoever was first has it.
fn a_table_of_another_rule_in_force_is_left_to_it(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_fenced_others")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for name in ["one", "two"] {
            keys.create_tag(&tag(name), &small_steps(100)).await?;
        }
        let board = Switchboard::new(&keys);
        let orders = change("shop.o*", None, Some("one"));
        switch(&board, orders, &["orders"]).await?;
        let wide = change("shop.*e*", None, Some("two"));
        switch(&board, wide, &["line"]).await?;
        let before = names(&board).await?;
        for is_fenced in [true, false] {
            let taken = fenced("orders", "shop.*e*", "two");
            let taken = board.admit(taken, is_fenced, 1).await?;
            assert_eq!(taken, Dropped::Not);
        }
        assert_eq!(names(&board).await?, before);

        // The other gives none any more.
        let back = change("shop.o*", Some("one"), None);
        let attempt = board.begin(&[back]).await?.unwrap();
        assert_eq!(
            board.commit(attempt, Reached::default(), here()).await?,
            Committed::Done
        );
        assert!(board.complete(attempt).await?);
        let taken = board.admit(fenced("orders", "shop.*e*", "two"), true, 1);
        assert_eq!(taken.await?, Dropped::Nothing);
        assert_eq!(
            names(&board).await?,
            ["line shop.*e* segment:two", "orders shop.*e* segment:two"]
        );
        Ok::<(), anyhow::Error>(())
    })
}

fn all_of(tables: &[&str]) -> BTreeSet<TableName> {
    let tables = tables.iter();
    tables
        .map(|table| ("shop".to_owned(), (*table).to_owned()))
        .collect()
}

/// A table that had a fence when it was read, or what looks like one.
fn recorded_behind_fence(table: &str) -> Recorded {
    Recorded {
        was_fenced: true,
        ..recorded(table, 1)
    }
}

/// A store with tables that were seen without a fence.
async fn with_lifted(keys: &Keys, tables: &[&str]) -> Result<Switchboard> {
    keys.init().await?;
    keys.create_tag(&tag("one"), &small_steps(100)).await?;
    let board = Switchboard::new(keys);
    for _ in 0..2 {
        let noted = board.note_lifted((0, Phase::None), "s", all_of(tables));
        assert!(noted.await?);
        assert_eq!(board.lifted("s").await?, all_of(tables));
    }
    Ok(board)
}

/// What looks like a fence behind that is the end of a native counter, unless an attempt may have fenced the table since.
fn that_a_fence_was_lifted_is_recorded_until_the_table_is_fenced(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_fenced_lifted")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        // More than one statement writes.
        let many: Vec<String> = (0..150).map(|at| format!("orders_{at:03}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let board = with_lifted(&keys, &many).await?;
        assert_eq!(board.lifted("another").await?, all_of(&[]));

        // One is to be fenced, and another is at its end.
        let on = change("shop.orders*", None, Some("one"));
        let attempt = board.begin(&[on]).await?.unwrap();
        assert!(board.record(attempt, recorded("orders_000", 5)).await?);
        let at_end = recorded_behind_fence("orders_001");
        assert!(board.record(attempt, at_end).await?);
        assert_eq!(board.lifted("s").await?, all_of(&many[1..]));
        // By looks from before, and by whoever takes the attempt for ended.
        for of in [
            (0, Phase::None),
            (attempt, Phase::None),
            (attempt, Phase::Ending),
        ] {
            let noted = board.note_lifted(of, "s", all_of(&many[..1]));
            assert!(!noted.await?, "{of:?}");
        }
        assert_eq!(board.lifted("s").await?, all_of(&many[1..]));

        // Given up, and its fence is lifted.
        assert!(board.end(attempt).await?);
        let of = (attempt, Phase::Ending);
        let noted = board.note_lifted(of, "s", all_of(&many[..1]));
        assert!(noted.await?);
        assert!(board.release(attempt, None).await?);
        assert_eq!(board.lifted("s").await?, all_of(&many));
        board.forget_lifted("s", all_of(&many[1..])).await?;
        assert_eq!(board.lifted("s").await?, all_of(&many[..1]));
        Ok::<(), anyhow::Error>(())
    })
}

/// Whatever was found of a table when it was read.
fn what_is_in_force_has_its_fence_whatever_was_lifted_before(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_fenced_again")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        let board = with_lifted(&keys, &["orders", "orders_later", "other"]).await?;
        let on = change("shop.orders*", None, Some("one"));
        let attempt = board.begin(&[on]).await?.unwrap();
        let orders = || recorded_behind_fence("orders");
        assert!(board.record(attempt, orders()).await?);
        assert_eq!(
            board.commit(attempt, Reached::default(), here()).await?,
            Committed::Done
        );
        let left = board.lifted("s").await?;
        assert_eq!(left, all_of(&["orders_later", "other"]));
        let later = fenced("orders_later", "shop.orders*", "one");
        assert_eq!(board.admit(later, false, 1).await?, Dropped::Nothing);
        assert_eq!(board.lifted("s").await?, all_of(&["other"]));

        // Back: the fences of all of them are lifted.
        let of = (attempt, Phase::None);
        let noted = board.note_lifted(of, "s", all_of(&["orders"]));
        assert!(noted.await?);
        let back = change("shop.orders*", Some("one"), None);
        let attempt = board.begin(&[back]).await?.unwrap();
        assert!(board.record(attempt, orders()).await?);
        assert_eq!(
            board.commit(attempt, Reached::default(), here()).await?,
            Committed::Done
        );
        assert_eq!(board.lifted("s").await?, all_of(&["other"]));
        // And that is known when they are.
        let of = (attempt, Phase::Closed);
        let noted = board.note_lifted(of, "s", all_of(&["orders"]));
        assert!(noted.await?);
        assert!(board.complete(attempt).await?);
        assert_eq!(board.lifted("s").await?, all_of(&["orders", "other"]));
        Ok::<(), anyhow::Error>(())
    })
}
