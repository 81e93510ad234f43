//! Transactions that ended so long ago that the server has cut them off its log of commits: nothing tells any more whether they committed.

use keywright_testkit::{PgServer, Result, query_i64, query_text};

use super::closings::CHANGE;

const NEXT: &str = "SELECT next_biz_id('orders')";

/// Has the server forget what became of all transactions that have ended.
fn forget_transactions(server: &PgServer) -> Result<()> {
    let mut admin = server.client("postgres")?;
    admin.batch_execute("ALTER DATABASE template0 ALLOW_CONNECTIONS true")?;
    for database in ["template0", "template1", "postgres"] {
        server.client(database)?.batch_execute("VACUUM (FREEZE)")?;
    }
    Ok(())
}

/// Who drew before it, in a transaction that is still open, issues none of the ids that the change left to other databases.
#[test]
fn a_change_that_the_server_has_forgotten_holds_for_everybody() -> Result<()> {
    let server = PgServer::builder().start()?;
    let mut changer = server.client("postgres")?;
    changer.batch_execute(
        "CREATE EXTENSION keywright; \
         SELECT keywright.create_tag('orders', step => 1000, increment => 3, remainder => 1)",
    )?;
    query_i64(&mut changer, NEXT)?;
    let mut open = server.client("postgres")?;
    open.batch_execute("BEGIN")?;
    assert_eq!(query_i64(&mut open, NEXT)? % 3, 1);
    changer.batch_execute("BEGIN")?;
    changer.batch_execute(CHANGE)?;
    let number = query_text(&mut changer, "SELECT pg_current_xact_id()::text")?;
    changer.batch_execute("COMMIT")?;
    forget_transactions(&server)?;
    let status = format!("SELECT coalesce(pg_xact_status('{number}'), 'forgotten')");
    assert_eq!(query_text(&mut changer, &status)?, "forgotten");
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
    let server = PgServer::builder().start()?;
    let mut changer = server.client("postgres")?;
    changer.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('orders', step => 1000)",
    )?;
    let mut open = server.client("postgres")?;
    open.batch_execute("BEGIN")?;
    let mut last = query_i64(&mut open, NEXT)?;
    changer.batch_execute(&format!("BEGIN; {CHANGE}; ROLLBACK"))?;
    forget_transactions(&server)?;
    for _ in 0..4 {
        for session in [&mut open, &mut changer] {
            let id = query_i64(session, NEXT)?;
            assert!(id > last, "{id} after {last}");
            last = id;
        }
    }
    Ok(())
}
