//! Keywright's own tables and sequences are changed by its functions alone. A row that somebody edits, or that a subscription
//! brings out of another database, has ids come twice; what is not logged is as it was made after a crash.

use std::convert::Infallible;
use std::ffi::CStr;

use keywright_core::cause::Cause;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::pg_extern;
use pgrx::pg_sys;
use pgrx::pg_trigger;
use pgrx::pgbox::AllocatedByPostgres;
use pgrx::trigger_support::PgTrigger;

use crate::catalog::statements::{self, carry_out};
use crate::catalog::{sequences, triggers};
use crate::failure::{Failure, OrRaise};
use crate::identity::claims;
use crate::server::{process, relation, role};

/// A subscription carries rows and TRUNCATE, and nothing else that is refused here.
const ROWS_HINT: &str = "Use the functions in schema keywright. Where a subscription does it, publish your own tables only, by a new publication (FOR TABLES IN SCHEMA, or by name) and ALTER SUBSCRIPTION ... SET PUBLICATION.";

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
        .ok_or_else(|| refused("the rows of its tables").hint(ROWS_HINT))
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
    if !is_ours(altered) {
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

/// Looks at a table that a statement has just altered, and has the triggers that it turned on fire always, as the install script does: else a subscription
/// changes rows.
///
/// # Errors
/// As [`check_altered`].
pub fn check_altered_table(altered: pg_sys::Oid) -> Result<(), Failure> {
    check_altered(altered, false)?;
    if !is_ours(altered) || process::runs_extension_script() {
        return Ok(());
    }
    triggers::fire_always(altered)
}

fn is_ours(relation: pg_sys::Oid) -> bool {
    relation::is_in_schema(relation, c"keywright") && relation::is_extension_here(c"keywright")
}

/// Whether a relation is one of keywright's that nobody but keywright may rename or move at this moment.
pub fn stays(relation: pg_sys::Oid) -> bool {
    relation::is_in_schema(relation, c"keywright") && stays_here() && is_kept(relation)
}

/// Whether it is the extension's, or of one of its tags. Others are left where a dump brought sequences without their tags.
fn is_kept(relation: pg_sys::Oid) -> bool {
    relation::is_of_an_extension(relation)
        || relation::owner_of_sequence(relation)
            .is_some_and(|table| relation::find(c"keywright", "tag") == Some(table))
}

/// Whether the schema of that name is keywright's, likewise.
pub fn schema_stays(name: &CStr) -> bool {
    name == c"keywright" && stays_here()
}

fn stays_here() -> bool {
    relation::is_extension_here(c"keywright")
        && !statements::is_own()
        && !process::runs_extension_script()
}

/// Refuses what a statement has done to what [`stays`]: under the name of one bound another one would be found.
///
/// # Errors
/// Always.
pub fn refuse_displaced() -> Result<(), Failure> {
    Err(refused("the names of its tables and sequences"))
}

/// Refuses a copy of a database with an object id that somebody chose: with that of a database which was dropped it would pass for it, and its tags would go on
/// where they were when the copy was made.
///
/// # Errors
/// Always.
pub fn refuse_chosen_oid() -> Result<(), Failure> {
    Err(Failure::new(
        Cause::OwnTables,
        "a copy of a database is given no object id: ids could come twice",
    )
    .detail("With the object id of a database that was dropped, its copy would pass for it, and issue ids of its tags once more.")
    .hint("Leave OID out, or make the database from template0."))
}

/// The extension is about to be dropped. Where it goes with the schema of its functions, the server asks only whose that is.
///
/// # Errors
/// It is keywright, and the role in force does not own it.
pub fn may_drop(extension: pg_sys::Oid) -> Result<(), Failure> {
    if !relation::is_extension(c"keywright", extension) || role::owns_extension(extension) {
        return Ok(());
    }
    Err(Failure::new(
        Cause::OwnTables,
        "only its owner drops extension \"keywright\": ids could come twice",
    )
    .detail("It goes with the schema of its functions.")
    .hint("Drop your own tables and functions instead, or the database."))
}

/// Takes from everybody but its owner what the installation's default privileges gave of a sequence of keywright: whoever may set it back
/// has ids come twice.
///
/// # Errors
/// As of [`carry_out`].
pub fn take_back(sequence: pg_sys::Oid) -> Result<(), Failure> {
    revoke("ALL", "c.oid OPERATOR(pg_catalog.=) $1", sequence)
}

/// The same of one that is there: who may use the tag stays.
///
/// # Errors
/// As of [`carry_out`].
pub fn take_back_counters(sequence: pg_sys::Oid) -> Result<(), Failure> {
    revoke("UPDATE, USAGE", "c.oid OPERATOR(pg_catalog.=) $1", sequence)
}

fn revoke(rights: &str, of_which: &str, argument: pg_sys::Oid) -> Result<(), Failure> {
    let statements = format!(
        "SELECT pg_catalog.format('REVOKE {rights} ON %s keywright.%I FROM %s', \
                CASE WHEN c.relkind OPERATOR(pg_catalog.=) 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.relname, {GRANTEE}) \
         FROM pg_catalog.pg_class c, LATERAL pg_catalog.aclexplode(c.relacl) a \
         WHERE {of_which} AND a.grantee OPERATOR(pg_catalog.<>) c.relowner \
         GROUP BY c.relkind, c.relname, a.grantee"
    );
    carry_out(&statements, &[argument.into()])
}

/// Whom a right was given, as REVOKE takes it.
const GRANTEE: &str = "CASE WHEN a.grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid THEN 'PUBLIC' \
     ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)::pg_catalog.text) END";

/// Called once, by the install script, when all is made and before it grants anything but to PUBLIC. What is made is then the new bound of the numbers
/// that the database kept.
#[pg_extern(sql = false)]
fn keywright_take_back_rights() {
    relation::schema(c"keywright")
        .map_or(Ok(()), take_back_all)
        .and_then(|()| claims::go_on())
        .or_raise();
}

fn take_back_all(schema: pg_sys::Oid) -> Result<(), Failure> {
    revoke("ALL", "c.relnamespace OPERATOR(pg_catalog.=) $1", schema)?;
    let functions = format!(
        "SELECT pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::pg_catalog.regprocedure, {GRANTEE}) \
         FROM pg_catalog.pg_proc p, LATERAL pg_catalog.aclexplode(p.proacl) a \
         WHERE p.pronamespace OPERATOR(pg_catalog.=) $1 AND a.grantee OPERATOR(pg_catalog.<>) p.proowner \
           AND a.grantee OPERATOR(pg_catalog.<>) 0::pg_catalog.oid GROUP BY p.oid, a.grantee"
    );
    carry_out(&functions, &[schema.into()])?;
    // Everybody may look into it, nobody may make anything there.
    let itself = format!(
        "SELECT pg_catalog.format('REVOKE ALL ON SCHEMA keywright FROM %s', {GRANTEE}) \
         FROM pg_catalog.pg_namespace n, LATERAL pg_catalog.aclexplode(n.nspacl) a \
         WHERE n.oid OPERATOR(pg_catalog.=) $1 AND a.grantee OPERATOR(pg_catalog.<>) n.nspowner \
         GROUP BY a.grantee \
         UNION ALL SELECT 'GRANT USAGE ON SCHEMA keywright TO PUBLIC'"
    );
    carry_out(&itself, &[schema.into()])
}

fn refused(what: &str) -> Failure {
    Failure::new(
        Cause::OwnTables,
        format!("only keywright's functions change {what}: ids could come twice"),
    )
    .hint("Use the functions in schema keywright.")
}
