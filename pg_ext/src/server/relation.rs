//! Catalogue look-ups of tables, sequences and their columns, and what this transaction did to them.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

/// Object id of a relation, if it is there. Raises only what a catalogue look-up raises.
pub fn find(schema: &CStr, name: &str) -> Option<pg_sys::Oid> {
    let name = CString::new(name).ok()?;
    // SAFETY: both names are valid C strings for the duration of the calls.
    let oid = unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        if schema == pg_sys::InvalidOid {
            return None;
        }
        pg_sys::get_relname_relid(name.as_ptr(), schema)
    };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// The number of a relation's column; `None` if there is no such column, or it is one of the system's.
pub fn column_number(relation: pg_sys::Oid, column: &CStr) -> Option<i16> {
    // SAFETY: a catalogue look-up by object id and a valid C string.
    let number = unsafe { pg_sys::get_attnum(relation, column.as_ptr()) };
    (number > 0).then_some(number)
}

/// Whether a relation is there, in the state the session sees now.
pub fn exists(relation: pg_sys::Oid) -> bool {
    // SAFETY: a catalogue look-up; the name, null if there is none, lies in the caller's memory context.
    unsafe { !pg_sys::get_rel_name(relation).is_null() }
}

/// Whether a relation outlasts a crash of the server: neither unlogged nor temporary.
pub fn is_permanent(relation: pg_sys::Oid) -> bool {
    // SAFETY: a catalogue look-up by object id; 0 for one that is not there.
    let persistence = unsafe { pg_sys::get_rel_persistence(relation) };
    persistence.cast_unsigned() == pg_sys::RELPERSISTENCE_PERMANENT
}

/// Object id of a schema, if it is there.
pub fn schema(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: a catalogue look-up by a valid C string.
    let schema = unsafe { pg_sys::get_namespace_oid(name.as_ptr(), true) };
    (schema != pg_sys::InvalidOid).then_some(schema)
}

/// Whether a relation lies in a schema.
pub fn is_in_schema(relation: pg_sys::Oid, name: &CStr) -> bool {
    // SAFETY: a catalogue look-up by object id; 0 for one that is not there.
    let its = unsafe { pg_sys::get_rel_namespace(relation) };
    schema(name) == Some(its)
}

/// Whether this database has an extension of the name.
pub fn is_extension_here(name: &CStr) -> bool {
    // SAFETY: a catalogue look-up by a valid C string.
    unsafe { pg_sys::get_extension_oid(name.as_ptr(), true) != pg_sys::InvalidOid }
}

/// Whether this is the extension of the name in this database.
pub fn is_extension(name: &CStr, extension: pg_sys::Oid) -> bool {
    // SAFETY: a catalogue look-up by a valid C string.
    unsafe { pg_sys::get_extension_oid(name.as_ptr(), true) == extension }
}

/// Whether a relation is a member of an extension.
pub fn is_of_an_extension(relation: pg_sys::Oid) -> bool {
    // SAFETY: a catalogue look-up by object ids.
    unsafe {
        pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, relation) != pg_sys::InvalidOid
    }
}

/// The table that a sequence belongs to, if it is one, by `OWNED BY`.
pub fn owner_of_sequence(sequence: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let (mut table, mut column) = (pg_sys::InvalidOid, 0);
    // The server's DEPENDENCY_AUTO.
    let by_owned = std::ffi::c_char::try_from(b'a').ok()?;
    // SAFETY: a catalogue look-up by object id, which writes the two numbers where it finds something.
    let is_owned =
        unsafe { pg_sys::sequenceIsOwned(sequence, by_owned, &raw mut table, &raw mut column) };
    is_owned.then_some(table)
}

/// Indexes of a table that is locked; none of one that was dropped.
pub fn indexes(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: the table is locked, so its entry in the relation cache can be opened, and it is closed again. The list, null
    // when empty, is a copy in the caller's memory context, and is read at places below its length.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(table);
        if relation.is_null() {
            return Vec::new();
        }
        let indexes = pg_sys::RelationGetIndexList(relation);
        pg_sys::RelationClose(relation);
        if indexes.is_null() {
            return Vec::new();
        }
        let count = usize::try_from((*indexes).length).unwrap_or(0);
        (0..count)
            .map(|place| (*(*indexes).elements.add(place)).oid_value)
            .collect()
    }
}

/// The server's InvalidSubTransactionId.
const NO_SUBTRANSACTION: pg_sys::SubTransactionId = 0;

/// Whether this transaction, or a subtransaction that was not rolled back, made the relation.
pub fn is_created_here(relation: pg_sys::Oid) -> bool {
    // SAFETY: the entry of the relation cache, null if there is no such relation, is pinned until it is closed. The server
    // keeps this field right whatever it reads anew.
    unsafe {
        let entry = pg_sys::RelationIdGetRelation(relation);
        if entry.is_null() {
            return false;
        }
        let created = (*entry).rd_createSubid != NO_SUBTRANSACTION;
        pg_sys::RelationClose(entry);
        created
    }
}

/// Whether this backend's transaction gave a relation new contents, which a rollback takes back.
pub fn is_rewritten_here(relation: pg_sys::Oid) -> bool {
    // SAFETY: as in `is_created_here`.
    unsafe {
        let entry = pg_sys::RelationIdGetRelation(relation);
        if entry.is_null() {
            return false;
        }
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let rewritten = (*entry).rd_firstRelfilenodeSubid;
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let rewritten = (*entry).rd_firstRelfilelocatorSubid;
        pg_sys::RelationClose(entry);
        rewritten != NO_SUBTRANSACTION
    }
}

/// Whether a relation has rules.
pub fn has_rules(relation: pg_sys::Oid) -> bool {
    // SAFETY: as in `is_created_here`.
    unsafe {
        let entry = pg_sys::RelationIdGetRelation(relation);
        if entry.is_null() {
            return false;
        }
        let has_rules = !(*entry).rd_rules.is_null();
        pg_sys::RelationClose(entry);
        has_rules
    }
}

/// The name of a sequence in schema keywright; `None` for any other object.
pub fn own_sequence_name(relation: pg_sys::Oid) -> Option<String> {
    // SAFETY: catalogue look-ups by object id; the name, null if there is none, lies in the caller's memory context.
    unsafe {
        if pg_sys::get_rel_relkind(relation).cast_unsigned() != pg_sys::RELKIND_SEQUENCE {
            return None;
        }
        let schema = pg_sys::get_namespace_oid(c"keywright".as_ptr(), true);
        if schema == pg_sys::InvalidOid || pg_sys::get_rel_namespace(relation) != schema {
            return None;
        }
        let name = pg_sys::get_rel_name(relation);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}
