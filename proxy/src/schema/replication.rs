//! Rows that come to a server from another one: no lock on it holds their writers back, and no fence refuses their keys.

use std::collections::BTreeSet;

use keywright_session::{Rule, in_lower_case};

/// Who else writes to a server's tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replication {
    /// `@@global.read_only`.
    pub read_only: bool,
    /// The servers that rows come from; `None`: the account may not see them.
    pub sources: Option<Vec<Source>>,
    /// The `server_id`s of its replicas, as far as the account may see them.
    pub replicas: BTreeSet<u64>,
    /// Nodes of its Galera cluster.
    pub galera_nodes: Option<u64>,
    /// Primaries of its replication group.
    pub group_primaries: Option<u64>,
    /// XA transactions that are prepared and not ended; `None`: the account may not see them.
    pub prepared: Option<usize>,
}

/// A server that another one replicates from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// Its `server_id`.
    pub server_id: Option<u64>,
    /// Host and port.
    pub at: String,
    /// Whether rows come, or may come at any moment.
    pub is_running: bool,
    /// What of them is taken.
    pub filter: Filter,
}

impl Replication {
    /// The sources that fill tables of these rules, for people; `None`: the account may not see them.
    pub(super) fn filling(&self, rules: &[&Rule]) -> Option<Vec<String>> {
        let sources = self.sources.as_ref()?.iter();
        let filling = sources.filter(|source| source.is_running && source.filter.may_fill(rules));
        Some(
            filling
                .map(|source| source.report(&self.replicas))
                .collect(),
        )
    }
}

impl Source {
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Schemas that alone are taken.
    pub only: Vec<String>,
    /// Schemas that are not.
    pub never: Vec<String>,
    /// Tables that alone are taken.
    pub only_tables: Vec<String>,
    /// The same with LIKE's wildcards.
    pub only_like: Vec<String>,
    /// Whether schemas have other names here.
    pub is_renaming: bool,
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
            return self.only.iter().any(|only| may_be_same(only, schema));
        }
        if self.never.iter().any(|never| never == schema) {
            return false;
        }
        let schema_of = |table: &str| table.split('.').next().unwrap_or_default().to_owned();
        let is_it = |table: &String| may_be_same(&schema_of(table), schema);
        let is_like = |table: &String| {
            let plain = schema_of(table).replace("\\_", "\0");
            plain.contains(['%', '_']) || may_be_same(&plain.replace('\0', "_"), schema)
        };
        let is_limited = !self.only_tables.is_empty() || !self.only_like.is_empty();
        !is_limited || self.only_tables.iter().any(is_it) || self.only_like.iter().any(is_like)
    }
}

/// Whether two names are the same one on a server that compares them without case.
fn may_be_same(one: &str, other: &str) -> bool {
    in_lower_case(one) == in_lower_case(other)
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
            ("GRÖßE", "", "", "", "größe", true),
            ("", "", "ΑΣ.orders", "", "ασ", true),
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
