//! The queries for postgres_exporter run as a member of pg_monitor, and give the columns that are described beside them.

mod common;

use std::fs;

use anyhow::Context;
use common::builder;
use keywright_testkit::{Result, SharedServer, workspace_root};

static SERVER: SharedServer = SharedServer::new();

/// A family of series: its name, its query and its columns.
#[derive(Default)]
struct Family {
    name: String,
    query: String,
    columns: Vec<String>,
}

/// The file is read by lines: the exporter's format is YAML, of which this much is used.
fn families() -> Result<Vec<Family>> {
    let file = workspace_root().join("contrib/postgres_exporter/queries.yml");
    let text = fs::read_to_string(file)?;
    let mut families: Vec<Family> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_suffix(':')
            && !line.starts_with(' ')
        {
            families.push(Family {
                name: name.to_owned(),
                ..Family::default()
            });
            continue;
        }
        let family = families.last_mut().context("a line before any name")?;
        if let Some(query) = line.strip_prefix("  query: \"") {
            query.trim_end_matches('"').clone_into(&mut family.query);
        } else if let Some(column) = line.strip_prefix("    - ") {
            family.columns.push(column.trim_end_matches(':').to_owned());
        }
    }
    Ok(families)
}

#[test]
fn each_query_gives_the_columns_that_are_described() -> Result<()> {
    let database = SERVER.database(builder)?;
    let mut client = database.client()?;
    client.batch_execute(
        "SELECT keywright.create_tag('orders'), keywright.create_tag('unused'); SELECT next_biz_id('orders'), snowflake_id(), readable_id('R');
         CREATE ROLE exporter IN ROLE pg_monitor; SET ROLE exporter",
    )?;
    let families = families()?;
    assert_eq!(families.len(), 3);
    for Family {
        name,
        query,
        columns,
    } in families
    {
        let rows = client.query(&query, &[]).context(name.clone())?;
        let first = rows.first().with_context(|| format!("{name}: no rows"))?;
        let given: Vec<&str> = first.columns().iter().map(|column| column.name()).collect();
        assert_eq!(given, columns, "{name}");
        let wanted = match name.as_str() {
            "keywright_pg_tag" | "keywright_pg_word" => 2,
            _ => 5,
        };
        assert!(rows.len() >= wanted, "{name}: {} rows", rows.len());
    }
    client.batch_execute("RESET ROLE; DROP ROLE exporter")?;
    Ok(())
}
