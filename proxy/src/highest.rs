//! The highest ids that tables with rules have already.

use anyhow::Result;
use keywright_core::Tag;
use keywright_session::Rules;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::config::Config;
use crate::tables::{self, Column};

/// A table that a rule is for, on one server.
pub struct Table {
    /// Its key column.
    pub column: Column,
    /// The highest id in it, or that it had; `None` where every row would have to be looked at.
    pub highest: Option<u64>,
}

/// Something whose highest id is not known.
pub struct Unknown {
    /// The tag for which that matters; all, if none.
    pub tag: Option<Tag>,
    /// What it is, and why.
    pub what: String,
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
pub async fn read(config: &Config, admin: &str) -> Result<Vec<Vec<Table>>> {
    let mut server = tables::connect(config, admin).await?;
    let lower_case = tables::lower_case(&mut server).await?;
    let rules = config
        .rules
        .iter()
        .map(|configured| configured.rule.clone());
    let rules = Rules::new(rules.collect(), lower_case);
    let mut found: Vec<Vec<Table>> = config.rules.iter().map(|_| Vec::new()).collect();
    let columns = tables::key_columns(&mut server, &rules).await?;
    let first = tables::first_of_indexes(&mut server).await?;
    for column in columns {
        let is_first = column.integer_max().is_some() && first.contains(&column.full_name());
        let highest = if column.auto_increment || is_first {
            // Ids that no row has any more count too, as far as the server knows of them.
            let next = column.counter.filter(|_| !column.fenced).unwrap_or(0);
            let in_rows = highest(&mut server, &column).await?;
            Some(in_rows.max(next.saturating_sub(1)))
        } else {
            None
        };
        if let Some(tables) = found.get_mut(column.rule) {
            tables.push(Table { column, highest });
        }
    }
    server.disconnect().await?;
    Ok(found)
}

/// 0 if there is none, or only ids below.
async fn highest(server: &mut Conn, column: &Column) -> Result<u64> {
    let (table, name) = (column.quoted_table(), column.quoted_name());
    let question = format!("SELECT CAST(GREATEST(MAX({name}), 0) AS UNSIGNED) FROM {table}");
    let highest: Option<Option<u64>> = server.query_first(question).await?;
    Ok(highest.flatten().unwrap_or(0))
}

/// By tag, over the servers of all listeners; and what is not known.
pub async fn by_tag(config: &Config) -> (Vec<Highest>, Vec<Unknown>) {
    let mut all: Vec<Highest> = Vec::new();
    let mut unknown = Vec::new();
    if config.rules.iter().all(|rule| rule.spec.tag().is_none()) {
        return (all, unknown);
    }
    for listener in &config.listeners {
        let mut not_asked = |why: String| {
            unknown.push(Unknown {
                tag: None,
                what: format!("{}: {why}", listener.bind),
            });
        };
        let Some(admin) = &listener.admin else {
            not_asked("there is no admin url".to_owned());
            continue;
        };
        let by_rule = match read(config, admin).await {
            Ok(by_rule) => by_rule,
            Err(error) => {
                not_asked(format!("{error:#}"));
                continue;
            }
        };
        for (configured, tables) in config.rules.iter().zip(by_rule) {
            let Some(tag) = configured.spec.tag() else {
                continue;
            };
            for Table { column, highest } in tables {
                let table = column.quoted_table();
                match highest {
                    Some(id) => add(&mut all, tag, id, table),
                    None => unknown.push(Unknown {
                        tag: Some(tag.clone()),
                        what: format!("{table}: no index begins with {}", column.quoted_name()),
                    }),
                }
            }
        }
    }
    (all, unknown)
}

fn add(all: &mut Vec<Highest>, tag: &Tag, id: u64, table: String) {
    match all.iter_mut().find(|known| known.tag == *tag) {
        Some(known) if known.id >= id => {}
        Some(known) => (known.id, known.table) = (id, table),
        None => all.push(Highest {
            tag: tag.clone(),
            id,
            table,
        }),
    }
}
