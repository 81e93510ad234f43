//! A column that ids go into: what fills it now, how far, and what shall fill it. The functions that use this run as the
//! caller, with a fixed search path. Names stay in the database's encoding: the server itself puts them into statements.

use std::ffi::CStr;

use keywright_core::cause::Cause;
use keywright_core::residue::Residue;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;

use crate::catalog::statements::{self, run};
use crate::columns::filler::{Filler, FillerError};
use crate::failure::Failure;
use crate::guard;
use crate::server::{query, relation, text};

/// The table ($1) with its partitions and heirs, and the column of each that is named as the table's column number $2.
pub const PARTS: &str = "WITH RECURSIVE tree(oid) AS (SELECT $1 UNION SELECT i.inhrelid FROM pg_inherits i JOIN tree t ON i.inhparent = t.oid), \
     part AS (SELECT t.oid, a.attnum, a.attname, c.relname, n.nspname FROM tree t \
              JOIN pg_class c ON c.oid = t.oid JOIN pg_namespace n ON n.oid = c.relnamespace \
              JOIN pg_attribute a ON a.attrelid = t.oid AND NOT a.attisdropped \
              AND a.attname = (SELECT attname FROM pg_attribute WHERE attrelid = $1 AND attnum = $2))";

/// Whether the default "ad" of a column calls a function of keywright.
const IS_KEYWRIGHTS: &str = "EXISTS (SELECT FROM pg_depend d \
     JOIN pg_depend m ON m.classid = 'pg_proc'::regclass AND m.objid = d.refobjid \
          AND m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e' \
     JOIN pg_extension e ON e.oid = m.refobjid AND e.extname = 'keywright' \
     WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = ad.oid AND d.refclassid = 'pg_proc'::regclass)";

/// What a column is locked for.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// It goes over to ids of keywright.
    Adopt,
    /// It goes back to a sequence.
    Release,
}

/// A bigint column of a table.
pub struct Column {
    relation: pg_sys::Oid,
    number: i16,
}

/// Refuses a column.
pub fn refused(why: &str) -> Failure {
    Failure::new(
        Cause::AdoptRefused,
        format!("the column is left as it is: {why}"),
    )
}

/// Refuses to release a column that keywright does not fill.
pub fn not_keywrights() -> Failure {
    refused("no id of keywright goes into it by default").hint(
        "It does not draw from keywright, so there is nothing to release: a sequence fills it, or nothing does.",
    )
}

/// The sequences behind the column in each part: those it owns, and those its defaults name.
const SEQUENCES: &str = "FROM part p LEFT JOIN pg_attrdef ad ON ad.adrelid = p.oid AND ad.adnum = p.attnum \
     JOIN pg_depend d ON (d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass \
                          AND d.refobjid = p.oid AND d.refobjsubid = p.attnum AND d.deptype IN ('a', 'i')) \
          OR (d.classid = 'pg_attrdef'::regclass AND d.objid = ad.oid AND d.refclassid = 'pg_class'::regclass) \
     JOIN pg_class s ON s.oid IN (d.objid, d.refobjid) AND s.relkind = 'S' JOIN pg_namespace n ON n.oid = s.relnamespace";

impl Column {
    /// The column of that name, with its table locked against inserts until the transaction ends.
    ///
    /// # Errors
    /// It is no bigint column of a table, or the transaction would not see what was inserted before the lock.
    pub fn lock(relation: pg_sys::Oid, name: &CStr, purpose: Purpose) -> Result<Self, Failure> {
        guard::require_preload()?;
        refuse_old_snapshot()?;
        Self::find(relation, name, purpose)?;
        statements::carry_out(
            "SELECT format('LOCK TABLE %I.%I IN SHARE ROW EXCLUSIVE MODE', n.nspname, c.relname) \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1",
            &[relation.into()],
        )?;
        // It may have been altered while this waited.
        Self::find(relation, name, purpose)
    }

    fn find(relation: pg_sys::Oid, name: &CStr, purpose: Purpose) -> Result<Self, Failure> {
        let none = || {
            let name = text::shown(name.to_bytes());
            refused(&format!("no table with a column \"{name}\" was named"))
                .hint("Name a table, not a view, and a column of it as it is spelt in \\d.")
        };
        let number = relation::column_number(relation, name).ok_or_else(none)?;
        let column = Self { relation, number };
        let found = query::one_row(
            &format!(
                "SELECT format_type(a.atttypid, NULL), c.oid::regclass::text, quote_ident(a.attname), \
                 CASE WHEN {IS_KEYWRIGHTS} THEN 'y' ELSE '' END \
                 FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
                 LEFT JOIN pg_attrdef ad ON ad.adrelid = a.attrelid AND ad.adnum = a.attnum \
                 WHERE a.attrelid = $1 AND a.attnum = $2 AND c.relkind IN ('r', 'p')"
            ),
            &column.arguments(),
            |row| [1, 2, 3, 4].map(|column| row.get::<Vec<u8>>(column).unwrap_or_default()),
        );
        let [type_name, table, quoted, is_keywrights] =
            found.ok_or_else(none)?.map(|bytes| text::shown(&bytes));
        if column.is_in_own_table() {
            return Err(
                refused("it is in a table of keywright's own").hint("Name a table of yours.")
            );
        }
        if type_name == "bigint" {
            return Ok(column);
        }
        let hint = match purpose {
            Purpose::Release if is_keywrights.is_empty() => return Err(not_keywrights()),
            Purpose::Release => {
                format!(
                    "Run ALTER TABLE {table} ALTER {quoted} DROP DEFAULT, or set another default."
                )
            }
            Purpose::Adopt => format!(
                "ALTER TABLE {table} ALTER {quoted} TYPE bigint first; columns that refer to it as well."
            ),
        };
        Err(refused(&format!("it is {type_name}, and ids need bigint")).hint(hint))
    }

    /// Whether the table, or one below it, is the extension's.
    fn is_in_own_table(&self) -> bool {
        let own = format!(
            "{PARTS} SELECT true FROM part p JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = p.oid \
             AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass \
             JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'keywright'"
        );
        query::one_row(&own, &self.arguments(), |_| ()).is_some()
    }

    /// Its table and its number there, as arguments of a query.
    pub fn arguments(&self) -> [DatumWithOid<'static>; 2] {
        [self.relation.into(), self.number.into()]
    }

    /// The largest of what is stored and what sequences behind the column gave out; at least 0. Row security may hide
    /// nothing.
    ///
    /// # Errors
    /// None of its own; raises the server's where the role may not see all.
    pub fn largest(&self) -> Result<i64, Failure> {
        let row_security = |value: &str| {
            let set = "SELECT set_config('row_security', $1, true)";
            run(set, &[value.to_owned().into()]).map(drop)
        };
        let before = query::one_row("SELECT current_setting('row_security')", &[], |row| {
            row.get::<String>(1)
        });
        row_security("off")?;
        let stored = "SELECT format('SELECT max(%I) FROM %I.%I', a.attname, n.nspname, c.relname) FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE c.oid = $1 AND a.attnum = $2"
            .to_owned();
        // One that was not called since it was made or restarted gives last_value next; what it gave before nobody knows.
        let given = format!(
            "{PARTS} SELECT DISTINCT format('SELECT CASE WHEN is_called THEN last_value ELSE last_value - least(%s, last_value) END FROM %I.%I', \
                 q.seqincrement, n.nspname, s.relname) {SEQUENCES} JOIN pg_sequence q ON q.seqrelid = s.oid"
        );
        let largest = [stored, given]
            .iter()
            .flat_map(|makes_queries| statements::texts(makes_queries, &self.arguments()))
            .filter_map(|query| query::number(&query))
            .fold(0, i64::max);
        row_security(before.flatten().as_deref().unwrap_or("on"))?;
        Ok(largest)
    }

    /// The last number that the sequences behind the column may give, where it is not the last of their type; `None`: they have no such end.
    ///
    /// # Errors
    /// One of them goes down.
    pub fn end(&self) -> Result<Option<i64>, Failure> {
        let found = query::one_row(
            &format!(
                "{PARTS} SELECT min(q.seqmax) FILTER (WHERE q.seqmax < CASE q.seqtypid WHEN 'int2'::regtype THEN 32767 \
                     WHEN 'int4'::regtype THEN 2147483647 ELSE 9223372036854775807 END), bool_or(q.seqincrement < 0) {SEQUENCES} \
                 JOIN pg_sequence q ON q.seqrelid = s.oid"
            ),
            &self.arguments(),
            |row| (row.get::<i64>(1), row.get::<bool>(2)),
        );
        match found {
            Some((_, Some(true))) => Err(refused("its sequence goes down, and ids of tags go up")
                .hint("ALTER SEQUENCE ... INCREMENT 1 first, with a value above all others that are in use anywhere.")),
            Some((end, _)) => Ok(end),
            None => Ok(None),
        }
    }

    /// Whether a default is more than a call of nextval: then its numbers are not those of the sequence.
    pub fn is_computed(&self) -> bool {
        query::one_row(
            &format!(
                "{PARTS} SELECT true {SEQUENCES} WHERE ad.oid IS NOT NULL AND d.classid = 'pg_attrdef'::regclass \
                 AND pg_get_expr(ad.adbin, ad.adrelid) !~ '^nextval[(]''[^()]*''::regclass[)]$' LIMIT 1"
            ),
            &self.arguments(),
            |_| (),
        )
        .is_some()
    }

    /// Whether a default names no sequence and no source of keywright's, so that nothing says how far it came.
    pub fn is_filled_by_others(&self) -> bool {
        query::one_row(
            &format!(
                "{PARTS} SELECT true FROM part p JOIN pg_attrdef ad ON ad.adrelid = p.oid AND ad.adnum = p.attnum \
                 WHERE NOT {IS_KEYWRIGHTS} AND NOT EXISTS (SELECT FROM pg_depend d \
                     JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S' \
                     WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = ad.oid AND d.refclassid = 'pg_class'::regclass) LIMIT 1"
            ),
            &self.arguments(),
            |_| (),
        )
        .is_some()
    }

    /// The class of numbers that the sequences behind the column give, where they go on by more than 1; `None`: they do not.
    ///
    /// # Errors
    /// They go on in unlike steps, or by more than is an increment.
    pub fn class(&self) -> Result<Option<Residue>, Failure> {
        // Names may be of any encoding, so a query gives one number: both, or the increment alone, negative.
        let queries = statements::texts(
            &format!(
                "{PARTS} SELECT DISTINCT format('SELECT CASE WHEN %1$s > 65535 THEN -%1$s \
                     ELSE %1$s::bigint * 65536 + (last_value %% %1$s + %1$s) %% %1$s END FROM %2$I.%3$I', \
                     q.seqincrement, n.nspname, s.relname) {SEQUENCES} \
                 JOIN pg_sequence q ON q.seqrelid = s.oid WHERE q.seqincrement > 1"
            ),
            &self.arguments(),
        );
        let mut class = None;
        for query in queries {
            let both = query::number(&query).unwrap_or(0);
            let (increment, remainder) = (both >> 16, both & 0xffff);
            let its = Residue::new(increment, remainder).map_err(|_| {
                refused(&format!(
                    "its sequence goes on by {}, and a tag by {} at most",
                    both.unsigned_abs(),
                    Residue::MODULUS_MAX
                ))
                .hint("ALTER SEQUENCE ... INCREMENT 1 first, if no other database has the numbers in between.")
            })?;
            if class.replace(its).is_some_and(|other| other != its) {
                return Err(refused("its sequences go on in unlike steps").hint(
                    "Give them the same INCREMENT first, and values that leave the same remainder.",
                ));
            }
        }
        Ok(class)
    }

    /// What of keywright fills the column now, in the table and its partitions.
    ///
    /// # Errors
    /// A default uses keywright in a way that does not show whose ids they are.
    pub fn fillers(&self) -> Result<Vec<Filler>, Failure> {
        let defaults = query::rows(
            &format!(
                "{PARTS} SELECT DISTINCT pg_get_expr(ad.adbin, ad.adrelid), quote_ident(n.nspname) || '.' \
                 FROM part p JOIN pg_attrdef ad ON ad.adrelid = p.oid AND ad.adnum = p.attnum \
                 JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = ad.oid AND d.refclassid = 'pg_proc'::regclass \
                 JOIN pg_depend m ON m.classid = 'pg_proc'::regclass AND m.objid = d.refobjid \
                      AND m.refclassid = 'pg_extension'::regclass AND m.deptype = 'e' \
                 JOIN pg_extension e ON e.oid = m.refobjid AND e.extname = 'keywright' \
                 JOIN pg_namespace n ON n.oid = e.extnamespace"
            ),
            &self.arguments(),
            |row| [1, 2].map(|column| row.get::<Vec<u8>>(column).unwrap_or_default()),
        );
        let filler = |[default, schema]: [Vec<u8>; 2]| {
            Filler::of_default(&default, &schema).map_err(|error| match error {
                FillerError::Unclear => refused("its default does not show whose ids they are").hint(
                    "Set the default to snowflake_id(), or to next_biz_id of a tag in quotes, first.",
                ),
                FillerError::NoTag => refused("its default names a tag that does not exist").hint(
                    "Nothing was ever issued for it: ALTER TABLE ... ALTER ... DROP DEFAULT, or set another default.",
                ),
            })
        };
        defaults.into_iter().map(filler).collect()
    }

    /// Has the column filled by the default that `expression`, an SQL expression, yields as text: in the table and its
    /// partitions, each of which has a default of its own.
    ///
    /// # Errors
    /// None of its own; raises the server's.
    pub fn set_default(&self, expression: &str) -> Result<(), Failure> {
        statements::carry_out(
            "SELECT format('ALTER TABLE %I.%I ALTER %I DROP IDENTITY', n.nspname, c.relname, a.attname) FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE c.oid = $1 AND a.attnum = $2 AND a.attidentity <> ''",
            &self.arguments(),
        )?;
        statements::carry_out(
            &format!(
                "{PARTS} SELECT format('ALTER TABLE %I.%I ALTER %I SET DEFAULT %s', p.nspname, p.relname, p.attname, {expression}) \
                 FROM part p"
            ),
            &self.arguments(),
        )
    }

    /// Columns that refer to this one and cannot hold what bigint can, for a message.
    pub fn narrow_references(&self) -> Option<String> {
        let narrow = query::one_row(
            "SELECT string_agg(c.conrelid::regclass::text || '.' || fa.attname::text, ', ') FROM pg_constraint c \
             CROSS JOIN LATERAL ROWS FROM (unnest(c.conkey), unnest(c.confkey)) AS k(referring, referred) \
             JOIN pg_attribute fa ON fa.attrelid = c.conrelid AND fa.attnum = k.referring \
             WHERE c.contype = 'f' AND c.confrelid = $1 AND k.referred = $2 \
             AND fa.atttypid IN ('int4'::regtype, 'int2'::regtype)",
            &self.arguments(),
            |row| row.get::<Vec<u8>>(1),
        );
        narrow.flatten().map(|narrow| text::shown(&narrow))
    }
}

/// A transaction with isolation above READ COMMITTED goes on seeing what was there before the lock.
fn refuse_old_snapshot() -> Result<(), Failure> {
    let isolation = query::one_row(
        "SELECT current_setting('transaction_isolation')",
        &[],
        |row| row.get::<String>(1),
    );
    match isolation.flatten().as_deref() {
        Some("read committed" | "read uncommitted") => Ok(()),
        Some(_) | None => Err(refused(
            "a transaction with isolation above READ COMMITTED would see it as it was before the lock",
        )
        .hint("Use a READ COMMITTED transaction.")),
    }
}
