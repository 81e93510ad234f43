//! What may stand behind MariaDB's `SET STATEMENT … FOR` and is no plain INSERT.

use keywright_rewrite::{Kind, Unsupported, behind_set_statement, kind, load_target};

use crate::after::After;
use crate::session::Session;
use crate::text::Look;

impl Session {
    /// A statement behind `SET STATEMENT … FOR` that is no INSERT.
    pub(crate) fn behind_set(&self, text: &[u8]) -> Look {
        let modes = &self.context.modes;
        let Some(behind) = behind_set_statement(text, modes) else {
            return Look::Pass(After::ANYTHING);
        };
        match kind(behind, modes) {
            Kind::LoadData => match load_target(behind, modes) {
                Some(table) => Look::Unsupported(
                    table,
                    Unsupported::SetStatementFor("LOAD DATA"),
                    After::ANYTHING,
                ),
                None => Look::Pass(After::ANYTHING),
            },
            Kind::Insert | Kind::Replace | Kind::SetStatement => {
                Look::Hidden(Unsupported::SetStatementFor("another SET STATEMENT"))
            }
            Kind::Prepare | Kind::Execute | Kind::ExecuteImmediate => {
                Look::Hidden(Unsupported::SetStatementFor("PREPARE or EXECUTE"))
            }
            Kind::Compound => Look::Hidden(Unsupported::SetStatementFor("a compound statement")),
            Kind::Empty
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
            | Kind::Set
            | Kind::Use
            | Kind::Deallocate
            | Kind::Call
            | Kind::Begin
            | Kind::Commit
            | Kind::Rollback
            | Kind::Savepoint
            | Kind::Xa
            | Kind::CreateTemporary
            | Kind::DropTable
            | Kind::CreateRoutine
            | Kind::Ddl
            | Kind::Other => Look::Pass(After::ANYTHING),
        }
    }

    /// The same for one that is prepared: the rule, if it is known, and what forbids it. What hides the table now may be gone when
    /// it is carried out.
    pub(crate) fn hidden_behind_set(&self, text: &[u8]) -> Option<(Option<usize>, Unsupported)> {
        match self.behind_set(text) {
            Look::Unsupported(table, what, _) => Some((Some(self.rule_behind(&table)?), what)),
            Look::Hidden(what) => Some((None, what)),
            Look::Pass(_) | Look::Insert | Look::Load(_) | Look::Prepare(_) | Look::Execute(_) => {
                None
            }
        }
    }
}
