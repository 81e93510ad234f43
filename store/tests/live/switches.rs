//! The switch as the store keeps it: who may do what to an attempt, and what is in force afterwards.

use keywright_store::switch::{
    Change, CommitRefusal, Committed, KeySpace, NativeInserts, Phase, Reached, Recorded, RuleName,
    Standing, Switchboard,
};
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, open, runtime, segment, small_steps, tag};

on_engines!(
    an_attempt_that_was_ended_can_do_nothing_more,
    who_leaves_gives_up_what_it_has_begun,
    who_was_killed_long_ago_is_forgotten_by_whoever_begins,
    what_cannot_be_known_is_not_committed,
    above_what_counters_went_on_is_forgotten_of_rules_that_have_left,
);

/// `snowflake`, or a tag.
pub(crate) fn space(name: &str) -> KeySpace {
    match name {
        "snowflake" => KeySpace::Snowflake,
        name => KeySpace::Tag(tag(name)),
    }
}

pub(crate) fn change(from: Option<&str>, to: Option<&str>) -> Change {
    Change {
        rule: RuleName {
            tables: "shop.orders".to_owned(),
            column: "id".to_owned(),
        },
        from: from.map(space),
        to: to.map(space),
    }
}

pub(crate) fn here() -> Vec<String> {
    vec!["s".to_owned()]
}

pub(crate) fn recorded(table: &str, counter: u64) -> Recorded {
    Recorded {
        server: "s".to_owned(),
        schema: "shop".to_owned(),
        table: table.to_owned(),
        counter,
        was_fenced: false,
    }
}

pub(crate) fn in_force(standing: &Standing) -> Option<KeySpace> {
    standing.rules.first().and_then(|rule| rule.keys.clone())
}

pub(crate) fn generation(standing: &Standing, of: &str) -> Option<u64> {
    let mut spaces = standing.generations.iter();
    spaces
        .find(|(keys, _)| *keys == space(of))
        .map(|(_, generation)| *generation)
}

#[test]
fn tables_go_over_to_a_tag_to_another_and_back() -> Result<()> {
    for engine in Engine::ALL {
        let schema = Schema::of(engine, "kw_switches")?;
        runtime()?.block_on(async {
            let keys = open(&schema.raw())?;
            keys.init().await?;
            keys.create_tag(&tag("a"), &small_steps(100)).await?;
            keys.create_tag(&tag("b"), &small_steps(100)).await?;
            let source = keys.source(&segment("a"))?;
            source.take(1, true).await?;
            let board = Switchboard::new(&keys);
            assert_eq!(board.standing().await?.phase, Phase::None);

            let on = board.begin(&[change(None, Some("a"))]).await?.unwrap();
            let standing = board.standing().await?;
            assert_eq!((standing.phase, standing.attempt), (Phase::Holding, on));
            assert_eq!(standing.leader.as_deref(), Some(board.program()));
            assert_eq!(standing.rules[0].next, Some(Some(space("a"))));
            assert!(board.begin(&[change(None, Some("a"))]).await?.is_none());
            board.beat(Some(on)).await?;
            assert_eq!(board.standing().await?.peers[0].held, Some(on));
            assert!(board.record(on, recorded("orders", 5_000)).await?);
            assert!(board.record(on, recorded("orders_2", 70)).await?);
            assert_eq!(board.recorded(on).await?.len(), 2);
            assert_eq!(
                board.commit(on, Reached::above(4_000), here()).await?,
                Committed::Done
            );
            let standing = board.standing().await?;
            assert_eq!(standing.phase, Phase::None);
            assert_eq!(in_force(&standing), Some(space("a")));
            assert_eq!(generation(&standing, "a"), Some(1));
            assert_eq!(board.recorded(on).await?, []);
            keys.follow(&space("a"), 1);
            assert_eq!(source.take(1, true).await?.number(0), Some(5_000));

            // Over, above all that the old tag may have issued.
            let over = board.begin(&[change(Some("a"), Some("b"))]).await?.unwrap();
            let hi = schema.number("SELECT hi FROM keywright_segment WHERE tag = 'a'")?;
            assert_eq!(
                board.commit(over, Reached::default(), here()).await?,
                Committed::Done
            );
            let standing = board.standing().await?;
            assert_eq!(in_force(&standing), Some(space("b")));
            assert_eq!(generation(&standing, "a"), Some(2));
            assert_eq!(generation(&standing, "b"), Some(1));
            let next = schema.number("SELECT hi FROM keywright_segment WHERE tag = 'b'")?;
            assert_eq!(next, hi);

            // Back, and from the commit on only forward.
            let off = board.begin(&[change(Some("b"), None)]).await?.unwrap();
            assert_eq!(
                board.commit(off, Reached::default(), here()).await?,
                Committed::Done
            );
            let standing = board.standing().await?;
            assert_eq!(standing.phase, Phase::Closed);
            assert_eq!(standing.rules[0].above, Some(next));
            assert_eq!(generation(&standing, "b"), Some(2));
            assert!(!board.end(off).await? && !board.release(off, None).await?);
            assert!(board.is_in(off, Phase::Closed).await?);
            assert!(board.complete(off).await? && !board.complete(off).await?);
            let standing = board.standing().await?;
            assert_eq!((standing.phase, in_force(&standing)), (Phase::None, None));
            board.leave().await?;
            assert_eq!(board.standing().await?.peers, []);
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}

/// Who comes late finds that the attempt is over, whatever it wants of it.
fn an_attempt_that_was_ended_can_do_nothing_more(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_switch_ended")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("a"), &small_steps(100)).await?;
        let (leads, ends) = (Switchboard::new(&keys), Switchboard::new(&keys));
        let first = leads.begin(&[change(None, Some("a"))]).await?.unwrap();
        assert!(leads.record(first, recorded("orders", 10)).await?);
        // Behind its own fence, after a failure.
        let again = Recorded {
            was_fenced: true,
            ..recorded("orders", 3)
        };
        assert!(leads.record(first, again).await?);
        assert!(ends.end(first).await? && !ends.end(first).await?);
        assert!(!leads.record(first, recorded("orders_2", 10)).await?);
        assert_eq!(
            leads.commit(first, Reached::default(), here()).await?,
            Committed::Over
        );
        assert!(leads.begin(&[change(None, Some("a"))]).await?.is_none());
        assert_eq!(ends.recorded(first).await?, [recorded("orders", 10)]);
        assert!(ends.is_in(first, Phase::Ending).await?);
        assert!(ends.release(first, None).await?);
        assert!(!leads.is_in(first, Phase::Ending).await?);

        // Another one of the same kind is not taken for it.
        let second = ends.begin(&[change(None, Some("a"))]).await?.unwrap();
        assert_eq!(
            leads.commit(first, Reached::default(), here()).await?,
            Committed::Over
        );
        assert!(!leads.end(first).await? && !leads.is_in(first, Phase::Holding).await?);
        assert_eq!(
            ends.commit(second, Reached::default(), here()).await?,
            Committed::Done
        );
        let standing = leads.standing().await?;
        assert_eq!(
            (in_force(&standing), generation(&standing, "a")),
            (Some(space("a")), Some(1))
        );
        Ok(())
    })
}

/// Not what others have begun, and not what has only one way to go.
fn who_leaves_gives_up_what_it_has_begun(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_switch_left")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("a"), &small_steps(100)).await?;
        let (leads, other) = (Switchboard::new(&keys), Switchboard::new(&keys));
        for board in [&leads, &other] {
            board.beat(None).await?;
        }
        let first = leads.begin(&[change(None, Some("a"))]).await?.unwrap();
        assert!(leads.record(first, recorded("orders", 10)).await?);
        other.leave().await?;
        assert!(leads.is_in(first, Phase::Holding).await?);
        leads.leave().await?;
        let standing = other.standing().await?;
        assert_eq!((standing.phase, standing.attempt), (Phase::Ending, first));
        assert_eq!(standing.peers, []);
        assert!(!leads.record(first, recorded("orders_2", 10)).await?);
        assert_eq!(
            leads.commit(first, Reached::default(), here()).await?,
            Committed::Over
        );
        assert_eq!(other.recorded(first).await?, [recorded("orders", 10)]);
        assert!(other.release(first, None).await?);

        let on = leads.begin(&[change(None, Some("a"))]).await?.unwrap();
        assert_eq!(
            leads.commit(on, Reached::default(), here()).await?,
            Committed::Done
        );
        let off = leads.begin(&[change(Some("a"), None)]).await?.unwrap();
        assert_eq!(
            leads.commit(off, Reached::default(), here()).await?,
            Committed::Done
        );
        leads.leave().await?;
        assert_eq!(other.standing().await?.phase, Phase::Closed);
        Ok(())
    })
}

fn who_was_killed_long_ago_is_forgotten_by_whoever_begins(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_switch_killed")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        let board = || Switchboard::new(&keys);
        let (killed, serves, begins) = (board(), board(), board());
        killed.beat(None).await?;
        schema.sql(&format!(
            "UPDATE keywright_program SET seen_at = {}",
            schema.long_ago()
        ))?;
        for board in [&serves, &begins] {
            board.beat(None).await?;
        }
        let mut there = vec![serves.program(), begins.program()];
        there.sort_unstable();
        let standing = begins.standing().await?;
        let known: Vec<&str> = standing
            .peers
            .iter()
            .map(|peer| peer.program.as_str())
            .collect();
        assert_eq!(known, there);
        Ok(())
    })
}

fn what_cannot_be_known_is_not_committed(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_switch_refused")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("a"), &small_steps(100)).await?;
        let board = Switchboard::new(&keys);
        let both = [change(None, Some("a")), change(Some("a"), None)];
        assert!(board.begin(&both).await.is_err() && board.begin(&[]).await.is_err());
        assert!(
            board.begin(&[change(Some("a"), None)]).await?.is_none(),
            "it is native"
        );

        let attempt = board.begin(&[change(None, Some("b"))]).await?.unwrap();
        assert_eq!(
            board.commit(attempt, Reached::default(), here()).await?,
            Committed::Unknown(space("b"))
        );
        assert!(board.end(attempt).await? && board.release(attempt, None).await?);

        schema.sql("UPDATE keywright_segment SET id_max = 1000")?;
        let attempt = board.begin(&[change(None, Some("a"))]).await?.unwrap();
        assert!(board.record(attempt, recorded("orders", 1_001)).await?);
        let refused = Committed::Refused(space("a"), CommitRefusal::Exhausted(1_001));
        assert_eq!(
            board.commit(attempt, Reached::default(), here()).await?,
            refused
        );
        assert!(board.end(attempt).await? && board.release(attempt, None).await?);
        assert_eq!(
            generation(&board.standing().await?, "a"),
            Some(0),
            "nothing was written"
        );

        let attempt = board.begin(&[change(None, Some("a"))]).await?.unwrap();
        assert_eq!(
            board.commit(attempt, Reached::default(), here()).await?,
            Committed::Done
        );
        // A promoted replica may lack what its original reserved last.
        schema.sql("UPDATE keywright_segment SET server = 'another'")?;
        let attempt = board.begin(&[change(Some("a"), None)]).await?.unwrap();
        let refused = Committed::Refused(space("a"), CommitRefusal::Foreign);
        assert_eq!(
            board.commit(attempt, Reached::default(), here()).await?,
            refused
        );
        Ok(())
    })
}

/// Their tables have keys of another kind. On the way back it is needed to the end.
fn above_what_counters_went_on_is_forgotten_of_rules_that_have_left(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_switch_forgets")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("a"), &small_steps(100)).await?;
        let board = Switchboard::new(&keys);
        let left = || vec![change(None, None).rule];
        let above = |standing: &Standing| standing.rules.first().and_then(|rule| rule.above);
        let on = board.begin(&[change(None, Some("a"))]).await?.unwrap();
        assert_eq!(
            board.commit(on, Reached::above(4_000), here()).await?,
            Committed::Done
        );
        board.forget_above(left()).await?;
        assert_eq!(in_force(&board.standing().await?), Some(space("a")));
        let off = board.begin(&[change(Some("a"), None)]).await?.unwrap();
        assert_eq!(
            board.commit(off, Reached::default(), here()).await?,
            Committed::Done
        );
        let closed = above(&board.standing().await?);
        assert!(closed >= Some(4_000), "{closed:?}");
        board.forget_above(left()).await?;
        assert_eq!(above(&board.standing().await?), closed);
        assert!(board.complete(off).await?);

        let other = RuleName {
            tables: "shop.bills".to_owned(),
            column: "id".to_owned(),
        };
        board.forget_above(vec![other]).await?;
        let native = board.standing().await?;
        assert_eq!(above(&native), closed);
        board.forget_above(left()).await?;
        let standing = board.standing().await?;
        assert_eq!((above(&standing), in_force(&standing)), (None, None));
        assert_eq!(generation(&standing, "a"), generation(&native, "a"));
        Ok(())
    })
}

#[test]
fn programs_hear_what_went_by_the_others() -> Result<()> {
    for engine in Engine::ALL {
        let schema = Schema::of(engine, "kw_native")?;
        runtime()?.block_on(async {
            let keys = open(&schema.raw())?;
            keys.init().await?;
            let (one, other) = (Switchboard::new(&keys), Switchboard::new(&keys));
            let rule = || change(None, None).rule;
            let native_inserts = |ids, unknown| NativeInserts { ids, unknown };
            let noted = |board: &Switchboard, ids| {
                let board = board.clone();
                async move {
                    board
                        .note_native(move || vec![(rule(), native_inserts(ids, 1))])
                        .await
                }
            };
            let first = noted(&one, 10).await?;
            assert_eq!(first.reports, []);
            let peer_reports = noted(&other, 5).await?;
            assert_eq!(peer_reports.reports.len(), 1);
            assert_eq!(peer_reports.reports[0].program, one.program());
            assert_eq!(peer_reports.reports[0].rule, rule());
            assert_eq!(
                peer_reports.reports[0].native_inserts,
                native_inserts(10, 1)
            );
            assert_eq!(peer_reports.reports[0].at_ms, first.at_ms);
            assert!(peer_reports.at_ms >= first.at_ms);
            noted(&one, 12).await?;
            let peer_reports = noted(&other, 5).await?;
            assert_eq!(peer_reports.reports.len(), 1);
            assert_eq!(
                peer_reports.reports[0].native_inserts,
                native_inserts(12, 1)
            );
            // Long gone.
            schema.sql(&format!(
                "UPDATE keywright_native SET noted_at = {}",
                schema.long_ago()
            ))?;
            assert_eq!(noted(&other, 6).await?.reports, []);
            assert_eq!(schema.number("SELECT COUNT(*) FROM keywright_native")?, 1);
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}
