//! What statements of a kind may change, although their text does not show it.

use keywright_rewrite::Kind;

/// Whether a statement of that kind may change LAST_INSERT_ID() although its text does not name it, and nothing tells.
pub(crate) fn may_set_last_insert_id(kind: Kind) -> bool {
    match kind {
        Kind::LoadData
        | Kind::SetStatement
        | Kind::Execute
        | Kind::ExecuteImmediate
        | Kind::Call
        | Kind::Compound
        | Kind::Other
        | Kind::Analyze => true,
        Kind::Empty
        | Kind::Insert
        | Kind::Replace
        | Kind::Set
        | Kind::Select
        | Kind::With
        | Kind::OtherQuery
        | Kind::Update
        | Kind::Delete
        | Kind::Show
        | Kind::Explain
        | Kind::Do
        | Kind::Handler
        | Kind::Lock
        | Kind::Unlock
        | Kind::Flush
        | Kind::Kill
        | Kind::Use
        | Kind::Prepare
        | Kind::Deallocate
        | Kind::Begin
        | Kind::Commit
        | Kind::Rollback
        | Kind::Savepoint
        | Kind::Xa
        | Kind::CreateTemporary
        | Kind::DropTable
        | Kind::CreateRoutine
        | Kind::Ddl => false,
    }
}

/// Whether a statement may change what the session must know of the server's state.
pub(crate) fn is_opaque(kind: Kind) -> bool {
    match kind {
        Kind::Set
        | Kind::SetStatement
        | Kind::Use
        | Kind::Call
        | Kind::Execute
        | Kind::ExecuteImmediate
        | Kind::Compound
        | Kind::CreateTemporary
        | Kind::Other => true,
        Kind::Empty
        | Kind::Insert
        | Kind::Replace
        | Kind::LoadData
        | Kind::Select
        | Kind::With
        | Kind::OtherQuery
        | Kind::Update
        | Kind::Delete
        | Kind::Show
        | Kind::Explain
        | Kind::Analyze
        | Kind::Do
        | Kind::Handler
        | Kind::Lock
        | Kind::Unlock
        | Kind::Flush
        | Kind::Kill
        | Kind::Prepare
        | Kind::Deallocate
        | Kind::Begin
        | Kind::Commit
        | Kind::Rollback
        | Kind::Savepoint
        | Kind::Xa
        | Kind::DropTable
        | Kind::CreateRoutine
        | Kind::Ddl => false,
    }
}
