//! What sql_mode makes of a prepared statement's keys, and whether that has changed.

use crate::connection::Connection;
use crate::prepared::passed_statement::SqlMode;
use crate::prepared::statements::Statement;

impl Connection {
    /// What sql_mode says of keys.
    pub(crate) fn sql_mode(&self) -> SqlMode {
        let modes = &self.context.modes;
        (modes.no_auto_value_on_zero, modes.strict)
    }

    /// Whether sql_mode has changed since a statement was prepared, so that a key in its text means something else now.
    pub(crate) fn means_otherwise(&self, statement: &Statement) -> bool {
        let (zero_is_value, _) = statement.sql_mode;
        let plan = &statement.plan;
        (plan.by_mode() && statement.sql_mode != self.sql_mode())
            || (plan.for_zero() && zero_is_value != self.context.modes.no_auto_value_on_zero)
    }
}
