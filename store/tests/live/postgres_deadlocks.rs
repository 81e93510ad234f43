//! Somebody else's transaction and the program's wait for each other in a PostgreSQL server, which undoes the program's: it is run again.

use keywright_core::Step;
use keywright_store::{KeySpec, Keys, TagOptions};
use keywright_testkit::{PgServer, Result, WAIT_MAX, wait_until};
use tokio::runtime::Runtime;

use crate::common::{in_postgres, open, raw_postgres, runtime, segment, tag};
use crate::postgres_server::own_server;

/// A server that looks for a deadlock when the program has waited for a lock for so long: somebody else waits, too, by then.
fn server() -> Result<PgServer> {
    let server = own_server()?;
    in_postgres(
        &server,
        "postgres",
        "ALTER DATABASE keywright SET deadlock_timeout = '3s'",
    )?;
    Ok(server)
}

/// The program stops, and needs what somebody else has locked by `held`, who then runs `wanted` and needs what the program has locked.
fn stop_in_a_deadlock(
    (server, runtime): (&PgServer, &Runtime),
    keys: Keys,
    held: &str,
    wanted: &str,
) -> Result<()> {
    let mut client = server.client("keywright")?;
    let mut other = client.transaction()?;
    // The server undoes the first that has waited for so long.
    other.batch_execute("SET LOCAL deadlock_timeout = '1h'")?;
    other.batch_execute(held)?;
    let stopping = runtime.spawn(async move { keys.hand_back().await });
    // One that has locked nothing yet has no number.
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'keywright' \
                   AND wait_event_type = 'Lock' AND backend_xid IS NOT NULL";
    wait_until("the program to wait", WAIT_MAX, || {
        Ok(in_postgres(server, "keywright", waiting)? != [["0"]])
    })?;
    other.batch_execute(wanted)?;
    other.commit()?;
    runtime.block_on(stopping)?;
    assert!(server.log_contains("deadlock detected")?, "there was none");
    assert!(
        !server.log_contains("there is no transaction in progress")?,
        "what the server had undone was undone once more"
    );
    Ok(())
}

#[test]
fn a_deadlock_at_the_stop_loses_no_rests() -> Result<()> {
    let server = server()?;
    let runtime = runtime()?;
    let keys = open(&raw_postgres(&server, "keywright"))?;
    runtime.block_on(async {
        keys.init().await?;
        for name in ["a", "b"] {
            let options = TagOptions::with_step(Step::new(1_000)?);
            keys.create_tag(&tag(name), &options).await?;
            keys.source(&segment(name))?.take(1, true).await?;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    let lock =
        |name: &str| format!("UPDATE keywright_segment SET description = 'x' WHERE tag = '{name}'");
    stop_in_a_deadlock((&server, &runtime), keys, &lock("b"), &lock("a"))?;
    let returned = "SELECT count(*) FROM keywright_returned";
    assert_eq!(in_postgres(&server, "keywright", returned)?, [["2"]]);
    Ok(())
}

/// What is a transaction of its own has ended when the program hears of the deadlock.
#[test]
fn a_deadlock_at_the_stop_keeps_no_lease() -> Result<()> {
    let server = server()?;
    let runtime = runtime()?;
    let keys = open(&raw_postgres(&server, "keywright"))?;
    runtime.block_on(async {
        keys.init().await?;
        keys.source(&KeySpec::Snowflake)?.take(1, true).await?;
        Ok::<_, anyhow::Error>(())
    })?;
    in_postgres(
        &server,
        "keywright",
        "CREATE TABLE released (count bigint); INSERT INTO released VALUES (0);
         CREATE FUNCTION count_released() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN UPDATE released SET count = count + 1; RETURN NULL; END $$;
         CREATE TRIGGER count_released AFTER UPDATE ON keywright_worker FOR EACH ROW
             WHEN (NEW.owner IS NULL) EXECUTE FUNCTION count_released()",
    )?;
    let held = "UPDATE released SET count = 0";
    let wanted = "UPDATE keywright_worker SET holder = holder WHERE owner IS NOT NULL";
    stop_in_a_deadlock((&server, &runtime), keys, held, wanted)?;
    let leased = "SELECT count(*) FROM keywright_worker WHERE owner IS NOT NULL";
    assert_eq!(in_postgres(&server, "keywright", leased)?, [["0"]]);
    Ok(())
}
