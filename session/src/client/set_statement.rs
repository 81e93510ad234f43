//! What may stand behind MariaDB's `SET STATEMENT … FOR` and is no plain INSERT.

use keywright_rewrite::{
    RowsFrom, SetStatementTarget, Unsupported, behind_set_statement, kind, load_target,
};

use crate::answer::after::After;
use crate::client::reading::Reading;
use crate::connection::Connection;

impl Connection {
    /// A statement behind `SET STATEMENT … FOR` that is no INSERT.
    pub(crate) fn behind_set(&self, text: &[u8]) -> Reading {
        let modes = &self.context.modes;
        let Some(behind) = behind_set_statement(text, modes) else {
            return Reading::Pass(After::ANYTHING);
        };
        match kind(behind, modes).facts().rows {
            RowsFrom::File => match load_target(behind, modes) {
                Some(table) => Reading::Unsupported(
                    table,
                    Unsupported::SetStatementFor(SetStatementTarget::LoadData),
                    After::ANYTHING,
                ),
                None => Reading::Pass(After::ANYTHING),
            },
            RowsFrom::Written | RowsFrom::BehindSet => Reading::Hidden(
                Unsupported::SetStatementFor(SetStatementTarget::SetStatement),
            ),
            RowsFrom::OfText | RowsFrom::Prepared => {
                Reading::Hidden(Unsupported::SetStatementFor(SetStatementTarget::Prepared))
            }
            RowsFrom::Block => {
                Reading::Hidden(Unsupported::SetStatementFor(SetStatementTarget::Block))
            }
            RowsFrom::Never | RowsFrom::Unseen | RowsFrom::Blank => Reading::Pass(After::ANYTHING),
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
            | Reading::NextValue(_)
            | Reading::Prepare(_)
            | Reading::Execute(_) => None,
        }
    }
}
