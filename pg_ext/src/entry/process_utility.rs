//! `SECURITY LABEL FOR keywright`, as a restored dump writes it. A registered label provider would make SECURITY LABEL ask for
//! FOR in every session, also for the labels of others; so none is registered, and the one statement that concerns us is
//! carried out here. Every other statement goes to the server untouched; after one that altered a table or a sequence we look whether it
//! was one of ours. A copy of a database with a chosen object id is refused.

use std::ffi::{CStr, c_char};

use pgrx::pg_sys;

use crate::cache::time_entry;
use crate::failure::OrRaise;
use crate::identity::{bounds, label};
use crate::manage::own_tables;
use crate::server::backend::BackendCell;
use crate::server::{process, security_label, transaction, wal};

// Not the binding's version: its guard would cost every utility statement a copy of the processor's state.
mod unguarded {
    use pgrx::pg_sys::{
        DestReceiver, ParamListInfo, PlannedStmt, ProcessUtilityContext, QueryCompletion,
        QueryEnvironment,
    };
    use std::ffi::c_char;

    unsafe extern "C-unwind" {
        pub fn standard_ProcessUtility(
            statement: *mut PlannedStmt,
            text: *const c_char,
            read_only_tree: bool,
            context: ProcessUtilityContext::Type,
            parameters: ParamListInfo,
            environment: *mut QueryEnvironment,
            destination: *mut DestReceiver,
            completion: *mut QueryCompletion,
        );
    }
}

static PREVIOUS: BackendCell<pg_sys::ProcessUtility_hook_type> = BackendCell::new(None);

/// Has SECURITY LABEL FOR keywright understood: by every session of a server that preloads the library, and by sessions that
/// loaded it themselves.
pub fn watch_statements() {
    // SAFETY: _PG_init runs this once in a process, which has one thread; the previous hook is kept and called.
    unsafe {
        PREVIOUS.set(pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(on_utility);
    }
}

/// Runs for every utility statement, so it looks at one number and passes on. It owns nothing and is not guarded: an error
/// that the server raises below passes over it as over a function of the server's own, and so does ours.
unsafe extern "C-unwind" fn on_utility(
    statement: *mut pg_sys::PlannedStmt,
    text: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    parameters: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    destination: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: the server passes a planned statement whose tree starts with its tag; the tag says what it is. The provider is
    // null or a C string. What goes on goes with exactly what came, to the hook that was there before ours, or to what the
    // server calls without hooks.
    unsafe {
        let tree = (*statement).utilityStmt;
        if (*tree).type_ == pg_sys::NodeTag::T_SecLabelStmt {
            let label = tree.cast::<pg_sys::SecLabelStmt>();
            let provider = (*label).provider;
            if !provider.is_null() && CStr::from_ptr(provider) == security_label::PROVIDER {
                set_label(label);
                return;
            }
        }
        if (*tree).type_ == pg_sys::NodeTag::T_CreatedbStmt {
            check_new_database(tree.cast::<pg_sys::CreatedbStmt>());
        }
        let altered = (*tree).type_;
        let is_displaced = match altered {
            pg_sys::NodeTag::T_RenameStmt | pg_sys::NodeTag::T_AlterObjectSchemaStmt => {
                displaces(tree)
            }
            _ => false,
        };
        match PREVIOUS.get() {
            Some(previous) => previous(
                statement,
                text,
                read_only_tree,
                context,
                parameters,
                environment,
                destination,
                completion,
            ),
            None => unguarded::standard_ProcessUtility(
                statement,
                text,
                read_only_tree,
                context,
                parameters,
                environment,
                destination,
                completion,
            ),
        }
        match altered {
            pg_sys::NodeTag::T_AlterTableStmt => {
                check_altered_table((*tree.cast::<pg_sys::AlterTableStmt>()).relation);
            }
            pg_sys::NodeTag::T_AlterSeqStmt => {
                let statement = tree.cast::<pg_sys::AlterSeqStmt>();
                check_altered((*statement).sequence, changes_counter((*statement).options));
            }
            _ => {}
        }
        // Behind the server's own refusals.
        if is_displaced {
            refuse_displaced();
        }
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn refuse_displaced() {
    own_tables::refuse_displaced().or_raise();
}

/// Whether a statement renames something of keywright's, or moves it to another schema, by itself. Looked at before it is carried out, while names mean what it
/// means.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn displaces(tree: *const pg_sys::Node) -> bool {
    // SAFETY: the tag says which structure of the grammar's the tree is, and the tree outlives the statement.
    unsafe {
        match (*tree).type_ {
            pg_sys::NodeTag::T_RenameStmt => {
                let statement = tree.cast::<pg_sys::RenameStmt>();
                match (*statement).renameType {
                    pg_sys::ObjectType::OBJECT_SCHEMA => {
                        own_tables::schema_stays(CStr::from_ptr((*statement).subname))
                    }
                    _ => own_tables::stays(relation_of((*statement).relation)),
                }
            }
            pg_sys::NodeTag::T_AlterObjectSchemaStmt => {
                let statement = tree.cast::<pg_sys::AlterObjectSchemaStmt>();
                own_tables::stays(relation_of((*statement).relation))
            }
            _ => false,
        }
    }
}

/// The relation of a name in a statement; none if there is no such relation, or no name.
///
/// # Safety
/// The name must be null, or as the grammar makes it.
unsafe fn relation_of(name: *const pg_sys::RangeVar) -> pg_sys::Oid {
    if name.is_null() {
        return pg_sys::InvalidOid;
    }
    // SAFETY: as the caller says; without a lock and without an error where there is none.
    unsafe {
        pg_sys::RangeVarGetRelidExtended(
            name,
            pg_sys::NoLock.cast_signed(),
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            std::ptr::null_mut(),
        )
    }
}

/// Whether one of an ALTER SEQUENCE statement's options has to do with how the sequence counts.
///
/// # Safety
/// `options` must be null or a list of the grammar's options.
unsafe fn changes_counter(options: *const pg_sys::List) -> bool {
    // SAFETY: as the caller says; each option has a name.
    unsafe {
        let mut options = options_of(options).into_iter();
        options.any(|option| CStr::from_ptr((*option).defname) != c"owned_by")
    }
}

/// The options of a statement.
///
/// # Safety
/// `options` must be null or a list of the grammar's options.
unsafe fn options_of(options: *const pg_sys::List) -> Vec<*mut pg_sys::DefElem> {
    if options.is_null() {
        return Vec::new();
    }
    // SAFETY: the list has as many elements as it says, and each is an option, as the grammar makes them.
    unsafe {
        let count = usize::try_from((*options).length).unwrap_or(0);
        (0..count)
            .map(|place| {
                (*(*options).elements.add(place))
                    .ptr_value
                    .cast::<pg_sys::DefElem>()
            })
            .collect()
    }
}

/// Looks at a CREATE DATABASE before it is carried out: whether it copies a database, and gives the copy an object id that somebody chose. What the server has
/// for templates itself is nobody's copy; pg_upgrade names template0.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn check_new_database(statement: *const pg_sys::CreatedbStmt) {
    const TEMPLATES: [&CStr; 2] = [c"template0", c"template1"];
    // SAFETY: the tag said which structure of the grammar's the statement is, and each option has a name. The server's function reads a name as CREATE DATABASE
    // does, or raises an error as that would.
    let (is_copy, has_oid) = unsafe {
        let (mut is_copy, mut has_oid) = (false, false);
        for option in options_of((*statement).options) {
            let name = CStr::from_ptr((*option).defname);
            has_oid |= name == c"oid";
            // Without a value it is DEFAULT, which is template1.
            if name == c"template" && !(*option).arg.is_null() {
                let template = CStr::from_ptr(pg_sys::defGetString(option));
                is_copy |= !TEMPLATES.contains(&template);
            }
        }
        (is_copy, has_oid)
    };
    if is_copy && has_oid {
        own_tables::refuse_chosen_oid().or_raise();
    }
}

/// Looks at the relation that a statement has altered; the statement has locked it, so its name still means the same.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn check_altered(named: *const pg_sys::RangeVar, counts: bool) {
    // SAFETY: the name is the parse tree's, which outlives the statement. None is found where the statement renamed or dropped it.
    let altered = unsafe { relation_of(named) };
    own_tables::check_altered(altered, counts).or_raise();
}

/// As [`check_altered`], of a statement that may have turned triggers on or off.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn check_altered_table(named: *const pg_sys::RangeVar) {
    // SAFETY: as in `check_altered`.
    let altered = unsafe { relation_of(named) };
    own_tables::check_altered_table(altered).or_raise();
}

/// What the server does for a registered provider, with [`label::check_statement`] as the provider's word. The statement's tag
/// and its end are the server's business; labels of databases tell no event trigger. Whatever it writes takes the database's numbers from it.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn set_label(statement: *const pg_sys::SecLabelStmt) {
    const NAME: &CStr = c"SECURITY LABEL";
    // SAFETY: these read the state of the session and raise an error or return.
    unsafe {
        pg_sys::PreventCommandIfReadOnly(NAME.as_ptr());
        pg_sys::PreventCommandIfParallelMode(NAME.as_ptr());
        pg_sys::PreventCommandDuringRecovery(NAME.as_ptr());
    }
    // SAFETY: the parse tree outlives the statement; its label is null or a C string.
    let label = unsafe {
        let label = (*statement).label;
        (!label.is_null()).then(|| CStr::from_ptr(label).to_str().unwrap_or(""))
    };
    // SAFETY: as above; the kind of object is one of the server's numbers.
    if unsafe { (*statement).objtype } != pg_sys::ObjectType::OBJECT_DATABASE {
        label::check_statement(None, label);
        return;
    }
    // SAFETY: the object is what the grammar makes of the kind's name, so the look-up reads it as such, takes the lock that
    // the server takes for a label, and raises an error when there is none or it is another's. A database has no relation to
    // close. The label is written only after our check, which raises an error or returns.
    let database = unsafe {
        let mut relation = std::ptr::null_mut();
        let address = pg_sys::get_object_address(
            (*statement).objtype,
            (*statement).object,
            &mut relation,
            pg_sys::ShareUpdateExclusiveLock.cast_signed(),
            false,
        );
        pg_sys::check_object_ownership(
            pg_sys::GetUserId(),
            (*statement).objtype,
            address,
            (*statement).object,
            relation,
        );
        label::check_statement(Some(address.objectId.to_u32()), label);
        // What the words of another database belong to only its own sessions can read.
        if address.objectId == process::database() {
            time_entry::attach_own();
        }
        pg_sys::SetSecurityLabel(
            &address,
            security_label::PROVIDER.as_ptr(),
            (*statement).label,
        );
        address.objectId.to_u32()
    };
    // Another server may be given the numbers as soon as this has committed, which must last.
    transaction::force_flush_at_commit();
    wal::have_commit_wait();
    // A word of another database that is used for the first time before the commit is not among these: who does that, goes on with it until his
    // transaction ends.
    bounds::leave_all_words(database);
    security_label::announce();
}
