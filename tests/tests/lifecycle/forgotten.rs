//! Transactions that ended so long ago that the server has cut them off its log of commits: nothing tells any more whether they committed.

use keywright_testkit::{PgServer, Result, query_i64, query_text};
use postgres::Client;

use super::closings::CHANGE;

const NEXT: &str = "SELECT next_biz_id('orders')";

/// Takes 100,000 transaction numbers.
const BURN: &str = "DO $$ BEGIN \
    FOR n IN 1..100000 LOOP \
        BEGIN PERFORM pg_logical_emit_message(true, 'number', 'taken'::text); \
        EXCEPTION WHEN division_by_zero THEN NULL; END; \
    END LOOP; \
    END $$";

/// A driver's last query keeps its snapshot in an open transaction, until another statement takes its place: the server would remember for that.
const LET_GO: &str = "SELECT 1";

/// With so many the numbers go beyond 2^20: the server cuts whole files off its log of commits, each of so many transactions.
const BURNS: usize = 11;

/// Nobody else holds a snapshot there, for which it would remember.
fn quiet_server() -> Result<PgServer> {
    PgServer::builder().setting("autovacuum", "off").start()
}

/// Has the server forget what became of all transactions that have ended, among them that one.
fn forget_transactions(server: &PgServer, number: &str) -> Result<()> {
    let mut admin = server.client("postgres")?;
    for _ in 0..BURNS {
        admin.batch_execute(BURN)?;
    }
    admin.batch_execute("ALTER DATABASE template0 ALLOW_CONNECTIONS true")?;
    for database in ["template0", "template1", "postgres"] {
        server.client(database)?.batch_execute("VACUUM (FREEZE)")?;
    }
    let status = format!("SELECT coalesce(pg_xact_status('{number}'), 'forgotten')");
    assert_eq!(query_text(&mut admin, &status)?, "forgotten");
    Ok(())
}

/// Changes the tag in a transaction that ends so, and returns its number.
fn change(changer: &mut Client, end: &str) -> Result<String> {
    changer.batch_execute(&format!("BEGIN; {CHANGE}"))?;
    let number = query_text(changer, "SELECT pg_current_xact_id()::text")?;
    changer.batch_execute(end)?;
    Ok(number)
}

/// Who drew before it, in a transaction that is still open, issues none of the ids that the change left to other databases.
#[test]
fn a_change_that_the_server_has_forgotten_holds_for_everybody() -> Result<()> {
    let server = quiet_server()?;
    let mut changer = server.client("postgres")?;
    changer.batch_execute(
        "CREATE EXTENSION keywright; \
         SELECT keywright.create_tag('orders', step => 1000, increment => 3, remainder => 1)",
    )?;
    // Reserves: the open session is to have no transaction number, which the server could not forget.
    query_i64(&mut changer, NEXT)?;
    let mut open = server.client("postgres")?;
    open.batch_execute("BEGIN")?;
    assert_eq!(query_i64(&mut open, NEXT)? % 3, 1);
    open.batch_execute(LET_GO)?;
    let number = change(&mut changer, "COMMIT")?;
    forget_transactions(&server, &number)?;
    for _ in 0..4 {
        let mut other = server.client("postgres")?;
        assert_eq!(query_i64(&mut other, NEXT)? % 4, 2);
        assert_eq!(query_i64(&mut open, NEXT)? % 4, 2, "of the change");
    }
    Ok(())
}

/// It goes on above what it issued, whoever asks first.
#[test]
fn a_change_that_failed_and_is_forgotten_stops_nobody() -> Result<()> {
    let server = quiet_server()?;
    let mut changer = server.client("postgres")?;
    changer.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('orders', step => 1000)",
    )?;
    // Reserves: the open session is to have no transaction number, which the server could not forget.
    query_i64(&mut changer, NEXT)?;
    let mut open = server.client("postgres")?;
    open.batch_execute("BEGIN")?;
    let mut last = query_i64(&mut open, NEXT)?;
    open.batch_execute(LET_GO)?;
    let number = change(&mut changer, "ROLLBACK")?;
    forget_transactions(&server, &number)?;
    for _ in 0..4 {
        for session in [&mut open, &mut changer] {
            let id = query_i64(session, NEXT)?;
            assert!(id > last, "{id} after {last}");
            last = id;
        }
    }
    Ok(())
}
