//! Why a way through the proxy may cost more than wanted beside HAProxy.

use super::load::Statement;
use super::ways::Way;

const LOGIN: &str = "The proxy reads the login, which HAProxy does not.";
/// `keywright_session` asks for the context of a session before it reads the first statement that may be an INSERT.
const STATE: &str = "Before the first INSERT of a connection, a listener with rules asks the server for the session's state: one more \
    statement and one more round trip, which HAProxy does not have. The proxy also reads the login, and the server pays for `LAST_INSERT_ID(k)`.";
const KEYS: &str = "The proxy reads the statement and its answer, and writes keys in. HAProxy forwards both unread.";
const READ: &str = "Behind rules the proxy reads the text of each statement to know what it is. HAProxy forwards it unread.";
const SHARED_CORES: &str = "Client and server share cores, so throughput depends on what both do. The proxy's CPU is the steadier figure.";

/// Of its CPU.
pub(super) fn of_cpu(statement: Statement, way: Way) -> Option<&'static str> {
    let has_rules = way.is_fenced();
    match statement {
        Statement::InsertOnce if has_rules => Some(STATE),
        Statement::InsertOnce => Some(LOGIN),
        Statement::PointSelect => has_rules.then_some(READ),
        Statement::TextInsert
        | Statement::PreparedInsert
        | Statement::ThousandRows
        | Statement::WrappedInsert
        | Statement::WrappedPrepared => has_rules.then_some(KEYS),
        Statement::BigResult => None,
    }
}

/// Of the statements per second.
pub(super) fn of_throughput(statement: Statement, way: Way) -> &'static str {
    match statement {
        Statement::InsertOnce | Statement::PointSelect => {
            of_cpu(statement, way).unwrap_or(SHARED_CORES)
        }
        Statement::TextInsert
        | Statement::PreparedInsert
        | Statement::ThousandRows
        | Statement::WrappedInsert
        | Statement::WrappedPrepared
        | Statement::BigResult => SHARED_CORES,
    }
}
