//! Accounts that cannot come from where the server sees the proxy.

use anyhow::Result;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::schema::snapshot::Accounts;

pub(in crate::schema) async fn accounts(conn: &mut Conn) -> Result<Accounts> {
    let seen_as: Option<String> = conn
        .query_first("SELECT SUBSTRING_INDEX(USER(), '@', -1)")
        .await?;
    let seen_as = seen_as.unwrap_or_default();
    // A host with a mask cannot be compared like that; roles have no host.
    let rows: std::result::Result<Vec<(String, String)>, _> = conn
        .exec(
            "SELECT DISTINCT CAST(u.user AS CHAR), CAST(u.host AS CHAR) FROM mysql.user u \
             WHERE u.user NOT IN ('', 'mysql.sys', 'mysql.session', 'mysql.infoschema', 'mariadb.sys') \
             AND u.host <> '' AND u.host NOT LIKE '%/%' AND NOT EXISTS (SELECT 1 FROM mysql.user o WHERE o.user = u.user \
             AND (o.host LIKE '%/%' OR ? LIKE o.host OR ? = 'localhost' AND o.host IN ('127.0.0.1', '::1'))) ORDER BY 1, 2",
            (&seen_as, &seen_as),
        )
        .await;
    Ok(match rows {
        Ok(elsewhere) => Accounts::Known { seen_as, elsewhere },
        Err(_) => Accounts::Hidden,
    })
}
