//! Capabilities that client and server agree on in the handshake. MySQL's are in the lower half; MariaDB's own, which the handshake
//! carries at another place, in the upper half.

/// The long form of passwords. MariaDB and its clients leave it out to say that they have capabilities of their own.
pub const LONG_PASSWORD: u64 = 1;
/// An UPDATE counts the rows that it found, and not only those that it changed.
pub const FOUND_ROWS: u64 = 1 << 1;
/// The client names its first schema.
pub const CONNECT_WITH_DB: u64 = 1 << 3;
/// Packets are compressed.
pub const COMPRESS: u64 = 1 << 5;
/// The protocol of version 4.1 and later.
pub const PROTOCOL_41: u64 = 1 << 9;
/// TLS before the login.
pub const TLS: u64 = 1 << 11;
/// The proof has its length before it, in one byte.
pub const SECURE_CONNECTION: u64 = 1 << 15;
/// Several statements in one text.
pub const MULTI_STATEMENTS: u64 = 1 << 16;
/// Plugins are named.
pub const PLUGIN_AUTH: u64 = 1 << 19;
/// The client tells of itself, behind everything else in its login request.
pub const CONNECT_ATTRS: u64 = 1 << 20;
/// The length of the proof is a length-encoded integer.
pub const PLUGIN_AUTH_LENENC: u64 = 1 << 21;
/// Answers end with OK where they ended with EOF.
pub const DEPRECATE_EOF: u64 = 1 << 24;
/// Results without column definitions. Their first packet looks different.
pub const OPTIONAL_METADATA: u64 = 1 << 25;
/// Packets are compressed with zstd.
pub const ZSTD: u64 = 1 << 26;
/// Statements come with query attributes.
pub const QUERY_ATTRIBUTES: u64 = 1 << 27;
/// MariaDB's: one prepared statement is executed for many rows of parameters.
pub const BULK_OPERATIONS: u64 = 1 << 34;
/// MariaDB's: definitions of columns say more of their types.
pub const EXTENDED_METADATA: u64 = 1 << 35;
/// MariaDB's: column definitions that the client has already are left out.
pub const CACHED_METADATA: u64 = 1 << 36;
/// MariaDB's: a result for each row of a bulk execution.
pub const BULK_UNIT_RESULTS: u64 = 1 << 37;

/// The two words in which the handshake carries capabilities: MySQL's, and MariaDB's own.
pub(crate) fn words(capabilities: u64) -> ([u8; 4], [u8; 4]) {
    let [a, b, c, d, e, f, g, h] = capabilities.to_le_bytes();
    ([a, b, c, d], [e, f, g, h])
}

/// The capabilities in two such words.
pub(crate) fn of_words(mysql: [u8; 4], mariadb: [u8; 4]) -> u64 {
    u64::from(u32::from_le_bytes(mysql)) | u64::from(u32::from_le_bytes(mariadb)) << 32
}
