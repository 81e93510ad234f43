//! Making the tables, and refusing tables that only look like them.

mod shapes;

use std::sync::Arc;

use super::gone_back::marked;
use super::{Link, Store, StoreError, Transaction, column, values};
use crate::dialect::Dialect;
use crate::engine::privileges::{self, Needed, Privilege};
use crate::engine::words::Words;

pub use shapes::OWN_TABLES;
use shapes::{
    BUCKET, NATIVE, RETURNED, RETURNED_FLOOR, SEGMENT, SHAPES, Shape, USER, USER_GRANT,
    USER_VERSION, WORKER, WORKER_IDS,
};

/// What people read, and run on a server of theirs.
fn ddl(words: Words) -> &'static str {
    match words {
        Words::MySql => include_str!("../../../sql/mysql/keywright_store.sql"),
        Words::Postgres => include_str!("../../../sql/postgres/keywright_store.sql"),
        Words::Sqlite => include_str!("../../../sql/sqlite/keywright_store.sql"),
    }
}

/// Creates what is missing.
#[derive(Debug)]
pub(crate) struct Init;

/// What was created, and what is there in another shape.
#[derive(Debug, Default)]
pub(crate) struct Initialised {
    pub(crate) created: Vec<String>,
    pub(crate) misshapen: Vec<String>,
}

impl Transaction<Initialised> for Init {
    async fn run(&self, link: &mut Link) -> Result<Initialised, StoreError> {
        let Some(lock) = link.words().lock_to_make_tables() else {
            return make_missing(link).await;
        };
        link.begin().await?;
        link.change(lock, Vec::new()).await?;
        let done = make_missing(link).await?;
        link.commit().await?;
        Ok(done)
    }
}

async fn make_missing(link: &mut Link) -> Result<Initialised, StoreError> {
    let mut done = Initialised::default();
    for shape in SHAPES {
        match problems(link, shape).await? {
            None => {
                let all = statements(link.words());
                for statement in all.filter(|sql| creates(sql, shape.table)) {
                    link.change(statement, Vec::new()).await?;
                }
                done.created.push(shape.table.to_owned());
                // Somebody else may have made it first, in a shape of his own.
                done.misshapen
                    .extend(problems(link, shape).await?.unwrap_or_default());
            }
            Some(found) => done.misshapen.extend(found),
        }
    }
    Ok(done)
}

/// Looks without changing anything: problems of the tables that this store uses.
#[derive(Debug)]
pub(crate) struct InspectSchema {
    pub(crate) store: Arc<Store>,
}

/// What a look at the store found.
#[derive(Debug, Default)]
pub(crate) struct SchemaFindings {
    pub(crate) problems: Vec<String>,
    /// Tags whose bounds were put back.
    pub(crate) gone_back: Vec<String>,
    pub(crate) weaknesses: Vec<String>,
    /// Whether tags are in a table that is missing.
    pub(crate) lacks_tags: bool,
}

impl Transaction<SchemaFindings> for InspectSchema {
    async fn run(&self, link: &mut Link) -> Result<SchemaFindings, StoreError> {
        let own: &[&Shape] = match self.store.dialect {
            Dialect::Keywright => &SHAPES,
            Dialect::Leaf | Dialect::IdGenerator | Dialect::Tinyid => &[
                &WORKER,
                &RETURNED,
                &RETURNED_FLOOR,
                &NATIVE,
                &WORKER_IDS,
                &BUCKET,
                &USER,
                &USER_GRANT,
                &USER_VERSION,
            ],
        };
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for shape in own {
            match problems(link, shape).await? {
                Some(of_table) => found.extend(of_table),
                None => missing.push(shape.table),
            }
        }
        let lack = lack(&missing, own.len());
        let there = own.iter().filter(|shape| !missing.contains(&shape.table));
        let mut needed: Vec<Needed<'_>> = there.filter_map(|shape| shape.needed()).collect();
        let tags = self.store.segment_table.to_string();
        if !self.store.dialect.is_own() {
            needed.push(Needed {
                table: &tags,
                column: self.store.dialect.tag_column(),
                privileges: &[Privilege::Select, Privilege::Update],
            });
        }
        let denied = match link.words() {
            Words::MySql | Words::Postgres => privileges::lacks(link, needed).await?,
            // Who could open it may do everything.
            Words::Sqlite => Vec::new(),
        };
        // What is not there, or may not be read, is said already.
        let gone_back = match missing.contains(&SEGMENT.table) || !denied.is_empty() {
            true => Vec::new(),
            false => gone_back(&self.store, link).await?,
        };
        Ok(SchemaFindings {
            problems: lack.into_iter().chain(found).chain(denied).collect(),
            gone_back,
            weaknesses: link.server.weaknesses.clone(),
            lacks_tags: missing.contains(&SEGMENT.table),
        })
    }
}

/// Tags whose bounds were put back to an older state, as a program has seen.
async fn gone_back(store: &Store, link: &mut Link) -> Result<Vec<String>, StoreError> {
    if !store.dialect.is_own() {
        return Ok(Vec::new());
    }
    let select = format!(
        "SELECT tag, hi, server FROM {} ORDER BY tag",
        store.segment_table
    );
    let mut problems = Vec::new();
    for row in link.rows(select, Vec::new()).await? {
        let server: Option<String> = column(&row, "server")?;
        if let Some(seen) = server.as_deref().and_then(marked) {
            let tag: String = column(&row, "tag")?;
            let hi: u64 = column(&row, "hi")?;
            problems.push(format!(
                "the store has gone back: the bound of tag \"{tag}\" was {seen}, and is {hi}; run keywright advance {tag} --above {}, or the highest id in use if that is higher",
                seen.saturating_sub(1)
            ));
        }
    }
    Ok(problems)
}

/// What is said of tables that are missing, out of so many.
fn lack(missing: &[&str], all: usize) -> Option<String> {
    match missing.len() {
        0 => None,
        count if count == all => {
            Some("it has none of its tables yet: run keywright init".to_owned())
        }
        _ => Some(format!(
            "it lacks the tables {}: run keywright init, or let this account use them",
            missing.join(", ")
        )),
    }
}

/// The statements of the file, without the comments between them.
fn statements(words: Words) -> impl Iterator<Item = String> {
    let code: Vec<&str> = ddl(words)
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect();
    let code = code.join("\n");
    let parts: Vec<String> = code
        .split(";\n")
        .map(|part| part.trim().trim_end_matches(';').to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    parts.into_iter()
}

fn creates(statement: &str, table: &str) -> bool {
    statement.starts_with(&format!("CREATE TABLE IF NOT EXISTS {table} ("))
}

/// `None`: there is no such table.
async fn problems(link: &mut Link, shape: &Shape) -> Result<Option<Vec<String>>, StoreError> {
    let words = link.words();
    let mut found = Vec::new();
    let columns = match words {
        Words::MySql => {
            let select = "SELECT ENGINE AS engine FROM information_schema.TABLES \
                          WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?";
            let Some(table) = link.first(select, values![shape.table]).await? else {
                return Ok(None);
            };
            let engine: Option<String> = column(&table, "engine")?;
            if !engine.is_some_and(|engine| engine.eq_ignore_ascii_case("InnoDB")) {
                found.push(format!("table {} is not an InnoDB table", shape.table));
            }
            "SELECT LOWER(COLUMN_NAME) AS name, LOWER(DATA_TYPE) AS type, COLUMN_KEY = 'PRI' AS is_key \
             FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?"
        }
        Words::Postgres => {
            let select = "SELECT relpersistence::text AS kept FROM pg_class \
                          WHERE oid = to_regclass(?) AND relkind IN ('r', 'p')";
            let Some(table) = link.first(select, values![shape.table]).await? else {
                return Ok(None);
            };
            if column::<String>(&table, "kept")? != "p" {
                found.push(format!("table {} is unlogged or temporary", shape.table));
            }
            "SELECT attname::text AS name, format_type(atttypid, NULL) AS type, \
             COALESCE(attnum = ANY (indkey), false) AS is_key \
             FROM pg_attribute LEFT JOIN pg_index ON indrelid = attrelid AND indisprimary \
             WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped"
        }
        Words::Sqlite => {
            "SELECT LOWER(name) AS name, LOWER(type) AS type, pk > 0 AS is_key FROM pragma_table_info(?)"
        }
    };
    let rows = link.rows(columns, values![shape.table]).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut columns = Vec::with_capacity(rows.len());
    for row in &rows {
        let name: String = column(row, "name")?;
        let data_type: String = column(row, "type")?;
        columns.push((name, data_type, column::<i64>(row, "is_key")? != 0));
    }
    found.extend(differences(words, shape, &columns));
    Ok(Some(found))
}

fn differences(words: Words, shape: &Shape, columns: &[(String, String, bool)]) -> Vec<String> {
    let table = shape.table;
    let mut found = Vec::new();
    for (at, (name, data_type)) in shape.columns(words).enumerate() {
        let is_key = at < shape.key_columns;
        match columns.iter().find(|(known, _, _)| *known == name) {
            None => found.push(format!("table {table} has no column \"{name}\"")),
            Some((_, other, _)) if other != data_type => found.push(format!(
                "column \"{name}\" of table {table} is of type {other}, not {data_type}"
            )),
            Some((_, _, key)) if *key != is_key => found.push(format!(
                "the primary key of table {table} is another: column \"{name}\""
            )),
            Some((_, _, _)) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{SHAPES, Words, creates, statements};

    #[test]
    fn the_files_make_exactly_the_tables_that_are_used() {
        for words in [Words::MySql, Words::Postgres, Words::Sqlite] {
            let all: Vec<String> = statements(words).collect();
            let of_shapes = |sql: &&String| SHAPES.iter().any(|shape| creates(sql, shape.table));
            assert_eq!(all.iter().filter(of_shapes).count(), SHAPES.len());
            for shape in SHAPES {
                let made: Vec<&String> =
                    all.iter().filter(|sql| creates(sql, shape.table)).collect();
                let [statement] = made.as_slice() else {
                    panic!("{} is made {} times", shape.table, made.len());
                };
                let lines: Vec<Vec<&str>> = statement
                    .lines()
                    .skip(1)
                    .map(|line| line.split_whitespace().collect())
                    .filter(|words: &Vec<&str>| {
                        !matches!(
                            words.first(),
                            Some(&("PRIMARY" | "KEY" | ")" | "--")) | None
                        )
                    })
                    .collect();
                assert_eq!(lines.len(), shape.columns(words).count(), "{}", shape.table);
                for (line, (name, data_type)) in lines.iter().zip(shape.columns(words)) {
                    assert_eq!(line.first(), Some(&name));
                    let written = line.get(1).unwrap().to_lowercase();
                    assert!(written.starts_with(data_type), "{name}: {written}");
                }
            }
        }
    }
}
