//! What may stand behind MariaDB's `SET STATEMENT … FOR` and is no plain INSERT.

use keywright_rewrite::{Kind, Unsupported, behind_set_statement, kind, load_target};

use crate::answer::after::After;
use crate::client::text::Reading;
use crate::connection::Connection;

impl Connection {
    /// A statement behind `SET STATEMENT … FOR` that is no INSERT.
    pub(crate) fn behind_set(&self, text: &[u8]) -> Reading {
        let modes = &self.context.modes;
        let Some(behind) = behind_set_statement(text, modes) else {
            return Reading::Pass(After::ANYTHING);
        };
        match kind(behind, modes) {
            Kind::LoadData => match load_target(behind, modes) {
                Some(table) => Reading::Unsupported(
                    table,
                    Unsupported::SetStatementFor("LOAD DATA"),
                    After::ANYTHING,
                ),
                None => Reading::Pass(After::ANYTHING),
            },
            Kind::Insert | Kind::Replace | Kind::SetStatement => {
                Reading::Hidden(Unsupported::SetStatementFor("another SET STATEMENT"))
            }
            Kind::Prepare | Kind::Execute | Kind::ExecuteImmediate => {
                Reading::Hidden(Unsupported::SetStatementFor("PREPARE or EXECUTE"))
            }
            Kind::Compound => Reading::Hidden(Unsupported::SetStatementFor("a compound statement")),
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
            | Kind::Other => Reading::Pass(After::ANYTHING),
        }
    }

    /// The same for one that is prepared: the rule, if it is known, and what forbids it. What hides the table now may be gone when
    /// it is carried out.
    pub(crate) fn hidden_behind_set(&self, text: &[u8]) -> Option<(Option<usize>, Unsupported)> {
        match self.behind_set(text) {
            Reading::Unsupported(table, what, _) => Some((Some(self.rule_behind(&table)?), what)),
            Reading::Hidden(what) => Some((None, what)),
            Reading::Pass(_)
            | Reading::Insert
            | Reading::Load(_)
            | Reading::Prepare(_)
            | Reading::Execute(_) => None,
        }
    }
}
