//! SQL that says who may use a tag.

use pgrx::pg_extern;

use crate::catalog::run;
use crate::failure::{Failure, OrRaise};
use crate::manage::{existing, required, tag_of};
use crate::session;

fn change_grant(tag: Option<&str>, role: Option<&str>, verb: [&str; 2]) -> Result<(), Failure> {
    let tag = tag_of(tag)?;
    let role = required(role, "the role")?;
    let id = existing(&tag, &session::extension()?)?.id;
    let grantee = if role == "public" {
        "PUBLIC".to_owned()
    } else {
        pgrx::spi::quote_identifier(role)
    };
    let [verb, preposition] = verb;
    run(
        &format!("{verb} SELECT ON SEQUENCE keywright.tag_{id} {preposition} {grantee}"),
        &[],
    )
    .map(drop)
}

#[pg_extern(sql = false)]
fn keywright_grant_tag(tag: Option<&str>, role: Option<&std::ffi::CStr>) {
    let role = role.and_then(|role| role.to_str().ok());
    change_grant(tag, role, ["GRANT", "TO"]).or_raise();
}

#[pg_extern(sql = false)]
fn keywright_revoke_tag(tag: Option<&str>, role: Option<&std::ffi::CStr>) {
    let role = role.and_then(|role| role.to_str().ok());
    change_grant(tag, role, ["REVOKE", "FROM"]).or_raise();
}
