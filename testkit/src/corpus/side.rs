//! Where scenarios are run.

/// Where scenarios are run.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The server's own port, for the setup and for looking at the tables.
    pub direct_port: u16,
    /// Where the statements go: the same, or a proxy's.
    pub port: u16,
    /// What the schemas' names begin with; as long on both sides.
    pub schema_prefix: &'a str,
    /// What the keys of a table come from.
    pub keys: TwinKeys,
}

/// What the keys of tables come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TwinKeys {
    /// The tables issue, from the beginning of their key spaces.
    Native,
    /// The tables issue, from the middle of their key spaces.
    NativeElsewhere,
    /// The tables cannot issue; a proxy does, from the same key spaces.
    Fenced,
}

impl Side<'_> {
    pub(super) fn is_proxied(&self) -> bool {
        self.port != self.direct_port
    }
}
