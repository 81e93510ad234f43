//! An older state that is put back while the server runs and connections stay: programs that have seen more notice it, though nobody wants anything of
//! them, and tell those that have seen less.

use keywright_core::Cause;
use keywright_testkit::Result;

use crate::common::{
    Engine, IssuedLog, Schema, on_engines, open, runtime, segment, small_steps, tag, until,
};
use crate::rewound::{take, take_until_refused};

on_engines!(a_tag_that_is_put_back_is_noticed_by_who_wants_nothing);

#[test]
fn on_mysql() -> Result<()> {
    a_tag_that_is_put_back_is_noticed_by_who_wants_nothing(Engine::MySql)
}

fn a_tag_that_is_put_back_is_noticed_by_who_wants_nothing(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_noticed")?;
    runtime()?.block_on(async {
        let log = IssuedLog::default();
        let first = open(&schema.raw())?;
        first.init().await?;
        first.create_tag(&tag("orders"), &small_steps(100)).await?;
        drop(first);
        let of_orders = |what: &str| {
            schema.number(&format!(
                "SELECT {what} FROM keywright_segment WHERE tag = 'orders'"
            ))
        };
        let old = of_orders("hi")?;
        let idle = open(&schema.raw())?;
        take(&idle.source(&segment("orders"))?, &log, "idle", 3).await?;
        assert!(of_orders("hi")? > old);
        schema.sql(&format!(
            "UPDATE keywright_segment SET hi = {old} WHERE tag = 'orders'"
        ))?;
        until("the tag's row to tell it", || {
            of_orders("CASE WHEN server LIKE 'gone back%' THEN 1 ELSE 0 END")
                .is_ok_and(|is_told| is_told == 1)
        })
        .await;
        let newcomer = open(&schema.raw())?;
        let source = newcomer.source(&segment("orders"))?;
        let refused = take_until_refused(&source, &log, "newcomer").await;
        assert_eq!(refused.cause(), Cause::BoundDamaged, "{refused}");
        drop(idle);
        Ok(())
    })
}

/// A row that nobody can read keeps nobody from being told of the others.
#[test]
fn a_damaged_row_does_not_hide_that_others_went_back() -> Result<()> {
    for engine in [Engine::Postgres, Engine::File] {
        let schema = Schema::of(engine, "kw_damaged")?;
        runtime()?.block_on(async {
            let idle = open(&schema.raw())?;
            idle.init().await?;
            for name in ["a", "b", "c"] {
                idle.create_tag(&tag(name), &small_steps(100)).await?;
                let log = IssuedLog::default();
                take(&idle.source(&segment(name))?, &log, name, 3).await?;
            }
            schema.sql("UPDATE keywright_segment SET hi = 1")?;
            schema.sql("UPDATE keywright_segment SET cover_s = -1 WHERE tag = 'b'")?;
            until("the other rows to tell it", || {
                let told = "SELECT COUNT(*) FROM keywright_segment WHERE server LIKE 'gone back%'";
                schema.number(told).is_ok_and(|told| told == 2)
            })
            .await;
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}
