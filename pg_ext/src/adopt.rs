//! keywright.adopt: a bigserial or identity column goes over to a tag. It runs as the caller, who must own the table.

use keywright_core::cause::Cause;
use pgrx::{PgLogLevel, pg_extern, pg_sys};

use crate::catalog::{self, run};
use crate::failure::{Failure, OrRaise};
use crate::manage::{self, Definition};
use crate::{session, sys, tag};

/// What is known of the column.
struct Column {
    relation: String,
    name: String,
    type_name: String,
    identity: bool,
    sequence: Option<String>,
}

#[pg_extern(sql = false)]
fn keywright_adopt(
    tag: Option<&str>,
    relation: Option<pg_sys::Oid>,
    column: Option<&std::ffi::CStr>,
) -> i64 {
    let column = column.and_then(|column| column.to_str().ok());
    match (tag, relation, column) {
        (Some(tag), Some(relation), Some(column)) => adopt(tag, relation, column),
        (_, _, _) => Err(Failure::new(
            Cause::ArgumentNull,
            "adopt needs a tag, a table and a column; none may be null",
        )
        .hint("For instance SELECT keywright.adopt('orders', 'orders', 'id').")),
    }
    .or_raise()
}

fn adopt(tag_text: &str, relation: pg_sys::Oid, column_name: &str) -> Result<i64, Failure> {
    let tag = session::parse_tag(tag_text.as_bytes())?;
    session::require_preload()?;
    if isolation_keeps_snapshot() {
        return Err(refused("a transaction with isolation above READ COMMITTED would read the column as it was before the lock")
            .hint("Run keywright.adopt in a READ COMMITTED transaction."));
    }
    let column = column_of(relation, column_name)?;
    run(
        &format!("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", column.relation),
        &[],
    )?;
    let above = largest_used(&column)?;
    if above >= manage::ID_MAX {
        return Err(refused(&format!(
            "it is at {above}, and ids end at {}",
            manage::ID_MAX
        ))
        .hint(
            "Look for rows with ids far above all others, and for a sequence that was set there.",
        ));
    }
    let start = above + 1;
    {
        let owner = session::extension()?.owner;
        let _owner = sys::AsOwner::new(owner);
        let definition = Definition::new(Some(start), 1_000, (None, None), manage::ID_MAX)?;
        manage::create(&tag, &definition, false)?;
    }
    tag::advance(&tag, above.max(0).cast_unsigned())?;
    replace_defaults(&column, relation, tag.as_str())?;
    warn_of_narrow_references(relation, column_name)?;
    Ok(start)
}

fn refused(why: &str) -> Failure {
    Failure::new(
        Cause::AdoptRefused,
        format!("the column cannot be adopted: {why}"),
    )
}

fn isolation_keeps_snapshot() -> bool {
    text(
        "SELECT pg_catalog.current_setting('transaction_isolation')",
        &[],
    )
    .is_ok_and(|isolation| {
        isolation.as_deref() != Some("read committed")
            && isolation.as_deref() != Some("read uncommitted")
    })
}

fn text(query: &str, arguments: &[pgrx::datum::DatumWithOid]) -> Result<Option<String>, Failure> {
    pgrx::spi::Spi::connect_mut(|client| {
        let mut rows = client.update(query, Some(1), arguments)?;
        match rows.next() {
            Some(row) => row.get::<String>(1),
            None => Ok(None),
        }
    })
    .map_err(|error| catalog::damaged(&error.to_string()))
}

fn column_of(relation: pg_sys::Oid, name: &str) -> Result<Column, Failure> {
    let found = pgrx::spi::Spi::connect(|client| {
        client
            .select(
                "SELECT a.attrelid::pg_catalog.regclass::text, pg_catalog.quote_ident(a.attname), \
                 pg_catalog.format_type(a.atttypid, NULL), a.attidentity::text OPERATOR(pg_catalog.<>) '', \
                 pg_catalog.pg_get_serial_sequence(a.attrelid::pg_catalog.regclass::text, a.attname::text) \
                 FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) a.attrelid \
                 WHERE a.attrelid OPERATOR(pg_catalog.=) $1 AND a.attname::text OPERATOR(pg_catalog.=) $2 \
                 AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped AND c.relkind::text IN ('r', 'p')",
                Some(1),
                &[relation.into(), name.into()],
            )?
            .next()
            .map(|row| {
                Ok::<_, pgrx::spi::Error>(Column {
                    relation: row.get::<String>(1)?.unwrap_or_default(),
                    name: row.get::<String>(2)?.unwrap_or_default(),
                    type_name: row.get::<String>(3)?.unwrap_or_default(),
                    identity: row.get::<bool>(4)?.unwrap_or(false),
                    sequence: row.get::<String>(5)?,
                })
            })
            .transpose()
    })
    .map_err(|error| catalog::damaged(&error.to_string()))?;
    let column = found.ok_or_else(|| {
        refused(&format!("no table with a column \"{name}\" was named"))
            .hint("Name a table, not a view, and a column of it as it is spelt in \\d.")
    })?;
    if column.type_name == "bigint" {
        Ok(column)
    } else {
        Err(
            refused(&format!("it is {}, and ids need bigint", column.type_name)).hint(format!(
                "ALTER TABLE {} ALTER {} TYPE bigint first; columns that refer to it as well.",
                column.relation, column.name
            )),
        )
    }
}

/// The largest of what is stored and what the old sequence gave out; row security may hide nothing.
fn largest_used(column: &Column) -> Result<i64, Failure> {
    let before =
        text("SELECT pg_catalog.current_setting('row_security')", &[])?.unwrap_or_default();
    let row_security = |value: &str| {
        run(
            "SELECT pg_catalog.set_config('row_security', $1, true)",
            &[value.to_owned().into()],
        )
        .map(drop)
    };
    row_security("off")?;
    let largest = |query: String| {
        text(&query, &[]).map(|found| found.and_then(|found| found.parse::<i64>().ok()))
    };
    let stored = largest(format!(
        "SELECT pg_catalog.max({})::text FROM {}",
        column.name, column.relation
    ))?;
    let given = match &column.sequence {
        Some(sequence) => largest(format!(
            "SELECT CASE WHEN is_called THEN last_value END::text FROM {sequence}"
        ))?,
        None => None,
    };
    row_security(&before)?;
    Ok(stored.max(given).unwrap_or(0).max(0))
}

/// The table and its partitions: each has a default of its own.
fn replace_defaults(column: &Column, relation: pg_sys::Oid, tag: &str) -> Result<(), Failure> {
    let function = text(
        "SELECT pg_catalog.format('%I.next_biz_id', n.nspname) FROM pg_catalog.pg_extension e \
         JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace \
         WHERE e.extname OPERATOR(pg_catalog.=) 'keywright'",
        &[],
    )?
    .ok_or_else(|| catalog::damaged("the extension has no schema"))?;
    if column.identity {
        run(
            &format!(
                "ALTER TABLE {} ALTER {} DROP IDENTITY",
                column.relation, column.name
            ),
            &[],
        )?;
    }
    let default = format!("{function}({})", pgrx::spi::quote_literal(tag));
    for table in tree(relation)? {
        run(
            &format!(
                "ALTER TABLE {table} ALTER {} SET DEFAULT {default}",
                column.name
            ),
            &[],
        )?;
    }
    Ok(())
}

fn tree(relation: pg_sys::Oid) -> Result<Vec<String>, Failure> {
    pgrx::spi::Spi::connect(|client| {
        client
            .select(
                "WITH RECURSIVE tree(oid) AS (SELECT $1 UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i \
                 JOIN tree t ON i.inhparent OPERATOR(pg_catalog.=) t.oid) \
                 SELECT oid::pg_catalog.regclass::text FROM tree",
                None,
                &[relation.into()],
            )?
            .map(|row| Ok(row.get::<String>(1)?.unwrap_or_default()))
            .collect::<pgrx::spi::Result<Vec<_>>>()
    })
    .map_err(|error| catalog::damaged(&error.to_string()))
}

/// A foreign key column of 32 bits stops taking the new ids when they outgrow it.
fn warn_of_narrow_references(relation: pg_sys::Oid, column: &str) -> Result<(), Failure> {
    let narrow = text(
        "SELECT pg_catalog.string_agg(c.conrelid::pg_catalog.regclass::text OPERATOR(pg_catalog.||) '.' \
            OPERATOR(pg_catalog.||) fa.attname::text, ', ') \
         FROM pg_catalog.pg_constraint c \
         CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(c.conkey), pg_catalog.unnest(c.confkey)) AS k(referring, referred) \
         JOIN pg_catalog.pg_attribute pa ON pa.attrelid OPERATOR(pg_catalog.=) c.confrelid AND pa.attnum OPERATOR(pg_catalog.=) k.referred \
         JOIN pg_catalog.pg_attribute fa ON fa.attrelid OPERATOR(pg_catalog.=) c.conrelid AND fa.attnum OPERATOR(pg_catalog.=) k.referring \
         WHERE c.contype::text OPERATOR(pg_catalog.=) 'f' AND c.confrelid OPERATOR(pg_catalog.=) $1 \
         AND pa.attname::text OPERATOR(pg_catalog.=) $2 \
         AND fa.atttypid IN ('pg_catalog.int4'::pg_catalog.regtype, 'pg_catalog.int2'::pg_catalog.regtype)",
        &[relation.into(), column.into()],
    )?;
    if let Some(narrow) = narrow {
        Failure::new(
            Cause::AdoptRefused,
            "columns that refer to the adopted one are narrower than bigint",
        )
        .detail(format!("They are {narrow}."))
        .hint("ALTER them to bigint before the ids outgrow them.")
        .report(PgLogLevel::WARNING);
    }
    Ok(())
}
