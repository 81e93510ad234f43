//! A tag of a PostgreSQL database that moves to each store and back, broken off after every step: the server is killed, and another program begins
//! anew.

use keywright_core::Cause;
use keywright_store::{
    Database, DatabaseSettings, Keys, MoveError, MoveProgress, MovedTo, Moving, RawDatabase,
};
use keywright_testkit::{PgServer, Result, Stop};

use crate::common::{
    Engine, IssuedLog, Schema, in_postgres, on_engines, open, runtime, segment, small_steps, tag,
};

on_engines!(a_move_that_breaks_off_anywhere_is_gone_on_with);

#[test]
fn on_mysql() -> Result<()> {
    a_move_that_breaks_off_anywhere_is_gone_on_with(Engine::MySql)
}

const STEPS_TO_FED: usize = 5;
const STEPS_TO_NATIVE: usize = 4;
/// After so many the store has named an heir.
const HEIR_NAMED: usize = 2;
/// After so many the heir has committed.
const RETURNED: usize = 3;

pub async fn moving(
    keys: Keys,
    server: &PgServer,
    to: MovedTo,
    lost: Option<u64>,
) -> Result<Moving> {
    let settings = DatabaseSettings::new(&RawDatabase {
        url: server.url("shop"),
        ..RawDatabase::default()
    })?;
    let database = Database::connect(&settings).await?;
    Ok(Moving::new(keys, database, tag("orders"), to, lost))
}

/// Takes so many steps, then gives up.
async fn some_steps(moving: &mut Moving, steps: usize) -> std::result::Result<(), MoveError> {
    for _ in 0..steps {
        assert!(matches!(moving.advance().await?, MoveProgress::Took(_)));
    }
    Ok(())
}

pub async fn all_steps(moving: &mut Moving) -> std::result::Result<usize, MoveError> {
    let mut steps = 0;
    while let MoveProgress::Took(_) = moving.advance().await? {
        steps += 1;
    }
    Ok(steps)
}

fn issue_natively(server: &PgServer, log: &IssuedLog) -> Result<()> {
    let drawn = in_postgres(
        server,
        "shop",
        "SELECT next_biz_id('orders') FROM generate_series(1, 150)",
    )?;
    for row in &drawn {
        log.add("the database", row[0].parse()?);
    }
    Ok(())
}

/// What others have of the store's tag; `None`: it is closed.
async fn issue_elsewhere(schema: &Schema, log: &IssuedLog) -> Result<Option<()>> {
    let keys = open(&schema.raw())?;
    match keys.source(&segment("orders"))?.take(30, true).await {
        Ok(taken) => log.add_all("others", &taken),
        Err(failure) => {
            assert_eq!(failure.cause(), Cause::TagMoved, "{failure}");
            return Ok(None);
        }
    }
    Ok(Some(()))
}

fn a_move_that_breaks_off_anywhere_is_gone_on_with(engine: Engine) -> Result<()> {
    let schema = Schema::of(engine, "kw_moves")?;
    let mut server = PgServer::builder().start()?;
    in_postgres(&server, "postgres", "CREATE DATABASE shop")?;
    in_postgres(&server, "shop", "CREATE EXTENSION keywright")?;
    let create = "SELECT keywright.create_tag('orders', step => 100, step_min => 100)";
    in_postgres(&server, "shop", create)?;
    let log = IssuedLog::default();
    let keys = || open(&schema.raw());
    runtime()?.block_on(async {
        keys()?.init().await?;
        keys()?
            .create_tag(&tag("orders"), &small_steps(100))
            .await?;
        Ok::<_, anyhow::Error>(())
    })?;
    for round in 0..=STEPS_TO_FED.max(STEPS_TO_NATIVE) {
        issue_natively(&server, &log)?;
        server.set("keywright.source", &format!("orders=fed:{}", round + 1));
        server.restart(Stop::Fast)?;
        assert!(issue_natively(&server, &log).is_err(), "it issues");
        runtime()?.block_on(async {
            let mut broken = moving(keys()?, &server, MovedTo::Fed, None).await?;
            some_steps(&mut broken, round.min(STEPS_TO_FED)).await?;
            Ok::<_, anyhow::Error>(())
        })?;
        server.kill9()?;
        server.start()?;
        runtime()?.block_on(async {
            let mut again = moving(keys()?, &server, MovedTo::Fed, None).await?;
            let steps = all_steps(&mut again).await?;
            // One at a time asks a database.
            drop(again);
            assert!((3..=STEPS_TO_FED).contains(&steps), "{steps}");
            assert!(issue_elsewhere(&schema, &log).await?.is_some());
            let mut broken = moving(keys()?, &server, MovedTo::Native, None).await?;
            some_steps(&mut broken, round.min(STEPS_TO_NATIVE)).await?;
            Ok::<_, anyhow::Error>(())
        })?;
        server.kill9()?;
        server.start()?;
        runtime()?.block_on(async {
            let is_closed = issue_elsewhere(&schema, &log).await?.is_none();
            assert_eq!(is_closed, round >= HEIR_NAMED, "after {round} steps");
            let mut again = moving(keys()?, &server, MovedTo::Native, None).await?;
            let done = all_steps(&mut again).await;
            drop(again);
            if (HEIR_NAMED..RETURNED).contains(&round) {
                let refused = done.expect_err("the heir is lost").to_string();
                assert!(refused.contains("is closed"), "{refused}");
                let mut by_word = moving(keys()?, &server, MovedTo::Native, Some(0)).await?;
                all_steps(&mut by_word).await?;
            } else {
                done?;
            }
            assert!(issue_elsewhere(&schema, &log).await?.is_none());
            Ok::<_, anyhow::Error>(())
        })?;
        issue_natively(&server, &log)?;
    }
    Ok(())
}
