//! Statistics of tables as they are now, not as the server remembers them: counters are among them.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// The server's error: it has no such variable.
const UNKNOWN_SYSTEM_VARIABLE: u16 = 1193;

/// Has information_schema say of tables what is so now, for as long as the connection lasts. MySQL remembers it for a day unless told otherwise; MariaDB
/// remembers nothing, and has no such setting.
///
/// # Errors
/// The server does not take the setting, or the connection failed: counters that it says may be old, and decide nothing.
pub(crate) async fn forget_old_statistics(conn: &mut Conn) -> mysql_async::Result<()> {
    let set = conn.query_drop("SET SESSION information_schema_stats_expiry = 0");
    unless_unknown(set.await)
}

fn unless_unknown(set: mysql_async::Result<()>) -> mysql_async::Result<()> {
    match set {
        Err(mysql_async::Error::Server(error)) if error.code == UNKNOWN_SYSTEM_VARIABLE => Ok(()),
        set => set,
    }
}

#[cfg(test)]
mod tests {
    use mysql_async::{DriverError, Error, ServerError};

    use super::unless_unknown;

    fn refused(code: u16) -> Error {
        Error::Server(ServerError {
            code,
            message: "refused".to_owned(),
            state: "HY000".to_owned(),
        })
    }

    #[test]
    fn old_statistics_are_believed_of_no_server_that_may_remember_some() {
        assert!(unless_unknown(Ok(())).is_ok());
        // MariaDB.
        assert!(unless_unknown(Err(refused(1193))).is_ok());
        for code in [1064, 1227, 1231, 1232, 1290] {
            assert!(unless_unknown(Err(refused(code))).is_err(), "{code}");
        }
        let gone = Error::Driver(DriverError::ConnectionClosed);
        assert!(unless_unknown(Err(gone)).is_err());
    }
}
