//! SQL that says who may use a tag.

use std::ffi::CStr;

use pgrx::pg_extern;

use crate::arguments::{required, tag_of};
use crate::catalog::cached;
use crate::catalog::statements::{self, carry_out};
use crate::failure::{Failure, OrRaise};
use crate::guard;
use crate::manage::row::locked_existing;
use crate::server::role;

fn change_grant(
    tag: Option<&[u8]>,
    role: Option<&CStr>,
    [verb, preposition]: [&str; 2],
) -> Result<(), Failure> {
    let tag = tag_of(tag)?;
    let role = required(role, "the role")?;
    let known = locked_existing(&tag, &cached::extension()?)?;
    known.require_sequences(&tag)?;
    let id = known.id;
    let verb = format!("{verb} SELECT ON SEQUENCE keywright.tag_{id} {preposition}");
    if role == c"public" {
        return statements::run(&format!("{verb} PUBLIC"), &[]).map(drop);
    }
    // The server quotes the name, in the database's encoding.
    carry_out(
        &format!(
            "SELECT pg_catalog.format('{verb} %I', rolname) FROM pg_catalog.pg_roles WHERE oid OPERATOR(pg_catalog.=) $1"
        ),
        &[role::named(role).into()],
    )
}

#[pg_extern(sql = false)]
fn keywright_grant_tag(tag: Option<&[u8]>, role: Option<&CStr>) {
    guard::may_manage("grant_tag")
        .and_then(|()| change_grant(tag, role, ["GRANT", "TO"]))
        .or_raise();
}

#[pg_extern(sql = false)]
fn keywright_revoke_tag(tag: Option<&[u8]>, role: Option<&CStr>) {
    guard::may_manage("revoke_tag")
        .and_then(|()| change_grant(tag, role, ["REVOKE", "FROM"]))
        .or_raise();
}
