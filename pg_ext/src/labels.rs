//! Security labels as a place for facts that all databases of a server share, and the moment a database is dropped.

use std::ffi::{CStr, CString, c_int, c_void};

use pgrx::pg_sys;

use crate::backend::BackendCell;
use crate::{catalog, drops};

/// In whose name the labels are. No provider of that name is registered: see [`crate::utility`].
pub const PROVIDER: &CStr = c"keywright";

/// Something that keeps a label of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labelled {
    /// The database of this session: its worker id.
    Database,
    /// The tablespace pg_default, which every server has and nobody can drop: the register of worker ids.
    Server,
}

impl Labelled {
    fn address(self) -> pg_sys::ObjectAddress {
        let (class, object) = match self {
            Self::Database => (pg_sys::DatabaseRelationId, crate::sys::database()),
            Self::Server => (pg_sys::TableSpaceRelationId, pg_sys::DEFAULTTABLESPACE_OID),
        };
        pg_sys::ObjectAddress {
            classId: class,
            objectId: object,
            objectSubId: 0,
        }
    }
}

/// The label, in the newest committed state and this transaction's own.
pub fn get(labelled: Labelled) -> Option<String> {
    let address = labelled.address();
    // SAFETY: a complete address and a constant name; the answer is null or a C string in the caller's memory context.
    unsafe {
        let label = pg_sys::GetSecurityLabel(&address, PROVIDER.as_ptr());
        (!label.is_null()).then(|| CStr::from_ptr(label).to_string_lossy().into_owned())
    }
}

/// Writes the label. The caller holds [`crate::sys::try_lock_workers`]: the server raises an error when two change one row.
pub fn set(labelled: Labelled, label: &str) {
    let Ok(label) = CString::new(label) else {
        return;
    };
    let address = labelled.address();
    // SAFETY: a complete address, a constant name, and a C string that the server copies. The command counter moves on so
    // that this transaction sees what it wrote.
    unsafe {
        pg_sys::SetSecurityLabel(&address, PROVIDER.as_ptr(), label.as_ptr());
        pg_sys::CommandCounterIncrement();
    }
}

/// Whether this transaction wrote the label.
pub fn is_uncommitted(labelled: Labelled) -> bool {
    let address = labelled.address();
    let provider = PROVIDER.to_str().unwrap_or_default();
    catalog::is_label_uncommitted(address.classId, address.objectId, provider)
}

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
    }
}
