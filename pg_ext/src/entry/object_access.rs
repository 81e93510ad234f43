//! The server's object access hook: the moment a database, the extension, or a sequence of ours, is dropped.

use std::ffi::{c_int, c_void};

use pgrx::pg_sys;

use crate::failure::OrRaise;
use crate::identity::drops;
use crate::manage::own_tables;
use crate::server::backend::BackendCell;

static PREVIOUS: BackendCell<pg_sys::object_access_hook_type> = BackendCell::new(None);

/// Asks the server to tell of every DROP DATABASE. Only while it preloads libraries.
pub fn watch_drops() {
    // SAFETY: _PG_init runs this once in the postmaster, single-threaded; the previous hook is kept and called.
    unsafe {
        PREVIOUS.set(pg_sys::object_access_hook);
        pg_sys::object_access_hook = Some(on_access);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn on_access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    part: c_int,
    argument: *mut c_void,
) {
    if let Some(previous) = PREVIOUS.get() {
        // SAFETY: a hook that was installed before ours, called with what we were called with.
        unsafe { previous(access, class, object, part, argument) };
    }
    if access != pg_sys::ObjectAccessType::OAT_DROP || part != 0 {
        return;
    }
    if class == pg_sys::DatabaseRelationId {
        drops::database(object.to_u32());
    } else if class == pg_sys::RelationRelationId {
        drops::relation(object);
    } else if class == pg_sys::ExtensionRelationId {
        own_tables::may_drop(object).or_raise();
    }
}
