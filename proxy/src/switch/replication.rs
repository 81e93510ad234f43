//! Rows that come to a server from another one: no lock on it holds their writers back, and no fence refuses their keys.

use std::collections::BTreeSet;

use keywright_session::Rule;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

/// The servers' statements that list where a server's rows come from, newest first. MariaDB's second shows one source only.
const SOURCES: [&str; 3] = [
    "SHOW REPLICA STATUS",
    "SHOW ALL SLAVES STATUS",
    "SHOW SLAVE STATUS",
];
/// Those that list who is connected as its replica.
const REPLICAS: [&str; 2] = ["SHOW REPLICAS", "SHOW SLAVE HOSTS"];
/// The server's error for a statement that it does not know.
const NO_SUCH_STATEMENT: u16 = 1064;

/// What is known of a server's sources.
pub(super) enum Sources {
    /// The account may not see them.
    Hidden,
    /// Those that may fill tables of the rules, for people.
    Known(Vec<String>),
}

/// The sources that fill tables of these rules.
pub(super) async fn sources(conn: &mut Conn, rules: &[&Rule]) -> mysql_async::Result<Sources> {
    let is_maria = is_maria(conn).await?;
    // On MariaDB "SHOW REPLICA STATUS" shows the one without a name.
    let Some(rows) = first_known(
        conn,
        SOURCES.get(usize::from(is_maria)..).unwrap_or_default(),
    )
    .await?
    else {
        return Ok(Sources::Hidden);
    };
    let sources: Vec<Source> = rows.iter().map(Source::of).collect();
    let filling = sources
        .iter()
        .filter(|source| source.is_running && source.filter.may_fill(rules));
    let mut filling = filling.peekable();
    if filling.peek().is_none() {
        return Ok(Sources::Known(Vec::new()));
    }
    // Who may not see them is report of a replica, which the server is all the same.
    let replicas = first_known(conn, &REPLICAS).await?.unwrap_or_default();
    let replicas: BTreeSet<u64> = replicas
        .iter()
        .filter_map(|row| number(row, &["Server_Id", "Server_id"]))
        .collect();
    Ok(Sources::Known(
        filling.map(|source| source.report(&replicas)).collect(),
    ))
}

async fn is_maria(conn: &mut Conn) -> mysql_async::Result<bool> {
    let version: Option<String> = conn.query_first("SELECT VERSION()").await?;
    Ok(version.is_some_and(|version| version.contains("MariaDB")))
}

/// What the first of these statements says that the server knows; `None`: the account may not ask.
async fn first_known(
    conn: &mut Conn,
    statements: &[&str],
) -> mysql_async::Result<Option<Vec<Row>>> {
    for statement in statements {
        match conn.query(*statement).await {
            Ok(rows) => return Ok(Some(rows)),
            Err(mysql_async::Error::Server(error)) if error.code == NO_SUCH_STATEMENT => {}
            Err(mysql_async::Error::Server(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The first of these columns that a row has.
fn text(row: &Row, names: &[&str]) -> String {
    let mut found = names
        .iter()
        .filter_map(|name| row.get_opt::<Option<String>, &str>(name));
    found
        .next()
        .and_then(Result::ok)
        .flatten()
        .unwrap_or_default()
}

fn number(row: &Row, names: &[&str]) -> Option<u64> {
    text(row, names).parse().ok()
}

/// A server that another one replicates from.
struct Source {
    server_id: Option<u64>,
    at: String,
    /// Whether rows come, or may come at any moment.
    is_running: bool,
    filter: Filter,
}

impl Source {
    fn of(row: &Row) -> Self {
        let host = text(row, &["Source_Host", "Master_Host"]);
        let port = text(row, &["Source_Port", "Master_Port"]);
        let list = |name: &str| -> Vec<String> {
            let text = text(row, &[name]);
            let parts = text.split(',').map(str::trim);
            parts
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let runs = |names: &[&str]| text(row, names) != "No";
        Self {
            server_id: number(row, &["Source_Server_Id", "Master_Server_Id"]),
            at: format!("{host}:{port}"),
            is_running: runs(&["Replica_IO_Running", "Slave_IO_Running"])
                || runs(&["Replica_SQL_Running", "Slave_SQL_Running"]),
            filter: Filter {
                only: list("Replicate_Do_DB"),
                never: list("Replicate_Ignore_DB"),
                only_tables: list("Replicate_Do_Table"),
                only_like: list("Replicate_Wild_Do_Table"),
                is_renaming: !list("Replicate_Rewrite_DB").is_empty(),
            },
        }
    }

    fn report(&self, replicas: &BTreeSet<u64>) -> String {
        let at = &self.at;
        let is_circle = self.server_id.is_some_and(|id| replicas.contains(&id));
        let what = match is_circle {
            true => format!("the server and {at} are replicas of each other"),
            false => format!("the server is a replica of {at}, and not read_only"),
        };
        format!(
            "{what}: a lock here holds no writer there, and no fence refuses the keys that come from there. If nobody writes there, stop \
             that replication (STOP REPLICA) until the switch is done"
        )
    }
}

/// What of a source's rows a server takes.
#[derive(Debug, Default)]
struct Filter {
    only: Vec<String>,
    never: Vec<String>,
    /// Tables.
    only_tables: Vec<String>,
    /// The same with LIKE's wildcards.
    only_like: Vec<String>,
    is_renaming: bool,
}

impl Filter {
    /// Whether rows may come into tables of these rules: that they do not is to be seen.
    fn may_fill(&self, rules: &[&Rule]) -> bool {
        self.is_renaming
            || rules
                .iter()
                .any(|rule| self.may_fill_schema(rule.table.schema()))
    }

    fn may_fill_schema(&self, schema: &str) -> bool {
        if schema.contains(['*', '?']) {
            return true;
        }
        if !self.only.is_empty() {
            return self
                .only
                .iter()
                .any(|only| only.eq_ignore_ascii_case(schema));
        }
        if self.never.iter().any(|never| never == schema) {
            return false;
        }
        let schema_of = |table: &str| table.split('.').next().unwrap_or_default().to_owned();
        let is_it = |table: &String| schema_of(table).eq_ignore_ascii_case(schema);
        let is_like = |table: &String| {
            let plain = schema_of(table).replace("\\_", "\0");
            plain.contains(['%', '_']) || plain.replace('\0', "_").eq_ignore_ascii_case(schema)
        };
        let is_limited = !self.only_tables.is_empty() || !self.only_like.is_empty();
        !is_limited || self.only_tables.iter().any(is_it) || self.only_like.iter().any(is_like)
    }
}

#[cfg(test)]
mod tests {
    use super::Filter;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_filter_shows_that_rows_do_not_come() {
        for (only, never, only_tables, only_like, schema, may_fill) in [
            ("", "", "", "", "shop", true),
            ("other", "", "", "", "shop", false),
            ("other SHOP", "", "", "", "shop", true),
            ("other", "", "", "", "sh*", true),
            ("", "shop", "", "", "shop", false),
            ("", "SHOP", "", "", "shop", true),
            ("", "other", "", "", "shop", true),
            ("", "", "other.orders", "", "shop", false),
            ("", "", "sh_p.orders", "", "shop", false),
            ("", "", "other.orders shop.orders", "", "shop", true),
            ("", "", "", "other.%", "shop", false),
            ("", "", "", "sh%.orders", "shop", true),
            ("", "", "", "sh_p.orders", "shop", true),
            ("", "", "", "other\\_1.%", "shop", false),
        ] {
            let filter = Filter {
                only: list(only),
                never: list(never),
                only_tables: list(only_tables),
                only_like: list(only_like),
                is_renaming: false,
            };
            let found = filter.may_fill_schema(schema);
            assert_eq!(found, may_fill, "{filter:?} {schema}");
        }
    }
}
