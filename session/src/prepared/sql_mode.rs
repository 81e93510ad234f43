//! What sql_mode makes of a prepared statement's keys, and whether that has changed.

use keywright_rewrite::Care;

use crate::connection::Connection;
use crate::prepared::passed_statement::SqlMode;
use crate::prepared::statements::Statement;

impl Connection {
    /// What sql_mode says of keys.
    pub(crate) fn sql_mode(&self) -> SqlMode {
        let modes = &self.context.modes;
        (
            modes.no_auto_value_on_zero,
            modes.strict,
            modes.empty_is_null,
        )
    }

    /// What is known beside a bound key of a row. Whether a bound `''` is NULL was decided when the statement was prepared.
    pub(crate) fn care_of(&self, statement: &Statement, row: u32) -> Care {
        let (.., was_null) = statement.sql_mode;
        let mut care = statement.plan.care(&self.context.modes, row);
        care.empty_is_null |= was_null;
        care
    }

    /// Whether sql_mode has changed since a statement was prepared, so that a key in its text means something else now.
    pub(crate) fn means_otherwise(&self, statement: &Statement) -> bool {
        let (zero_is_value, ..) = statement.sql_mode;
        let plan = &statement.plan;
        (plan.by_mode() && statement.sql_mode != self.sql_mode())
            || (plan.for_zero() && zero_is_value != self.context.modes.no_auto_value_on_zero)
    }
}
