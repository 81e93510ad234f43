//! Whether a commit that was acknowledged may be missing where another server takes this one's place.
//!
//! A commit waits for a replica in semi-synchronous replication, until a time limit turns that off for all; what shows it is a status. That is on
//! again only when a replica has all that was committed meanwhile. So a commit behind which it is on has reached one. In a
//! Galera cluster, and in group replication, a commit is with the group before it is acknowledged.

use mysql_async::Conn;

use super::statements::rows;
use crate::engine::error::StoreError;
use crate::engine::value::column;

/// Servers of a group at least.
const GROUP_MIN: u64 = 2;

/// Newer names, then older ones, and MariaDB's.
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Rpl_semi_sync_source_status', 'Rpl_semi_sync_master_status', \
                      'wsrep_ready', 'wsrep_connected', 'wsrep_cluster_status', 'wsrep_cluster_size')";
const GROUP_NAME: &str =
    "SHOW GLOBAL VARIABLES WHERE Variable_name = 'group_replication_group_name' AND Value <> ''";
const GROUP: &str = "SELECT COUNT(*) AS members, COALESCE(MAX(MEMBER_ID = @@server_uuid), 0) AS is_in \
                     FROM performance_schema.replication_group_members WHERE MEMBER_STATE = 'ONLINE'";

pub(in crate::engine) async fn may_lose(conn: &mut Conn) -> Result<Option<String>, StoreError> {
    let mut status = Vec::new();
    for row in rows(conn, STATUS, Vec::new()).await? {
        let name: String = column(&row, "Variable_name")?;
        status.push((name, column::<String>(&row, "Value")?));
    }
    if keeps(&status) || is_in_group(conn).await? {
        return Ok(None);
    }
    Ok(Some(
        "replication is not semi-synchronous at the moment: a replica that is promoted may lack what was committed"
            .to_owned(),
    ))
}

/// Whether what was committed last is on another server.
fn keeps(status: &[(String, String)]) -> bool {
    let is = |name: &str, wanted: &str| {
        let mut values = status.iter().filter(|(its, _)| its == name);
        values.any(|(_, value)| value.eq_ignore_ascii_case(wanted))
    };
    let size = status.iter().find(|(its, _)| its == "wsrep_cluster_size");
    let size = size.and_then(|(_, value)| value.parse::<u64>().ok());
    is("Rpl_semi_sync_source_status", "ON")
        || is("Rpl_semi_sync_master_status", "ON")
        || (is("wsrep_ready", "ON")
            && is("wsrep_connected", "ON")
            && is("wsrep_cluster_status", "Primary")
            && size.is_some_and(|size| size >= GROUP_MIN))
}

async fn is_in_group(conn: &mut Conn) -> Result<bool, StoreError> {
    if rows(conn, GROUP_NAME, Vec::new()).await?.is_empty() {
        return Ok(false);
    }
    let found = rows(conn, GROUP, Vec::new()).await?;
    let Some(row) = found.first() else {
        return Ok(false);
    };
    let (members, is_in): (u64, u64) = (column(row, "members")?, column(row, "is_in")?);
    Ok(members >= GROUP_MIN && is_in == 1)
}

#[cfg(test)]
mod tests {
    use super::keeps;

    fn of(status: &[(&str, &str)]) -> bool {
        let owned: Vec<(String, String)> = status
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        keeps(&owned)
    }

    #[test]
    fn only_what_waits_for_another_server_keeps_a_commit() {
        let galera = |status, size| {
            of(&[
                ("wsrep_ready", "ON"),
                ("wsrep_connected", "ON"),
                ("wsrep_cluster_status", status),
                ("wsrep_cluster_size", size),
            ])
        };
        assert!(!of(&[]));
        assert!(of(&[("Rpl_semi_sync_source_status", "ON")]));
        assert!(of(&[("Rpl_semi_sync_master_status", "ON")]));
        assert!(!of(&[("Rpl_semi_sync_master_status", "OFF")]));
        assert!(galera("Primary", "3"));
        assert!(!galera("Primary", "1"));
        assert!(!galera("non-Primary", "3"));
        // Without a cluster MariaDB says so.
        assert!(!of(&[
            ("wsrep_ready", "OFF"),
            ("wsrep_connected", "OFF"),
            ("wsrep_cluster_status", "Disconnected"),
            ("wsrep_cluster_size", "0"),
        ]));
    }
}
