//! Commands that only name a prepared statement: COM_STMT_SEND_LONG_DATA, COM_STMT_CLOSE and COM_STMT_RESET.

use keywright_wire::answer::Shape;
use keywright_wire::bytes::{HEADER_BYTES, Header, Reader};
use keywright_wire::packets::write_close;

use crate::answer::after::After;
use crate::client::decode::{self, LongData, Undecoded};
use crate::connection::Connection;
use crate::job::Next;
use crate::prepared::statements::LAST_PREPARED;

impl Connection {
    /// COM_STMT_SEND_LONG_DATA: the parameter's index moves by those put in before it.
    pub(crate) fn long_data(&mut self, header: Header, bytes: &[u8]) -> Result<Next, Undecoded> {
        let LongData {
            statement: named,
            parameter: index,
        } = LongData::read(header, bytes)?;
        let id = self.statements.number(named);
        let moved = if let Some(statement) = self.statements.ours.get_mut(&id) {
            statement.long_data.insert(index);
            let mut moved = index;
            for hidden in statement.hidden() {
                moved = moved.saturating_add(u16::from(hidden <= moved));
            }
            moved
        } else if let Some(select) = self.statements.selects.get_mut(&id) {
            select.add_long_data(index)
        } else if self.statements.next_values.contains_key(&id) {
            // Its parameters are ours: its client has none.
            return Ok(self.drop_front(header, bytes).into());
        } else {
            let passed = self.statements.passed.get(&id);
            self.statements.sends_long_data |= passed.is_some_and(|of| of.observed.is_some());
            return Ok(self.pass_named(header, bytes, named, Shape::None, After::Nothing));
        };
        self.up
            .extend_from_slice(bytes.get(..=HEADER_BYTES).unwrap_or_default());
        self.up.extend(id.to_le_bytes());
        self.up.extend(moved.to_le_bytes());
        Ok(self.pass_rest(header, LongData::FRONT_BYTES).into())
    }

    pub(crate) fn close(&mut self, header: Header, bytes: &[u8]) -> Result<Next, Undecoded> {
        let payload = decode::short(header, bytes)?;
        let Some(named) = Reader(payload).u32() else {
            return Ok(self.pass(header, bytes, Shape::None, After::Nothing));
        };
        let id = self.statements.number(named);
        self.statements.passed.remove(&id);
        self.statements.types_of_observed.remove(&id);
        self.statements.selects.remove(&id);
        self.statements.next_values.remove(&id);
        if let Some(number) = self.statements.as_is.remove(&id) {
            write_close(number, &mut self.up);
        }
        if let Some(statement) = self.statements.ours.remove(&id) {
            for made in statement.variants.iter().skip(1) {
                write_close(made.number, &mut self.up);
            }
        }
        let step = self.pass_named(header, bytes, named, Shape::None, After::Nothing);
        if id == self.statements.last {
            self.statements.last = LAST_PREPARED;
        }
        Ok(step)
    }

    pub(crate) fn reset_statement(
        &mut self,
        header: Header,
        bytes: &[u8],
    ) -> Result<Next, Undecoded> {
        let payload = decode::short(header, bytes)?;
        let Some(named) = Reader(payload).u32() else {
            return Ok(self.pass(header, bytes, Shape::Simple, After::Nothing));
        };
        let id = self.statements.number(named);
        if let Some(statement) = self.statements.ours.get_mut(&id) {
            statement.long_data.clear();
        }
        if let Some(select) = self.statements.selects.get_mut(&id) {
            select.long_data.clear();
        }
        Ok(self.pass_named(header, bytes, named, Shape::Simple, After::Nothing))
    }
}
