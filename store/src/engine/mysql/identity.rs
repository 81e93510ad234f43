//! Which server a connection leads to, or a transaction is on, so that a promoted replica or a copy is recognised.

use keywright_core::Cause;
use mysql_async::Conn;

use super::statements::rows;
use crate::engine::error::StoreError;
use crate::engine::facts::ServerFacts;
use crate::engine::value::{Row, column};
use crate::failure::Failure;

/// Which server a connection leads to: another after a failover, the same after a restart.
///
/// # Errors
/// The server cannot be asked.
pub async fn server_identity(conn: &mut Conn) -> Result<String, Failure> {
    let facts = server_facts(conn).await.map_err(|error| {
        Failure::new(
            Cause::UpstreamUnreachable,
            format!("the server cannot be asked who it is: {error}"),
        )
    })?;
    Ok(facts.identity)
}

/// Variables that are read.
const VARIABLES: &str = "'server_uuid', 'server_id', 'hostname', 'port', 'datadir', \
                         'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'read_only', \
                         'wsrep_on', 'wsrep_provider'";

pub(super) async fn server_facts(conn: &mut Conn) -> Result<ServerFacts, StoreError> {
    of_rows(&rows(conn, &query(), Vec::new()).await?)
}

/// What is asked for it.
pub(super) fn query() -> String {
    format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({VARIABLES})")
}

/// What is answered.
pub(super) fn of_rows(rows: &[Row]) -> Result<ServerFacts, StoreError> {
    let mut variables = Vec::with_capacity(rows.len());
    for row in rows {
        let name: String = column(row, "Variable_name")?;
        let value: String = column(row, "Value")?;
        variables.push((name, value));
    }
    Ok(facts(&variables))
}

fn facts(variables: &[(String, String)]) -> ServerFacts {
    let value = |name: &str| {
        variables
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    let mut weaknesses = Vec::new();
    if value("innodb_flush_log_at_trx_commit").is_some_and(|value| value != "1") {
        weaknesses.push(
            "innodb_flush_log_at_trx_commit is not 1: a power failure may undo a reservation"
                .to_owned(),
        );
    }
    if value("log_bin") == Some("ON") && value("sync_binlog").is_some_and(|value| value != "1") {
        weaknesses.push(
            "sync_binlog is not 1: after a power failure replicas may miss a reservation"
                .to_owned(),
        );
    }
    if value("read_only") == Some("ON") {
        weaknesses.push("the server is read-only: nothing can be reserved on it".to_owned());
    }
    ServerFacts {
        identity: identity(value),
        weaknesses,
        is_in_group: value("wsrep_on") == Some("ON")
            && value("wsrep_provider").is_some_and(|its| !its.is_empty() && its != "none"),
    }
}

/// MySQL has an identity of its own, made with the data directory. MariaDB has none, so it is put together: servers that
/// replicate from each other must have different ids, and copies elsewhere have another host, port or directory. Two
/// servers taken for one lack the safety gap (a copy opened in the same place as its original, with the same server id,
/// cannot be told from it); one server taken for two, because it was moved, only leaves a gap.
fn identity<'a>(value: impl Fn(&str) -> Option<&'a str>) -> String {
    const CHARS_MAX: usize = 255;
    let text = match value("server_uuid") {
        Some(uuid) => format!("uuid={uuid}"),
        None => {
            let part = |name| value(name).unwrap_or_default();
            format!(
                "id={} port={} host={} data={}",
                part("server_id"),
                part("port"),
                part("hostname"),
                part("datadir")
            )
        }
    };
    text.chars().take(CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::facts;

    fn of(variables: &[(&str, &str)]) -> crate::engine::facts::ServerFacts {
        let owned: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        facts(&owned)
    }

    #[test]
    fn servers_of_a_group_say_so() {
        let library = "/usr/lib/galera/libgalera_smm.so";
        let is_in_group =
            |on, provider| of(&[("wsrep_on", on), ("wsrep_provider", provider)]).is_in_group;
        assert!(is_in_group("ON", library));
        assert!(!is_in_group("OFF", library));
        assert!(!is_in_group("ON", "none"));
        assert!(!of(&[]).is_in_group);
    }

    #[test]
    fn a_uuid_is_the_identity_where_there_is_one() {
        let mysql = of(&[
            ("server_uuid", "u-1"),
            ("server_id", "1"),
            ("hostname", "a"),
        ]);
        let moved = of(&[
            ("server_uuid", "u-1"),
            ("server_id", "2"),
            ("hostname", "b"),
        ]);
        assert_eq!(mysql.identity, moved.identity);
    }

    #[test]
    fn replicas_and_copies_are_told_apart_without_one() {
        let original = of(&[("server_id", "1"), ("hostname", "a"), ("port", "3306")]);
        let replica = of(&[("server_id", "2"), ("hostname", "a"), ("port", "3306")]);
        let copy = of(&[("server_id", "1"), ("hostname", "b"), ("port", "3306")]);
        assert_ne!(original.identity, replica.identity);
        assert_ne!(original.identity, copy.identity);
    }

    #[test]
    fn settings_that_lose_commits_are_named() {
        let weak = of(&[
            ("innodb_flush_log_at_trx_commit", "2"),
            ("log_bin", "ON"),
            ("sync_binlog", "0"),
        ]);
        assert_eq!(weak.weaknesses.len(), 2);
        let sound = of(&[
            ("innodb_flush_log_at_trx_commit", "1"),
            ("log_bin", "OFF"),
            ("sync_binlog", "0"),
        ]);
        assert_eq!(sound.weaknesses, Vec::<String>::new());
    }
}
