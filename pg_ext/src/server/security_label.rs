//! Security labels as a place for facts that all databases of a server share.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use crate::server::{changes, process, query, transaction};

/// In whose name the labels are. No provider of that name is registered: see [`crate::entry::process_utility`].
pub const PROVIDER: &CStr = c"keywright";

/// pg_shseclabel, which all databases share. Its number is one of the server's that never change.
const CATALOGUE: u32 = 3592;

/// Something that keeps a label of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labelled {
    /// The database of this session: its worker id.
    Database,
    /// Another database of the server, by its object id.
    OtherDatabase(u32),
    /// The tablespace pg_default, which every server has and nobody can drop: the register of worker ids.
    Server,
}

impl Labelled {
    fn address(self) -> pg_sys::ObjectAddress {
        let (class, object) = match self {
            Self::Database => (pg_sys::DatabaseRelationId, process::database()),
            Self::OtherDatabase(database) => {
                (pg_sys::DatabaseRelationId, pg_sys::Oid::from(database))
            }
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

/// Writes the label. The caller holds [`crate::server::lock::try_register`]: the server raises an error when two change one row.
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

/// Makes every session of every database that watches labels look at them again, once the transaction commits.
pub fn announce() {
    changes::announce(CATALOGUE.into());
}

/// Has this session hear of what others [`announce`].
pub fn watch() {
    changes::watch(CATALOGUE.into());
}

/// Whether this transaction wrote the label.
pub fn is_uncommitted(labelled: Labelled) -> bool {
    let address = labelled.address();
    let provider = PROVIDER.to_str().unwrap_or_default();
    is_row_uncommitted(address.classId, address.objectId, provider)
}

/// Whether this transaction wrote the label of an object.
pub fn is_row_uncommitted(class: pg_sys::Oid, object: pg_sys::Oid, provider: &str) -> bool {
    let writer = query::one_row_as(
        pg_sys::BOOTSTRAP_SUPERUSERID.into(),
        "SELECT xmin::pg_catalog.text FROM pg_catalog.pg_shseclabel WHERE classoid OPERATOR(pg_catalog.=) $1 \
         AND objoid OPERATOR(pg_catalog.=) $2 AND provider OPERATOR(pg_catalog.=) $3",
        &[class.into(), object.into(), provider.into()],
        |row| row.get::<String>(1),
    );
    writer
        .flatten()
        .is_some_and(|writer| transaction::wrote_row(&writer))
}
