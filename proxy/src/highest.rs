//! The highest ids that tables with rules have already.

use anyhow::Result;
use keywright_core::Tag;
use keywright_session::Rules;
use mysql_async::prelude::Queryable;

use crate::config::Config;
use crate::tables::{self, Column};

/// A table that a rule is for, on one server.
pub struct Table {
    /// Its key column.
    pub column: Column,
    /// The highest id in it; 0 where the server makes no keys for it, since they may be many and without an index.
    pub highest: u64,
}

/// The highest id among the tables whose keys come from a tag.
pub struct Highest {
    /// The tag.
    pub tag: Tag,
    /// The id.
    pub id: u64,
    /// The table that has it, quoted.
    pub table: String,
}

/// The tables of one server, by rule.
///
/// # Errors
/// The server cannot be asked.
pub async fn look(config: &Config, admin: &str) -> Result<Vec<Vec<Table>>> {
    let mut server = tables::connect(config, admin).await?;
    let lower_case = tables::lower_case(&mut server).await?;
    let rules = config
        .rules
        .iter()
        .map(|configured| configured.rule.clone());
    let rules = Rules::new(rules.collect(), lower_case);
    let mut found: Vec<Vec<Table>> = config.rules.iter().map(|_| Vec::new()).collect();
    for column in tables::key_columns(&mut server, &rules).await? {
        let (table, name) = (column.quoted_table(), column.quoted_name());
        let highest: Option<Option<u64>> = if column.auto_increment {
            let question =
                format!("SELECT CAST(GREATEST(MAX({name}), 0) AS UNSIGNED) FROM {table}");
            server.query_first(question).await?
        } else {
            None
        };
        if let Some(tables) = found.get_mut(column.rule) {
            tables.push(Table {
                column,
                highest: highest.flatten().unwrap_or(0),
            });
        }
    }
    server.disconnect().await?;
    Ok(found)
}

/// By tag, over the servers of all listeners; and which could not be asked.
pub async fn by_tag(config: &Config) -> (Vec<Highest>, Vec<String>) {
    let mut all: Vec<Highest> = Vec::new();
    let mut unknown = Vec::new();
    if config.rules.iter().all(|rule| rule.spec.tag().is_none()) {
        return (all, unknown);
    }
    for listener in &config.listeners {
        let Some(admin) = &listener.admin else {
            unknown.push(format!("{}: there is no admin url", listener.bind));
            continue;
        };
        let by_rule = match look(config, admin).await {
            Ok(by_rule) => by_rule,
            Err(error) => {
                unknown.push(format!("{}: {error:#}", listener.bind));
                continue;
            }
        };
        for (configured, tables) in config.rules.iter().zip(by_rule) {
            let highest = tables.into_iter().max_by_key(|table| table.highest);
            let (Some(tag), Some(Table { column, highest })) = (configured.spec.tag(), highest)
            else {
                continue;
            };
            let table = column.quoted_table();
            match all.iter_mut().find(|known| known.tag == *tag) {
                Some(known) if known.id >= highest => {}
                Some(known) => (known.id, known.table) = (highest, table),
                None => all.push(Highest {
                    tag: tag.clone(),
                    id: highest,
                    table,
                }),
            }
        }
    }
    (all, unknown)
}
