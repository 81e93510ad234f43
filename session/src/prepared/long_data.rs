//! What was sent as long data for an execution that does not take place: it must not become part of the next one.

use crate::connection::Connection;

impl Connection {
    pub(crate) fn forget_long_data(&mut self, id: u32) {
        let Some(statement) = self.statements.ours.get_mut(&id) else {
            return;
        };
        if statement.long_data.is_empty() {
            return;
        }
        statement.long_data.clear();
        self.ask_to_forget(id);
    }

    pub(crate) fn forget_long_data_of_select(&mut self, id: u32) {
        let Some(select) = self.statements.selects.get_mut(&id) else {
            return;
        };
        if select.long_data.is_empty() {
            return;
        }
        select.long_data.clear();
        self.ask_to_forget(id);
    }

    /// The same of whatever statement has this number.
    pub(crate) fn forget_long_data_of_any(&mut self, id: u32) {
        if self.statements.ours.contains_key(&id) {
            self.forget_long_data(id);
        } else if self.statements.selects.contains_key(&id) {
            self.forget_long_data_of_select(id);
        } else {
            self.ask_to_forget(id);
        }
    }
}
