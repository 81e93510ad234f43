//! The triggers that keep others from changing keywright's tables. They fire always: one that is turned on as any other is does not fire where a subscription
//! makes the changes.

use pgrx::pg_sys;

use crate::catalog::statements::carry_out;
use crate::failure::Failure;
use crate::server::query;

/// Tables and their triggers, as the install script makes them, in SQL.
const GUARDS: &str = "(VALUES ('tag', 'only_by_functions'), ('tag', 'only_by_functions_whole'), \
     ('tag_secret', 'only_by_functions'), ('tag_secret', 'only_by_functions_whole'), \
     ('node', 'only_by_functions'), ('node', 'only_by_functions_whole'), ('node', 'restored')) AS g (of_table, guard)";

/// Has the triggers of a table that was altered fire always again, if it is one of keywright's: `pg_restore --disable-triggers` turns them off, and on as it
/// does with any table's. Those that are off stay so.
///
/// # Errors
/// As of [`carry_out`].
pub fn fire_always(table: pg_sys::Oid) -> Result<(), Failure> {
    let statements = format!(
        "SELECT pg_catalog.format('ALTER TABLE keywright.%I ENABLE ALWAYS TRIGGER %I', g.of_table, g.guard) \
         FROM {GUARDS}, pg_catalog.pg_class c, pg_catalog.pg_trigger t \
         WHERE c.oid OPERATOR(pg_catalog.=) $1 AND c.relname OPERATOR(pg_catalog.=) g.of_table \
           AND t.tgrelid OPERATOR(pg_catalog.=) c.oid AND t.tgname OPERATOR(pg_catalog.=) g.guard \
           AND t.tgenabled OPERATOR(pg_catalog.<>) 'A' AND t.tgenabled OPERATOR(pg_catalog.<>) 'D'"
    );
    carry_out(&statements, &[table.into()])
}

/// How many of them do not fire always, and which; `None` if all do.
pub fn not_always(owner: pg_sys::Oid) -> Option<(i64, String)> {
    let query = format!(
        "SELECT pg_catalog.count(*), pg_catalog.string_agg(pg_catalog.format('%s on keywright.%s (%s)', g.guard, g.of_table, \
             CASE WHEN t.tgenabled IS NULL THEN 'missing' \
                  WHEN t.tgenabled OPERATOR(pg_catalog.=) 'D' THEN 'disabled' \
                  WHEN t.tgenabled OPERATOR(pg_catalog.=) 'R' THEN 'for a subscription alone' \
                  ELSE 'not for a subscription' END), ', ' ORDER BY g.of_table, g.guard) \
         FROM {GUARDS} LEFT JOIN pg_catalog.pg_trigger t \
           ON t.tgrelid OPERATOR(pg_catalog.=) \
                  pg_catalog.to_regclass('keywright.' OPERATOR(pg_catalog.||) g.of_table)::pg_catalog.oid \
              AND t.tgname OPERATOR(pg_catalog.=) g.guard \
         WHERE COALESCE(t.tgenabled OPERATOR(pg_catalog.<>) 'A', true)"
    );
    let found = query::one_row_as(owner, &query, &[], |row| {
        (row.get::<i64>(1), row.get::<String>(2))
    });
    let (count, named) = found?;
    let count = count.filter(|count| *count > 0)?;
    Some((count, named.unwrap_or_default()))
}
