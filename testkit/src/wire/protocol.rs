//! Numbers of the protocol, by the names that its documentation has for them.

/// Commands by their number; those without a method of their own go through [`crate::Wire::command`].
#[allow(missing_docs, reason = "named as in the protocol's documentation")]
pub mod command {
    pub const QUIT: u8 = 0x01;
    pub const INIT_DB: u8 = 0x02;
    pub const QUERY: u8 = 0x03;
    pub const FIELD_LIST: u8 = 0x04;
    pub const STATISTICS: u8 = 0x09;
    pub const PROCESS_KILL: u8 = 0x0c;
    pub const PING: u8 = 0x0e;
    pub const CHANGE_USER: u8 = 0x11;
    pub const STMT_PREPARE: u8 = 0x16;
    pub const STMT_EXECUTE: u8 = 0x17;
    pub const STMT_SEND_LONG_DATA: u8 = 0x18;
    pub const STMT_CLOSE: u8 = 0x19;
    pub const STMT_RESET: u8 = 0x1a;
    pub const SET_OPTION: u8 = 0x1b;
    pub const STMT_FETCH: u8 = 0x1c;
    pub const RESET_CONNECTION: u8 = 0x1f;
    pub const STMT_BULK_EXECUTE: u8 = 0xfa;
}

/// Bits of [`crate::Done::status`].
#[allow(missing_docs, reason = "named as in the protocol's documentation")]
pub mod status {
    pub const IN_TRANSACTION: u16 = 1;
    pub const AUTOCOMMIT: u16 = 1 << 1;
    pub const MORE_RESULTS: u16 = 1 << 3;
    pub const CURSOR_EXISTS: u16 = 1 << 6;
    pub const LAST_ROW_SENT: u16 = 1 << 7;
    pub const NO_BACKSLASH_ESCAPES: u16 = 1 << 9;
    pub const WAS_SLOW: u16 = 1 << 11;
    pub const STATE_CHANGED: u16 = 1 << 14;
}

/// Capabilities by their bits; the high 32 are MariaDB's.
#[allow(missing_docs, reason = "named as in the protocol's documentation")]
pub mod capability {
    pub const LONG_PASSWORD: u64 = 1;
    pub const FOUND_ROWS: u64 = 1 << 1;
    pub const LONG_FLAG: u64 = 1 << 2;
    pub const CONNECT_WITH_DB: u64 = 1 << 3;
    pub const COMPRESS: u64 = 1 << 5;
    pub const LOCAL_FILES: u64 = 1 << 7;
    pub const PROTOCOL_41: u64 = 1 << 9;
    pub const SSL: u64 = 1 << 11;
    pub const TRANSACTIONS: u64 = 1 << 13;
    pub const SECURE_CONNECTION: u64 = 1 << 15;
    pub const MULTI_STATEMENTS: u64 = 1 << 16;
    pub const MULTI_RESULTS: u64 = 1 << 17;
    pub const PS_MULTI_RESULTS: u64 = 1 << 18;
    pub const PLUGIN_AUTH: u64 = 1 << 19;
    pub const CONNECT_ATTRS: u64 = 1 << 20;
    pub const SESSION_TRACK: u64 = 1 << 23;
    pub const DEPRECATE_EOF: u64 = 1 << 24;
    pub const ZSTD: u64 = 1 << 26;
    pub const QUERY_ATTRIBUTES: u64 = 1 << 27;
    pub const MARIADB_BULK: u64 = 1 << 34;
}

/// Types by their number in the protocol.
pub(super) mod kind {
    pub(crate) const TINY: u8 = 0x01;
    pub(crate) const SHORT: u8 = 0x02;
    pub(crate) const LONG: u8 = 0x03;
    pub(crate) const FLOAT: u8 = 0x04;
    pub(crate) const DOUBLE: u8 = 0x05;
    pub(crate) const NULL: u8 = 0x06;
    pub(crate) const LONGLONG: u8 = 0x08;
    pub(crate) const INT24: u8 = 0x09;
    pub(crate) const YEAR: u8 = 0x0d;
    pub(crate) const BLOB: u8 = 0xfc;
    pub(crate) const VAR_STRING: u8 = 0xfd;
}
