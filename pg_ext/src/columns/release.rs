//! keywright.release: a column goes back to a sequence of its own, above all that was issued for it. It runs as the caller,
//! who must own the table.

use std::ffi::CStr;

use keywright_core::cause::Cause;
use keywright_core::residue::Residue;
use pgrx::{pg_extern, pg_sys};

use crate::catalog::cached;
use crate::catalog::statements::carry_out;
use crate::columns::column::{Column, Purpose, not_keywrights, refused};
use crate::columns::filler::Filler;
use crate::columns::relatives::{self, Parent};
use crate::failure::{Failure, OrRaise};
use crate::guard;
use crate::manage::definition;
use crate::server::query;
use crate::server::role::AsOwner;

#[pg_extern(sql = false)]
fn keywright_release(relation: Option<pg_sys::Oid>, column: Option<&CStr>) -> i64 {
    let release = || {
        guard::may_manage("release")?;
        let (Some(relation), Some(column)) = (relation, column) else {
            return Err(Failure::new(
                Cause::ArgumentNull,
                "release needs a table and a column; none may be null",
            )
            .hint("For instance SELECT keywright.release('orders', 'id')."));
        };
        release(&Column::lock(relation, column, Purpose::Release)?)
    };
    release().or_raise()
}

/// Returns the first number of the sequence.
fn release(column: &Column) -> Result<i64, Failure> {
    let fillers = column.fillers()?;
    if fillers.is_empty() {
        return Err(not_keywrights());
    }
    if let Some(parent) = Parent::of(column) {
        let arguments = &parent.arguments;
        return Err(parent.refusal(&format!("SELECT keywright.release({arguments})")));
    }
    let mut above = column.largest()?;
    for filler in &fillers {
        above = above.max(filler.issued_up_to()?);
    }
    if above >= definition::ID_MAX {
        return Err(refused(&format!(
            "ids up to {above} may have been issued, and a sequence ends at {}",
            i64::MAX
        ))
        .hint("Keep keywright for this column, or give it new numbers by hand."));
    }
    let class = one_class(&fillers)?;
    let end = end_of(&fillers)?;
    let start = class.first_from(above.cast_unsigned() + 1);
    let start = start.filter(|start| *start <= end.cast_unsigned());
    let start = start.map(u64::cast_signed).ok_or_else(|| {
        refused(&format!(
            "ids up to {above} may have been issued, and no other is left up to {end}"
        ))
        .hint("Raise the tag's end with keywright.alter_tag, or keep keywright for this column.")
    })?;
    let sequence = make_sequence(column, (start, end), class)?;
    for filler in &fillers {
        grant_alike(sequence, filler)?;
    }
    let others = relatives::with_the_same_source(column);
    column.set_default(&format!(
        "(SELECT format('nextval(%L::regclass)', format('%I.%I', n.nspname, c.relname)) FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = {})",
        sequence.to_u32()
    ))?;
    relatives::tell_of_those_that_stay(others);
    Ok(start)
}

/// The last number that all of them may issue.
pub(super) fn end_of(fillers: &[Filler]) -> Result<i64, Failure> {
    let mut end = i64::MAX;
    for filler in fillers {
        end = end.min(filler.end()?.unwrap_or(i64::MAX));
    }
    Ok(end)
}

/// The class of the ids that all of them issue.
///
/// # Errors
/// They differ.
pub(super) fn one_class(fillers: &[Filler]) -> Result<Residue, Failure> {
    let mut classes = Vec::new();
    for filler in fillers {
        classes.push(filler.class()?);
    }
    let first = classes.first().copied().unwrap_or(Residue::ALL);
    if classes.iter().all(|class| *class == first) {
        return Ok(first);
    }
    Err(
        refused("the tags that fill it have unlike increments").hint(
            "Give them the same with keywright.alter_tag, or set the column's default by ALTER TABLE.",
        ),
    )
}

/// Table and column with the name of a sequence for them, as the server names those of serial columns: with the number that
/// `number`, an SQL expression, yields, unless it is 0.
fn named(number: &str) -> String {
    format!(
        "SELECT c.relname, c.relnamespace, c.relowner, n.nspname, a.attname, \
         (CASE WHEN octet_length(c.relname::text) + octet_length(a.attname::text) <= 54 \
               THEN c.relname::text || '_' || a.attname::text \
               ELSE left(c.relname::text, 6) || '_' || left(a.attname::text, 6) END \
          || '_seq' || CASE WHEN {number} = 0 THEN '' ELSE {number}::text END)::name AS name \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid \
         WHERE c.oid = $1 AND a.attnum = $2"
    )
}

/// A sequence that begins at `start`, ends at `end`, goes on in the steps of `class`, and is dropped with the column, owned by whoever owns the table.
fn make_sequence(
    column: &Column,
    (start, end): (i64, i64),
    class: Residue,
) -> Result<pg_sys::Oid, Failure> {
    let [relation, attribute] = column.arguments();
    let taken =
        "SELECT FROM pg_class o WHERE o.relnamespace = s.relnamespace AND o.relname = s.name";
    let number = query::one_row(
        &format!(
            "SELECT k FROM generate_series(0, 9999) AS k CROSS JOIN LATERAL ({}) AS s WHERE NOT EXISTS ({taken}) ORDER BY k LIMIT 1",
            named("k")
        ),
        &[relation, attribute],
        |row| row.get::<i32>(1),
    );
    let number = number.flatten().unwrap_or(0);
    let [relation, attribute] = column.arguments();
    let arguments = [relation, attribute, number.into()];
    let named = named("$3");
    let increment = class.modulus();
    let each = |statement: &str| carry_out(&format!("SELECT {statement}"), &arguments);
    each(&format!(
        "format('CREATE SEQUENCE %I.%I AS bigint INCREMENT BY {increment} MAXVALUE {end} START WITH {start}', s.nspname, s.name) FROM ({named}) AS s"
    ))?;
    let sequence = query::one_row(
        &format!(
            "SELECT o.oid FROM ({named}) AS s JOIN pg_class o ON o.relnamespace = s.relnamespace AND o.relname = s.name"
        ),
        &arguments,
        |row| row.get::<pg_sys::Oid>(1),
    );
    each(&format!(
        "format('ALTER SEQUENCE %I.%I OWNER TO %I', s.nspname, s.name, pg_get_userbyid(s.relowner)) FROM ({named}) AS s \
         WHERE s.relowner <> (SELECT oid FROM pg_roles WHERE rolname = current_user)"
    ))?;
    each(&format!(
        "format('ALTER SEQUENCE %I.%I OWNED BY %I.%I.%I', s.nspname, s.name, s.nspname, s.relname, s.attname) FROM ({named}) AS s"
    ))?;
    sequence
        .flatten()
        .ok_or_else(|| refused("the sequence that was made for it is not there"))
}

/// Lets those use the sequence who might use what filled the column before, or their inserts would fail.
fn grant_alike(sequence: pg_sys::Oid, filler: &Filler) -> Result<(), Failure> {
    let rights = {
        let _owner = AsOwner::new(cached::extension()?.owner);
        filler.rights()?
    };
    let grant = "SELECT format('GRANT USAGE ON SEQUENCE %I.%I TO %s', n.nspname, s.relname,";
    let to = "FROM pg_class s JOIN pg_namespace n ON n.oid = s.relnamespace";
    match rights {
        None => carry_out(
            &format!("{grant} 'PUBLIC') {to} WHERE s.oid = $1"),
            &[sequence.into()],
        ),
        Some(rights) => carry_out(
            &format!(
                "{grant} CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END) {to} \
                 CROSS JOIN pg_class t CROSS JOIN LATERAL aclexplode(COALESCE(t.relacl, acldefault('s', t.relowner))) AS g \
                 WHERE s.oid = $1 AND t.oid = $2 AND g.privilege_type = 'SELECT' AND g.grantee <> t.relowner"
            ),
            &[sequence.into(), rights.into()],
        ),
    }
}
