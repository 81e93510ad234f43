//! The client's next command: what it is, and whether it can be passed on untouched.

use keywright_wire::answer::Shape;
use keywright_wire::protocol::{
    COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, COM_CHANGE_USER, COM_CLONE, COM_FIELD_LIST, COM_INIT_DB,
    COM_MULTI, COM_PROCESS_INFO, COM_QUERY, COM_QUIT, COM_RESET_CONNECTION, COM_SET_OPTION,
    COM_STATISTICS, COM_STMT_BULK_EXECUTE, COM_STMT_CLOSE, COM_STMT_EXECUTE, COM_STMT_FETCH,
    COM_STMT_PREPARE, COM_STMT_RESET, COM_STMT_SEND_LONG_DATA, COM_TABLE_DUMP,
};

use crate::answer::after::After;
use crate::client::decode::{self, Undecoded};
use crate::connection::Connection;
use crate::job::Next;
use crate::step::Step;

impl Connection {
    pub(crate) fn command(&mut self, bytes: &[u8]) -> Result<Next, Undecoded> {
        let (header, command) = decode::code(bytes)?;
        Ok(match command {
            COM_QUERY => return self.query(header, bytes),
            COM_STMT_PREPARE => self.prepare(header, bytes),
            COM_STMT_EXECUTE => return self.execute(header, bytes),
            COM_STMT_SEND_LONG_DATA => self.long_data(header, bytes)?,
            COM_STMT_CLOSE => self.close(header, bytes)?,
            COM_STMT_RESET => self.reset_statement(header, bytes)?,
            COM_STMT_FETCH => self.pass(header, bytes, Shape::Fetch, After::Nothing),
            COM_QUIT => self.pass(header, bytes, Shape::None, After::Nothing),
            COM_INIT_DB => {
                let after = After::Database(decode::short(header, bytes)?.to_vec());
                self.pass(header, bytes, Shape::Simple, after)
            }
            COM_FIELD_LIST => self.pass(header, bytes, Shape::Fields, After::Nothing),
            COM_STATISTICS => self.pass(header, bytes, Shape::OnePacket, After::Nothing),
            COM_PROCESS_INFO => self.pass(header, bytes, Shape::Results, After::Nothing),
            COM_CHANGE_USER => {
                decode::short(header, bytes)?;
                Step::Authenticate(header.total()).into()
            }
            COM_BINLOG_DUMP | COM_TABLE_DUMP | COM_BINLOG_DUMP_GTID | COM_CLONE => {
                self.stream(header, bytes)
            }
            COM_SET_OPTION => {
                let option = decode::short(header, bytes)?;
                let after = After::Multi(option.first() == Some(&0));
                self.pass(header, bytes, Shape::Simple, after)
            }
            COM_RESET_CONNECTION => self.pass(header, bytes, Shape::Simple, After::Reset),
            COM_STMT_BULK_EXECUTE => self.bulk_execute(header, bytes)?,
            // The capability is not offered.
            COM_MULTI => return Err(Undecoded::OutOfOrder),
            // COM_CREATE_DB, COM_DROP_DB, COM_REFRESH, COM_SHUTDOWN, COM_PROCESS_KILL, COM_DEBUG, COM_PING, …: OK, EOF or ERR.
            _ => self.pass(header, bytes, Shape::Simple, After::Nothing),
        })
    }
}
