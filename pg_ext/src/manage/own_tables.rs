//! Keywright's own tables and sequences are changed by its functions alone. A row that somebody edits, or that a subscription
//! brings out of another database, has ids come twice; what is not logged is as it was made after a crash.

use std::convert::Infallible;

use keywright_core::cause::Cause;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::pg_extern;
use pgrx::pg_sys;
use pgrx::pg_trigger;
use pgrx::pgbox::AllocatedByPostgres;
use pgrx::trigger_support::PgTrigger;

use crate::catalog::sequences;
use crate::catalog::statements::{self, carry_out};
use crate::failure::{Failure, OrRaise};
use crate::server::{process, relation};

/// Called before rows of keywright.tag and keywright.node are changed or deleted, and before the tables are truncated, whoever
/// does it.
#[pg_trigger(sql = false)]
fn keywright_only_by_functions<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, Infallible> {
    let is_allowed =
        statements::is_own() || process::runs_extension_script() || is_of_elsewhere(trigger);
    is_allowed
        .then_some(())
        .ok_or_else(|| refused("the rows of its tables"))
        .or_raise();
    // What the server goes on with: the new row, or the one to be deleted.
    Ok(trigger.new().or_else(|| trigger.old()))
}

/// Whether a subscription changes the row of a tag that it brought itself: without a sequence here, it issues nothing before
/// somebody says how far it was used.
fn is_of_elsewhere(trigger: &PgTrigger) -> bool {
    let id = trigger
        .old()
        .and_then(|row| row.get_by_name::<i32>("id").ok().flatten());
    process::applies_changes() && id.is_some_and(|id| !sequences::are_of_tag(id))
}

/// Looks at a relation that a statement has just altered.
///
/// # Errors
/// It is one of keywright's, and not as it must be, or a sequence's counter was changed (`counts`) by another than keywright.
pub fn check_altered(altered: pg_sys::Oid, counts: bool) -> Result<(), Failure> {
    if !relation::is_in_schema(altered, c"keywright") || !relation::is_extension_here(c"keywright")
    {
        return Ok(());
    }
    if !relation::is_permanent(altered) {
        return Err(refused("that its tables and sequences are logged").detail(
            "After a crash an unlogged table is empty, and an unlogged sequence begins anew.",
        ));
    }
    if counts && !statements::is_own() && !process::runs_extension_script() {
        return Err(refused("how its sequences count"));
    }
    Ok(())
}

/// Takes from everybody but their owner what the installation's default privileges gave of keywright's relations: whoever may set a sequence
/// back has ids come twice. `condition` says which relations `c`, with `argument` as `$1`.
pub fn take_back_rights(condition: &str, argument: pg_sys::Oid) -> Result<(), Failure> {
    let statements = format!(
        "SELECT pg_catalog.format('REVOKE ALL ON %s keywright.%I FROM %s', \
                CASE WHEN c.relkind OPERATOR(pg_catalog.=) 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.relname, \
                CASE WHEN a.grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid THEN 'PUBLIC' \
                     ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)::pg_catalog.text) END) \
         FROM pg_catalog.pg_class c, LATERAL pg_catalog.aclexplode(c.relacl) a \
         WHERE {condition} AND a.grantee OPERATOR(pg_catalog.<>) c.relowner \
         GROUP BY c.relkind, c.relname, a.grantee"
    );
    carry_out(&statements, &[argument.into()])
}

/// Called once, by the install script, before it grants anything.
#[pg_extern(sql = false)]
fn keywright_take_back_rights() {
    let schema = "c.relnamespace OPERATOR(pg_catalog.=) $1";
    relation::schema(c"keywright")
        .map_or(Ok(()), |keywright| take_back_rights(schema, keywright))
        .or_raise();
}

fn refused(what: &str) -> Failure {
    Failure::new(
        Cause::OwnTables,
        format!("only keywright's functions change {what}: ids could come twice"),
    )
    .hint("Use the functions in schema keywright. Where a subscription does it, publish your own tables only: FOR TABLES IN SCHEMA, or by name.")
}
