//! Executions of `SELECT NEXT VALUE FOR` as they go out.

use std::collections::BTreeSet;

use keywright_core::KeyBatch;
use keywright_wire::bytes::write_packet;
use keywright_wire::params::{Execution, Param};
use keywright_wire::values::BadValue;

use crate::client::attributes::UNKNOWN_TYPE;
use crate::client::query::Whole;
use crate::connection::Connection;
use crate::prepared::param_keys::KeyValues;
use crate::step::Step;

impl Connection {
    /// Sends an execution with these keys as parameters. `Err`: it was refused.
    pub(crate) fn send_next_value_execution(
        &mut self,
        whole: &Whole<'_>,
        (rule, id): (usize, u32),
        keys: &KeyBatch,
    ) -> Result<(), Step> {
        let header = whole.header;
        let rest = whole.payload.get(4..).unwrap_or_default();
        let has_attributes = self.has_attributes();
        let execution = match Execution::read(rest, 0, None, &BTreeSet::new(), has_attributes) {
            Ok(execution) => execution,
            Err(BadValue::Malformed) => return Err(self.tell_malformed(header)),
            Err(BadValue::Type) => {
                return Err(self.refuse_unsupported(header, Some(rule), UNKNOWN_TYPE));
            }
        };
        let values = KeyValues::new(keys);
        let count = usize::try_from(keys.len()).unwrap_or(usize::MAX);
        let mut params: Vec<Param<'_>> = (0..count).map_while(|at| values.param(at)).collect();
        // Attributes come behind parameters.
        params.extend(execution.params.iter().cloned());
        let mut sent = Vec::new();
        execution.write(id, &params, &mut sent);
        write_packet(&sent, 0, &mut self.up);
        self.answer.expect(execution.shape());
        Ok(())
    }
}
