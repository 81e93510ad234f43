//! What was sent as long data for an execution that does not take place: it must not become part of the next one.

use std::collections::BTreeSet;

use crate::connection::Connection;

impl Connection {
    /// Of a statement that is executed with keys.
    pub(crate) fn forget_long_data(&mut self, id: u32) {
        if let Some(parameters) = self.long_data_of(id)
            && !parameters.is_empty()
        {
            parameters.clear();
            self.ask_to_forget(id);
        }
    }

    /// The same of whatever statement has this number. Of one that is passed on it is not noted whether there is any.
    pub(crate) fn forget_long_data_of_any(&mut self, id: u32) {
        match self.long_data_of(id) {
            Some(_) => self.forget_long_data(id),
            None => self.ask_to_forget(id),
        }
    }

    /// The parameters that have some.
    fn long_data_of(&mut self, id: u32) -> Option<&mut BTreeSet<u16>> {
        let statements = &mut self.statements;
        if let Some(statement) = statements.ours.get_mut(&id) {
            return Some(&mut statement.long_data);
        }
        let select = statements.selects.get_mut(&id)?;
        Some(&mut select.long_data)
    }
}
