//! What else has to do with the ids of a column: the table that it is a part of, and other columns with the same source.

use keywright_core::cause::Cause;
use pgrx::PgLogLevel;

use crate::columns::column::{Column, PARTS, refused};
use crate::failure::Failure;
use crate::server::{query, text};

/// Other columns that draw from a tag or sequence which fills the column or its partitions: common table expressions after
/// [`PARTS`].
const OTHERS: &str = "source AS (SELECT d.refclassid, d.refobjid, s.oid AS sequence, pg_get_expr(ad.adbin, ad.adrelid) AS expression \
          FROM part p JOIN pg_attrdef ad ON ad.adrelid = p.oid AND ad.adnum = p.attnum \
          JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = ad.oid \
          LEFT JOIN pg_class s ON d.refclassid = 'pg_class'::regclass AND s.oid = d.refobjid AND s.relkind = 'S'), \
     other AS (SELECT od.adrelid AS oid, a.attname, format('%I.%I.%I', n.nspname, c.relname, a.attname) COLLATE \"C\" AS name FROM source \
          JOIN pg_depend o ON o.classid = 'pg_attrdef'::regclass AND o.refclassid = source.refclassid AND o.refobjid = source.refobjid \
          JOIN pg_attrdef od ON od.oid = o.objid JOIN pg_class c ON c.oid = od.adrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
          JOIN pg_attribute a ON a.attrelid = od.adrelid AND a.attnum = od.adnum \
          WHERE NOT EXISTS (SELECT FROM part p WHERE p.oid = od.adrelid AND p.attnum = od.adnum) \
          AND (source.sequence IS NOT NULL \
               OR source.refclassid = 'pg_proc'::regclass AND strpos(source.expression, 'next_biz_id(') > 0 \
                  AND strpos(pg_get_expr(od.adbin, od.adrelid), source.expression) > 0))";

/// A table whose partition or child the column's table is, and which gets ids for the column from elsewhere, too.
pub struct Parent {
    /// Its name, with schema.
    name: String,
    /// Name and column as arguments of SQL.
    pub arguments: String,
}

impl Parent {
    /// The topmost table that has a default of its own for the column, or other parts that draw from the same source.
    pub fn of(column: &Column) -> Option<Self> {
        let found = query::one_row(
            &format!(
                "{PARTS}, {OTHERS}, \
                 above(oid, height) AS (SELECT inhparent, 1 FROM pg_inherits WHERE inhrelid = $1 \
                     UNION SELECT i.inhparent, a.height + 1 FROM pg_inherits i JOIN above a ON i.inhrelid = a.oid), \
                 below(top, oid) AS (SELECT oid, oid FROM above \
                     UNION SELECT b.top, i.inhrelid FROM pg_inherits i JOIN below b ON i.inhparent = b.oid) \
                 SELECT s.name, format('%L, %L', s.name, s.attname) \
                 FROM (SELECT format('%I.%I', n.nspname, c.relname) AS name, a.attname, above.height \
                       FROM above JOIN pg_class c ON c.oid = above.oid JOIN pg_namespace n ON n.oid = c.relnamespace \
                       JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped \
                            AND a.attname = (SELECT attname FROM pg_attribute WHERE attrelid = $1 AND attnum = $2) \
                       LEFT JOIN pg_attrdef ad ON ad.adrelid = c.oid AND ad.adnum = a.attnum \
                       WHERE ad.oid IS NOT NULL OR a.attidentity <> '' \
                          OR EXISTS (SELECT FROM below b JOIN other o ON o.oid = b.oid WHERE b.top = above.oid AND o.attname = a.attname)) AS s \
                 ORDER BY s.height DESC LIMIT 1"
            ),
            &column.arguments(),
            |row| [1, 2].map(|column| row.get::<Vec<u8>>(column).unwrap_or_default()),
        )?;
        let [name, arguments] = found.map(|bytes| text::shown(&bytes));
        Some(Self { name, arguments })
    }

    /// Refuses the part: what the rest of the table goes on drawing would come again from the part's new source. `call` is
    /// what to run for the whole.
    pub fn refusal(&self, call: &str) -> Failure {
        refused(&format!(
            "it is part of {}, which gets ids from elsewhere, too",
            self.name
        ))
        .detail("With a source of its own the part would get numbers that the rest of the table gets as well.")
        .hint(format!("Run it for the whole table: {call}."))
    }
}

/// Other columns that draw from the tag or sequence which fills this column or its partitions, for a message.
pub fn with_the_same_source(column: &Column) -> Option<String> {
    let others = query::one_row(
        &format!("{PARTS}, {OTHERS} SELECT string_agg(DISTINCT name, ', ') FROM other"),
        &column.arguments(),
        |row| row.get::<Vec<u8>>(1),
    );
    others.flatten().map(|others| text::shown(&others))
}

/// Tells whoever turned a column over that others go on with the source it had.
pub fn tell_of_those_that_stay(others: Option<String>) {
    if let Some(others) = others {
        Failure::new(
            Cause::AdoptRefused,
            "other columns stay with the tag or sequence that this one drew from",
        )
        .detail(format!("They are {others}."))
        .hint("From now on ids are unique per column, not over all of them.")
        .report(PgLogLevel::NOTICE);
    }
}
