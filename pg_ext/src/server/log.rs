//! The server's log.

use pgrx::PgLogLevel;

/// Tells the server's log about a takeover that left ids out.
pub fn tell(message: &str) {
    pgrx::ereport!(
        PgLogLevel::LOG_SERVER_ONLY,
        pgrx::PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        message.to_owned()
    );
}
