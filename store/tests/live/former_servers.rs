//! Gaps behind servers of the store whose place another took, or that came back.

use std::collections::BTreeMap;
use std::time::Duration;

use keywright_store::Above;
use keywright_testkit::Result;

use crate::common::{Engine, Schema, on_engines, open, runtime, segment, small_steps, tag};

on_engines!(
    a_quiet_tag_leaves_out_what_may_be_missing,
    a_server_that_may_have_come_back_is_no_witness,
    a_reservation_dated_ahead_is_of_a_clock_that_differs,
    a_gap_ends_behind_the_last_failover,
    whichever_tag_is_first_the_server_before_is_recorded,
);

/// Other rows of the server before show how much may be missing here: not all that a quiet tag may have used since it was used last. The first reservation behind
/// a failover records that, whichever tag it is of.
fn a_quiet_tag_leaves_out_what_may_be_missing(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_quiet")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for name in ["busy", "quiet", "restored"] {
            keys.create_tag(&tag(name), &small_steps(8)).await?;
        }
        schema.sql(
            "UPDATE keywright_segment SET hi = 100, server = 'elsewhere', rate_per_s = 1000; \
             UPDATE keywright_segment SET reserved_ms = reserved_ms - 86400000 WHERE tag <> 'busy'",
        )?;
        keys.source(&segment("busy"))?.take(1, true).await?;
        let first = keys.source(&segment("quiet"))?.take(1, true).await?;
        let first = first.number(0).unwrap();
        // A minute and what the test takes, at twice the rate, which is rounded up.
        let some = 100 + 2 * 60_000..1_000_000;
        assert!(some.contains(&first), "{first}");
        // What a restore and a raise say of it is what is left out.
        let restored = keys
            .restored(Duration::from_secs(1), BTreeMap::new())
            .await?;
        let said = restored.tags.iter().find(|its| its.tag == "restored");
        let said = said.map(|its| its.next + its.gap).unwrap();
        assert!(some.contains(&said), "{said}");
        let above = Above::Tag {
            tag: tag("restored"),
            id: 200,
        };
        let raised = keys.advance(&above).await?;
        assert!(raised >= said, "{raised}, {said}");
        let keys = open(&schema.raw())?;
        let first = keys.source(&segment("restored"))?.take(1, true).await?;
        assert_eq!(first.number(0).unwrap(), raised);
        Ok(())
    })
}

/// Where a third server was written to since, the one that wrote the row may have come back, without what it had lost: its newest row says nothing then.
fn a_server_that_may_have_come_back_is_no_witness(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_no_witness")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for name in ["quiet", "busy", "other"] {
            keys.create_tag(&tag(name), &small_steps(8)).await?;
        }
        schema.sql(
            "UPDATE keywright_segment SET hi = 100, server = 'elsewhere', rate_per_s = 1000; \
             UPDATE keywright_segment SET reserved_ms = reserved_ms - 86400000 WHERE tag = 'quiet'; \
             UPDATE keywright_segment SET server = 'a third' WHERE tag = 'other'",
        )?;
        let quiet = keys.source(&segment("quiet"))?.take(1, true).await?;
        let quiet = quiet.number(0).unwrap();
        assert!(quiet > 100 + 2 * 1_000 * 86_400, "{quiet}");
        Ok(())
    })
}

/// A reservation that is dated ahead says that the clocks of the two servers differ: how long ago it was, nobody knows by less than what clocks may differ by.
fn a_reservation_dated_ahead_is_of_a_clock_that_differs(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_ahead")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for name in ["quiet", "busy"] {
            keys.create_tag(&tag(name), &small_steps(8)).await?;
        }
        schema.sql(
            "UPDATE keywright_segment SET hi = 100, server = 'elsewhere', rate_per_s = 1000, reserved_ms = reserved_ms + 300000; \
             UPDATE keywright_segment SET reserved_ms = reserved_ms - 86400000 WHERE tag = 'quiet'",
        )?;
        let quiet = keys.source(&segment("quiet"))?.take(1, true).await?;
        let quiet = quiet.number(0).unwrap();
        // Ten minutes, and one for the order of commits; not the day for which it was quiet.
        assert!((100 + 2 * 1_000 * 600..20_000_000).contains(&quiet), "{quiet}");
        let busy = keys.source(&segment("busy"))?.take(1, true).await?;
        let busy = busy.number(0).unwrap();
        assert!(busy > 100 + 2 * 1_000 * 600, "{busy}");
        Ok(())
    })
}

/// The gap ends an hour behind the failover, unless there may have been another: then ids that were given behind the first may be missing, too.
fn a_gap_ends_behind_the_last_failover(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_gap_end")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for name in ["busy", "first", "quiet", "still"] {
            keys.create_tag(&tag(name), &small_steps(8)).await?;
        }
        schema.sql(
            "UPDATE keywright_segment SET hi = 100, server = 'elsewhere', rate_per_s = 1000, reserved_ms = reserved_ms - 864000000; \
             UPDATE keywright_segment SET reserved_ms = reserved_ms - 864000000 WHERE tag <> 'busy'",
        )?;
        let first = async |name: &str| -> Result<u64> {
            let taken = keys.source(&segment(name))?.take(1, true).await?;
            Ok(taken.number(0).unwrap())
        };
        // As if this had been right behind the failover.
        first("first").await?;
        schema.sql("UPDATE keywright_former_server SET left_ms = newest_ms + 1000")?;
        let quiet = first("quiet").await?;
        assert!((100 + 2 * 1_000 * 3_600..20_000_000).contains(&quiet), "{quiet}");
        schema.sql(
            "UPDATE keywright_segment SET server = 'between', reserved_ms = reserved_ms + 2000 WHERE tag = 'busy'",
        )?;
        let still = first("still").await?;
        assert!(still > 100 + 2 * 1_000 * 86_400 * 9, "{still}");
        Ok(())
    })
}

/// Also where what is written first on its successor was made there: a server that comes back under its name is told by that alone.
fn whichever_tag_is_first_the_server_before_is_recorded(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_recorded")?;
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        for name in ["own", "before"] {
            keys.create_tag(&tag(name), &small_steps(8)).await?;
            keys.source(&segment(name))?.take(1, true).await?;
        }
        // It is to reserve nothing of them any more.
        keys.hand_back().await;
        let recorded = async || -> Result<u64> {
            let program = open(&schema.raw())?;
            program.source(&segment("own"))?.take(9, true).await?;
            schema.number("SELECT COUNT(*) FROM keywright_former_server")
        };
        // Neither a row that was put back nor a clock that was ahead says that another was written to.
        for before in [
            "server = 'gone back behind 7'",
            "server = 'elsewhere', reserved_ms = reserved_ms + 86400000",
        ] {
            schema.sql(&format!("UPDATE keywright_segment SET {before} WHERE tag = 'before'"))?;
            assert_eq!(recorded().await?, 0, "{before}");
        }
        schema.sql("UPDATE keywright_segment SET reserved_ms = reserved_ms - 86400000 WHERE tag = 'before'")?;
        assert_eq!(recorded().await?, 1);
        assert_eq!(recorded().await?, 1);
        let newest = "SELECT COUNT(*) FROM keywright_former_server, keywright_segment \
                      WHERE keywright_former_server.server = 'elsewhere' AND newest_ms = reserved_ms AND tag = 'before'";
        assert_eq!(schema.number(newest)?, 1);
        Ok(())
    })
}

/// The server that comes back under its name may be made anew from the one that took its place, which never had its last reservations.
#[test]
fn a_server_that_comes_back_leaves_out_what_it_may_have_lost() -> Result<()> {
    for engine in [Engine::MariaDb, Engine::Postgres, Engine::File] {
        let schema = Schema::of(engine, "kw_back")?;
        runtime()?.block_on(async {
            let keys = open(&schema.raw())?;
            keys.init().await?;
            for name in ["busy", "quiet"] {
                keys.create_tag(&tag(name), &small_steps(8)).await?;
                keys.source(&segment(name))?.take(1, true).await?;
            }
            // As the other server's first reservation, of the busy tag, has left it.
            schema.sql(
                "UPDATE keywright_segment SET hi = 100, rate_per_s = 10, reserved_ms = reserved_ms - 86400000; \
                 INSERT INTO keywright_former_server (server, newest_ms, left_ms) \
                 SELECT server, reserved_ms + 500, reserved_ms + 1000 FROM keywright_segment WHERE tag = 'quiet'; \
                 UPDATE keywright_segment SET server = 'elsewhere', reserved_ms = reserved_ms + 2000 WHERE tag = 'busy'",
            )?;
            let again = open(&schema.raw())?;
            let first = async |name: &str| -> Result<u64> {
                let taken = again.source(&segment(name))?.take(1, true).await?;
                Ok(taken.number(0).unwrap())
            };
            // No row of the other is left behind this one.
            let busy = first("busy").await?;
            assert!(busy > 100 + 2 * 10 * 86_000, "{busy}");
            let quiet = first("quiet").await?;
            assert!(quiet > 100 + 2 * 10 * 86_000, "{quiet}");
            // Once: what it reserves now is of another life.
            let taken_on = async |from: u64| -> Result<u64> {
                again.source(&segment("quiet"))?.take(from, true).await?;
                schema.number("SELECT hi FROM keywright_segment WHERE tag = 'quiet'")
            };
            let hi = taken_on(9).await?;
            assert!(hi < quiet + 1_000, "{hi} {quiet}");
            // Also by a clock that was ahead then and is right now.
            schema.sql("UPDATE keywright_former_server SET newest_ms = newest_ms + 86400000 + 300000")?;
            let ahead = taken_on(50).await?;
            assert!(ahead > hi + 1_000, "{hi} {ahead}");
            let last = taken_on(50).await?;
            assert!(last < ahead + 1_000, "{ahead} {last}");
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}
