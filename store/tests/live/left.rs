//! A tag that tables went over to and left again: native ids go on where its ids ended, so it comes to no other store and no database.

use keywright_core::Cause;
use keywright_store::switch::{Committed, Reached, Switchboard};
use keywright_store::{Keys, MoveError, MovedTo, Relocating};
use keywright_testkit::{PgServer, Result, Stop};

use crate::common::{
    Engine, IssuedLog, Schema, in_postgres, on_engines, open, runtime, small_steps, tag,
};
use crate::homes::{all_steps, some_steps, takes};
use crate::moves::{self, moving};
use crate::switches::{change, generation, here, in_force};
use crate::two::Two;

on_engines!(
    a_tag_that_tables_have_left_stays_in_its_store,
    tables_that_leave_a_tag_under_way_end_its_move,
    a_tag_that_tables_have_left_is_made_nowhere_else,
    who_rolls_back_by_hand_is_heard_of_in_the_first_store,
);

/// The switch is made in the store without tags, which is on the engine here.
fn two_stores(engine: Engine, name: &str) -> Result<Two> {
    Ok(Two {
        main: Schema::of(engine, name)?,
        far: Schema::of(Engine::File, name)?,
    })
}

async fn tables_go_over(keys: &Keys) -> Result<()> {
    let board = Switchboard::new(keys);
    let begun = board.begin(&[change(None, Some("orders"))]).await?;
    let attempt = begun.expect("nothing is under way");
    let committed = board.commit(attempt, Reached::above(5_000), here()).await?;
    assert_eq!(committed, Committed::Done);
    Ok(())
}

async fn tables_leave(keys: &Keys) -> Result<()> {
    let board = Switchboard::new(keys);
    let begun = board.begin(&[change(Some("orders"), None)]).await?;
    let attempt = begun.expect("the rule is in force, and nothing is under way");
    let committed = board.commit(attempt, Reached::default(), here()).await?;
    assert_eq!(committed, Committed::Done);
    assert!(board.complete(attempt).await?);
    Ok(())
}

fn a_tag_that_tables_have_left_stays_in_its_store(engine: Engine) -> Result<()> {
    let two = two_stores(engine, "kw_left_moves")?;
    runtime()?.block_on(async {
        let keys = two.init("elsewhere.*").await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        tables_go_over(&keys).await?;
        tables_leave(&keys).await?;
        let new = two.open("orders")?;
        let rows = "SELECT heir, key_space_id, hi FROM keywright_segment WHERE tag = 'orders'";
        let before = two.far.sql(rows)?;
        let moved = all_steps(&mut Relocating::new(new.clone(), tag("orders"), "far")).await;
        let refused = moved.unwrap_err();
        assert_eq!(refused.cause(), Cause::KeysLeft, "{refused}");
        let told = refused.to_string();
        assert!(told.contains("tables have left tag \"orders\""), "{told}");
        assert_eq!(two.far.sql(rows)?, before, "nothing was begun");
        let taken = takes(&two.open("orders")?, "nobody", &IssuedLog::default()).await;
        assert_eq!(taken.unwrap_err().cause(), Cause::TagMoved);

        // Once they have its keys again it moves as any other.
        tables_go_over(&keys).await?;
        all_steps(&mut Relocating::new(new.clone(), tag("orders"), "far")).await?;
        takes(&new, "after the move", &IssuedLog::default()).await?;
        Ok(())
    })
}

/// They leave it when the move has looked, and before it closes the row.
fn tables_that_leave_a_tag_under_way_end_its_move(engine: Engine) -> Result<()> {
    let two = two_stores(engine, "kw_left_under_way")?;
    runtime()?.block_on(async {
        let keys = two.init("elsewhere.*").await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        tables_go_over(&keys).await?;
        let new = two.open("orders")?;
        let mut moving = Relocating::new(new.clone(), tag("orders"), "far");
        // Looks, prepares.
        some_steps(&mut moving, 2).await?;
        tables_leave(&keys).await?;
        let refused = moving.advance().await.unwrap_err();
        assert_eq!(refused.cause(), Cause::KeysLeft, "{refused}");
        let open = "SELECT COUNT(*) FROM keywright_segment WHERE tag = 'orders' AND heir IS NULL";
        assert_eq!((two.main.number(open)?, two.far.number(open)?), (1, 0));

        tables_go_over(&keys).await?;
        all_steps(&mut moving).await?;
        takes(&new, "after the move", &IssuedLog::default()).await?;
        Ok(())
    })
}

/// It was dropped, and the configuration says another store.
fn a_tag_that_tables_have_left_is_made_nowhere_else(engine: Engine) -> Result<()> {
    let two = two_stores(engine, "kw_left_dropped")?;
    runtime()?.block_on(async {
        let keys = two.init("elsewhere.*").await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        tables_go_over(&keys).await?;
        tables_leave(&keys).await?;
        keys.drop_tag(&tag("orders")).await?;
        let new = two.open("orders")?;
        // Neither where it is closed, nor where a row of it is open, nor where there is none.
        for far in [
            "UPDATE keywright_segment SET step = 100",
            "UPDATE keywright_segment SET heir = NULL",
            "DELETE FROM keywright_segment",
        ] {
            two.far.sql(&format!("{far} WHERE tag = 'orders'"))?;
            let made = new.create_tag(&tag("orders"), &small_steps(100)).await;
            let settled = new.settle(&tag("orders")).await.map(drop);
            for refused in [made, settled] {
                let refused = refused.unwrap_err();
                assert_eq!(refused.cause(), Cause::KeysLeft, "{refused}");
            }
            let taken = takes(&two.open("orders")?, "nobody", &IssuedLog::default()).await;
            assert!(taken.is_err(), "{far}");
        }
        // In its own store it is made anew, and key ports go on to hear that tables have left it.
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        let standing = Switchboard::new(&keys).standing().await?;
        assert_eq!(in_force(&standing), None);
        assert_eq!(generation(&standing, "orders"), Some(2));
        Ok(())
    })
}

/// The tag has moved while the rule was in force, which no switch rolls back then. What `release` prints names the store that key ports hear.
fn who_rolls_back_by_hand_is_heard_of_in_the_first_store(engine: Engine) -> Result<()> {
    let two = two_stores(engine, "kw_left_by_hand")?;
    runtime()?.block_on(async {
        let keys = two.init("elsewhere.*").await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        tables_go_over(&keys).await?;
        let new = two.open("orders")?;
        all_steps(&mut Relocating::new(new.clone(), tag("orders"), "far")).await?;
        two.main.sql(
            "UPDATE keywright_rule SET key_space = NULL WHERE table_pattern = 'shop.orders' AND column_name = 'id'",
        )?;
        all_steps(&mut Relocating::new(keys.clone(), tag("orders"), "main")).await?;
        let standing = Switchboard::new(&keys).standing().await?;
        assert_eq!(in_force(&standing), None);
        assert_eq!(generation(&standing, "orders"), Some(1));
        let moved = all_steps(&mut Relocating::new(new, tag("orders"), "far")).await;
        assert_eq!(moved.unwrap_err().cause(), Cause::KeysLeft);
        Ok(())
    })
}

#[test]
fn a_tag_that_tables_have_left_goes_to_no_database() -> Result<()> {
    let schema = Schema::of(Engine::File, "kw_left_native")?;
    let mut server = PgServer::builder().start()?;
    in_postgres(&server, "postgres", "CREATE DATABASE shop")?;
    in_postgres(&server, "shop", "CREATE EXTENSION keywright")?;
    let create = "SELECT keywright.create_tag('orders', step => 100, step_min => 100)";
    in_postgres(&server, "shop", create)?;
    server.set("keywright.source", "orders=fed:1");
    server.restart(Stop::Fast)?;
    let heir = "SELECT heir FROM keywright_segment WHERE tag = 'orders' AND heir IS NOT NULL";
    runtime()?.block_on(async {
        let keys = open(&schema.raw())?;
        keys.init().await?;
        keys.create_tag(&tag("orders"), &small_steps(100)).await?;
        moves::all_steps(&mut moving(keys.clone(), &server, MovedTo::Fed, None).await?).await?;
        tables_go_over(&keys).await?;
        tables_leave(&keys).await?;
        for to in [MovedTo::Native, MovedTo::Fed] {
            let mut again = moving(keys.clone(), &server, to, None).await?;
            let refused = moves::all_steps(&mut again).await.unwrap_err();
            assert!(
                matches!(&refused, MoveError::Store(failure) if failure.cause() == Cause::KeysLeft),
                "{refused}"
            );
        }
        assert_eq!(schema.sql(heir)?.len(), 0, "it has no heir");
        Ok(())
    })
}
