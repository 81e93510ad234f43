//! What `explain` knows of a server: asked through a listener's own connection, or assumed.

use std::collections::HashMap;

use anyhow::{Context, Result};
use keywright_core::KeyBatch;
use keywright_rewrite::{Flavour, Server};
use keywright_session::imagine::{Columns, Imagine};
use keywright_session::{KeyRequest, in_lower_case};
use keywright_store::{KeyKind, KeySpec};

use crate::config::{Config, Listener};
use crate::handshake::server_of;
use crate::schema::{self, Extent, Snapshot, TableFacts};

/// sql_mode of a server that nobody can ask.
const SQL_MODE: &str = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";
/// And its flavour and version.
const SERVER: Server = Server {
    flavour: Flavour::MySql,
    version: 80_400,
};
/// The first example key.
const EXAMPLE: u64 = 1001;

/// What is known of one server.
#[derive(Debug, Clone)]
pub struct Known {
    /// Triggers, and how names are compared.
    pub facts: TableFacts,
    /// Whose grammar it speaks.
    pub server: Server,
    /// `@@global.sql_mode`.
    pub sql_mode: String,
    /// `@@global.auto_increment_increment`.
    pub increment: u64,
    /// The server was asked for the tables' columns, or not.
    pub columns: Option<ColumnNames>,
}

/// Names of visible columns in their order, by schema and table.
pub type ColumnNames = HashMap<(String, String), Vec<Vec<u8>>>;

impl Known {
    /// Of a server that cannot be asked. `version` is as servers write it.
    pub fn assumed(version: Option<&str>) -> Known {
        Known {
            facts: TableFacts::default(),
            server: version
                .and_then(|version| server_of(version.as_bytes()))
                .unwrap_or(SERVER),
            sql_mode: SQL_MODE.to_owned(),
            increment: 1,
            columns: None,
        }
    }

    /// Asks a listener's server.
    ///
    /// # Errors
    /// It cannot be reached, or refuses.
    pub async fn ask(config: &Config, listener: &Listener) -> Result<Known> {
        let snapshot = schema::take(config, listener, Extent::Statements).await?;
        Known::of(&snapshot, config)
    }

    /// What a snapshot says.
    ///
    /// # Errors
    /// It is not known whose server it is, or what its settings are.
    pub fn of(snapshot: &Snapshot, config: &Config) -> Result<Known> {
        let context = snapshot.context.as_ref();
        let context = context.context("the server says nothing of itself")?;
        let facts = schema::facts(snapshot, config);
        let name = |schema: &str, name: &str| (folded(&facts, schema), folded(&facts, name));
        let tables = snapshot.tables.iter().map(|table| {
            let columns = table.columns.iter().filter(|column| !column.is_invisible);
            let columns = columns.map(|column| column.name.clone().into_bytes());
            (name(&table.schema, &table.name), columns.collect())
        });
        let views = context.views.iter().map(|view| {
            let columns = view.columns.iter();
            let columns = columns.map(|column| column.clone().into_bytes());
            (name(&view.schema, &view.name), columns.collect())
        });
        let columns = tables.chain(views).collect();
        let version = &snapshot.server.version;
        Ok(Known {
            server: snapshot
                .server
                .grammar()
                .with_context(|| format!("the server's version \"{version}\" cannot be read"))?,
            facts,
            sql_mode: context.settings.sql_mode.clone(),
            increment: context.settings.increment,
            columns: Some(columns),
        })
    }
}

fn folded(facts: &TableFacts, name: &str) -> String {
    if facts.lower_case {
        in_lower_case(name)
    } else {
        name.to_owned()
    }
}

/// Answers an imagined session out of what is known, with example keys.
pub struct Examples<'a> {
    /// What is known.
    pub known: &'a Known,
    /// Where rules take their keys from.
    pub config: &'a Config,
}

impl Imagine for Examples<'_> {
    fn keys(&mut self, request: KeyRequest) -> KeyBatch {
        let spec = self
            .config
            .rules
            .get(request.rule)
            .map(|configured| &configured.spec);
        examples(spec, request.count)
    }

    fn columns(&mut self, schema: &[u8], table: &[u8]) -> Columns {
        let Some(columns) = &self.known.columns else {
            return Columns::NotKnown;
        };
        let name = |name: &[u8]| folded(&self.known.facts, &String::from_utf8_lossy(name));
        match columns.get(&(name(schema), name(table))) {
            Some(names) => Columns::Known(names.clone()),
            None => Columns::NoTable,
        }
    }
}

fn examples(spec: Option<&KeySpec>, count: u64) -> KeyBatch {
    let spacing = match spec {
        Some(KeySpec::Stride(stride)) => stride.residue().modulus(),
        Some(KeySpec::Segment(_) | KeySpec::Snowflake | KeySpec::Uuid { .. })
        | Some(KeySpec::Readable(_))
        | None => 1,
    };
    match spec.map(KeySpec::kind) {
        Some(KeyKind::Number) | None => KeyBatch::Numbers {
            first: EXAMPLE,
            spacing,
            count,
        },
        Some(KeyKind::Text { chars }) => KeyBatch::Texts(
            (EXAMPLE..)
                .map(|number| {
                    format!(
                        "{number:0>width$}",
                        width = usize::try_from(chars).unwrap_or(0)
                    )
                })
                .take(usize::try_from(count).unwrap_or(usize::MAX))
                .collect(),
        ),
        Some(KeyKind::Bytes16) => KeyBatch::Bytes(
            (u128::from(EXAMPLE)..)
                .map(u128::to_be_bytes)
                .take(usize::try_from(count).unwrap_or(usize::MAX))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::folded;
    use crate::schema::TableFacts;

    #[test]
    fn a_letter_is_folded_alike_wherever_it_stands() {
        for (lower_case, is_same) in [(true, true), (false, false)] {
            let facts = TableFacts {
                lower_case,
                ..TableFacts::default()
            };
            for (one, other) in [("ΑΣ", "ασ"), ("İD", "id")] {
                let found = folded(&facts, one) == folded(&facts, other);
                assert_eq!(found, is_same, "{one} {other}");
            }
        }
    }
}
