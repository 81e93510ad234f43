//! Roles: the one in force, what it may do, and running as the owner of the extension.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::server::text;

// These cannot raise an error, so they are called without the guard that pgrx puts around every other call: it costs
// more than they do, on every id.
mod unguarded {
    use pgrx::pg_sys::Oid;
    unsafe extern "C" {
        pub fn GetUserId() -> Oid;
    }
}

/// The role whose privileges count now.
#[inline]
pub fn user() -> pg_sys::Oid {
    // SAFETY: reads one integer of the process; GetUserId only asserts that it is set, which it is in every session.
    unsafe { unguarded::GetUserId() }
}

/// Object id of a role. Raises the server's error if there is none, with a name that every encoding can show: the server's own would come in Rust's.
pub fn named(name: &CStr) -> pg_sys::Oid {
    // SAFETY: a catalogue look-up by a valid C string, without an error where there is none.
    let role = unsafe { pg_sys::get_role_oid(name.as_ptr(), true) };
    if role == pg_sys::InvalidOid {
        pgrx::ereport!(
            ERROR,
            pgrx::PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            format!("role \"{}\" does not exist", text::shown(name.to_bytes()))
        );
    }
    role
}

/// Whether the role in force is a superuser.
pub fn is_superuser() -> bool {
    // SAFETY: looks the role in force up in the catalogue.
    unsafe { pg_sys::superuser() }
}

/// Whether the role in force owns an extension, as the server's own DROP EXTENSION asks: members of the owner do, and superusers.
pub fn owns_extension(extension: pg_sys::Oid) -> bool {
    // SAFETY: a catalogue look-up by object ids.
    unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let owns = pg_sys::pg_extension_ownercheck(extension, user());
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let owns = pg_sys::object_ownercheck(pg_sys::ExtensionRelationId, extension, user());
        owns
    }
}

/// Whether `user` may use the tag of this sequence. SELECT stands for it: USAGE would also let the role advance the
/// sequence itself with `nextval`, past what shared memory knows.
pub fn may_use_sequence(sequence: pg_sys::Oid, user: pg_sys::Oid) -> bool {
    let wanted = pg_sys::AclMode::from(pg_sys::ACL_SELECT);
    // SAFETY: a catalogue look-up by object id; a relation that is gone raises an ordinary error.
    let result = unsafe { pg_sys::pg_class_aclcheck(sequence, user, wanted) };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// Runs as the owner of the extension until dropped. An error in between leaves the switch to the abort of the
/// (sub)transaction, which restores the role as well.
pub struct AsOwner {
    user: pg_sys::Oid,
    context: i32,
}

impl AsOwner {
    /// Switches to `owner`, in the way the server's own maintenance commands do.
    pub fn new(owner: pg_sys::Oid) -> Self {
        let mut user = pg_sys::InvalidOid;
        let mut context = 0;
        // SAFETY: both out parameters are valid; neither call raises an error.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
            pg_sys::SetUserIdAndSecContext(
                owner,
                context | pg_sys::SECURITY_LOCAL_USERID_CHANGE.cast_signed(),
            );
        }
        Self { user, context }
    }
}

impl Drop for AsOwner {
    fn drop(&mut self) {
        // SAFETY: restores what `new` read; raises no error.
        unsafe { pg_sys::SetUserIdAndSecContext(self.user, self.context) };
    }
}
