//! First bytes of commands and answers, by the protocol's own names.

pub(crate) const COM_QUIT: u8 = 0x01;
pub(crate) const COM_INIT_DB: u8 = 0x02;
pub(crate) const COM_QUERY: u8 = 0x03;
pub(crate) const COM_FIELD_LIST: u8 = 0x04;
pub(crate) const COM_STATISTICS: u8 = 0x09;
pub(crate) const COM_PROCESS_INFO: u8 = 0x0A;
pub(crate) const COM_CHANGE_USER: u8 = 0x11;
pub(crate) const COM_BINLOG_DUMP: u8 = 0x12;
pub(crate) const COM_TABLE_DUMP: u8 = 0x13;
pub(crate) const COM_STMT_PREPARE: u8 = 0x16;
pub(crate) const COM_STMT_EXECUTE: u8 = 0x17;
pub(crate) const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
pub(crate) const COM_STMT_CLOSE: u8 = 0x19;
pub(crate) const COM_STMT_RESET: u8 = 0x1A;
pub(crate) const COM_SET_OPTION: u8 = 0x1B;
pub(crate) const COM_STMT_FETCH: u8 = 0x1C;
pub(crate) const COM_BINLOG_DUMP_GTID: u8 = 0x1E;
pub(crate) const COM_RESET_CONNECTION: u8 = 0x1F;
/// MySQL's.
pub(crate) const COM_CLONE: u8 = 0x20;
/// MariaDB's.
pub(crate) const COM_STMT_BULK_EXECUTE: u8 = 0xFA;
/// MariaDB's, for clients that were offered its capability.
pub(crate) const COM_MULTI: u8 = 0xFE;

/// The end of rows, as an EOF packet or an OK packet in its place.
pub(crate) const EOF: u8 = 0xFE;
/// An ERR packet.
pub(crate) const ERR: u8 = 0xFF;
/// A request for a client's file, in the place of a count of columns.
pub(crate) const LOCAL_INFILE: u8 = 0xFB;
/// NULL in a row of text, in the place of a length.
pub(crate) const NULL: u8 = 0xFB;
