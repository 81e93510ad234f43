//! A tag that is open nowhere: the store to which it moved was restored from a backup older than the move, and each store says that the other
//! has it. Rows are changed as the page says.

use keywright_store::Relocating;
use keywright_testkit::Result;

use crate::common::{Engine, IssuedLog, on_engines, runtime, small_steps, tag};
use crate::homes::{all_steps, takes};
use crate::two::Two;

on_engines!(a_tag_that_is_open_nowhere_is_opened_by_hand);

fn a_tag_that_is_open_nowhere_is_opened_by_hand(engine: Engine) -> Result<()> {
    for opens in ["far", "main"] {
        let two = Two::new(engine, &format!("kw_home_nowhere_{opens}"))?;
        let log = IssuedLog::default();
        runtime()?.block_on(async {
            let before = two.init("orders").await?;
            before.create_tag(&tag("orders"), &small_steps(100)).await?;
            takes(&before, "before the move", &log).await?;
            let columns = "heir, key_space_id, hi";
            let backup = two.main.sql(&format!(
                "SELECT {columns} FROM keywright_segment WHERE tag = 'orders'"
            ))?;
            let backup: [String; 3] = backup.concat().try_into().expect("three columns");
            let [heir, key_space, hi] = backup;
            let after = two.open("nothing")?;
            all_steps(&mut Relocating::new(after.clone(), tag("orders"), "main")).await?;
            takes(&after, "after the move", &log).await?;
            two.main.sql(&format!(
                "UPDATE keywright_segment SET heir = '{heir}', key_space_id = '{key_space}', hi = {hi} WHERE tag = 'orders'"
            ))?;

            let (pattern, row, other) = match opens {
                "far" => ("orders", &two.far, &two.main),
                _ => ("nothing", &two.main, &two.far),
            };
            let keys = two.open(pattern)?;
            let moved = all_steps(&mut Relocating::new(keys.clone(), tag("orders"), opens)).await;
            let started = takes(&two.open(pattern)?, "nobody", &log).await;
            let settled = keys.settle(&tag("orders")).await.map(drop);
            for refused in [moved.map(drop), started, settled] {
                let told = refused.unwrap_err().to_string();
                assert!(told.contains("docs/operations/several-stores.md"), "{told}");
            }

            let its = row.sql("SELECT key_space_id FROM keywright_segment WHERE tag = 'orders'")?;
            let its = its.concat().concat();
            other.sql(&format!(
                "UPDATE keywright_segment SET heir = 'store {its}' WHERE tag = 'orders'"
            ))?;
            row.sql(&format!(
                "UPDATE keywright_segment SET heir = NULL, hi = {} WHERE tag = 'orders'",
                log.max() + 1
            ))?;
            keys.settle(&tag("orders")).await?;
            takes(&two.open(pattern)?, "the next program", &log).await?;
            // It moves as any other.
            let (to, pattern) = match opens {
                "far" => ("main", "nothing"),
                _ => ("far", "orders"),
            };
            let keys = two.open(pattern)?;
            all_steps(&mut Relocating::new(keys.clone(), tag("orders"), to)).await?;
            takes(&keys, "after another move", &log).await?;
            Ok::<(), anyhow::Error>(())
        })?;
    }
    Ok(())
}
