//! The protocol's numbers by their names: first bytes of commands and answers, status flags.

/// The client is leaving; nothing is answered.
pub const COM_QUIT: u8 = 0x01;
/// Another default schema.
pub const COM_INIT_DB: u8 = 0x02;
/// A statement as text, or several.
pub const COM_QUERY: u8 = 0x03;
/// The columns of a table.
pub const COM_FIELD_LIST: u8 = 0x04;
/// A line about the server.
pub const COM_STATISTICS: u8 = 0x09;
/// The list of connections, as a result.
pub const COM_PROCESS_INFO: u8 = 0x0A;
/// Another login on the same connection.
pub const COM_CHANGE_USER: u8 = 0x11;
/// The binary log, from a position on.
pub const COM_BINLOG_DUMP: u8 = 0x12;
/// A table, for replicas of old.
pub const COM_TABLE_DUMP: u8 = 0x13;
/// A statement to be prepared, as text.
pub const COM_STMT_PREPARE: u8 = 0x16;
/// A prepared statement is executed, with parameters.
pub const COM_STMT_EXECUTE: u8 = 0x17;
/// A part of a parameter's value, ahead of the execution; nothing is answered.
pub const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
/// A prepared statement is not needed any more; nothing is answered.
pub const COM_STMT_CLOSE: u8 = 0x19;
/// A prepared statement loses its cursor and long data.
pub const COM_STMT_RESET: u8 = 0x1A;
/// Several statements in one text: allowed or not.
pub const COM_SET_OPTION: u8 = 0x1B;
/// Rows out of a prepared statement's cursor.
pub const COM_STMT_FETCH: u8 = 0x1C;
/// The binary log, from a set of transactions on.
pub const COM_BINLOG_DUMP_GTID: u8 = 0x1E;
/// The connection as it was after the login.
pub const COM_RESET_CONNECTION: u8 = 0x1F;
/// MySQL's: a copy of the server's files.
pub const COM_CLONE: u8 = 0x20;
/// MariaDB's: a prepared statement is executed for many rows of parameters.
pub const COM_STMT_BULK_EXECUTE: u8 = 0xFA;
/// MariaDB's, for clients that were offered its capability: several commands in one packet.
pub const COM_MULTI: u8 = 0xFE;

/// The end of rows, as an EOF packet or an OK packet in its place.
pub const EOF: u8 = 0xFE;
/// An ERR packet.
pub const ERR: u8 = 0xFF;
/// A request for a client's file, in the place of a count of columns.
pub const LOCAL_INFILE: u8 = 0xFB;
/// NULL in a row of text, in the place of a length.
pub const NULL: u8 = 0xFB;

/// Status flag: a transaction is open.
pub const IN_TRANSACTION: u16 = 0x0001;
/// Status flag: every statement commits.
pub const AUTOCOMMIT: u16 = 0x0002;
/// Status flag: more results follow.
pub const MORE_RESULTS: u16 = 0x0008;
/// Status flag: rows wait in a cursor.
pub const CURSOR_EXISTS: u16 = 0x0040;
/// Status flag: a backslash in a literal is a backslash.
pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
/// Status flag: the open transaction only reads.
pub const IN_READ_ONLY_TRANSACTION: u16 = 0x2000;
