//! What keeps a server's tables from being switched, as far as the server tells.

use keywright_session::Rule;

use super::replication::Replication;
use crate::config::Config;

/// What is in the way, for people.
#[derive(Debug, Default)]
pub struct Obstacles {
    /// What is.
    pub found: Vec<String>,
    /// What the account may not see.
    pub unknown: Vec<String>,
}

/// Of one server.
pub fn obstacles(replication: &Replication, config: &Config) -> Obstacles {
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    if replication.read_only {
        found.push(
            "the server is read_only, so it is not the one that rows are written to".to_owned(),
        );
    }
    let switched = config.rules.iter().filter(|rule| rule.is_switched);
    let switched: Vec<&Rule> = switched.map(|configured| &configured.rule).collect();
    match replication.filling(&switched) {
        // A standby is one, and is told above.
        Some(_) if replication.read_only => {}
        Some(sources) => found.extend(sources),
        None => unknown.push(
            "whether rows come from another server, which takes REPLICATION CLIENT (MariaDB: SLAVE MONITOR)"
                .to_owned(),
        ),
    }
    if let Some(nodes) = replication.galera_nodes.filter(|nodes| *nodes > 1) {
        found.push(format!(
            "the server is one of {nodes} nodes of a Galera cluster: a lock on one of them holds no writer of the others"
        ));
    }
    if let Some(primaries) = replication.group_primaries.filter(|count| *count > 1) {
        found.push(format!(
            "the server is one of {primaries} primaries of a replication group: a lock on one of them holds no writer of the others"
        ));
    }
    match replication.prepared {
        Some(0) => {}
        Some(prepared) => found.push(format!(
            "{prepared} XA transaction(s) are prepared and not ended (XA RECOVER lists them): they may keep a table locked"
        )),
        None => unknown.push(
            "whether XA transactions are prepared, which takes XA_RECOVER_ADMIN on MySQL"
                .to_owned(),
        ),
    }
    Obstacles { found, unknown }
}
