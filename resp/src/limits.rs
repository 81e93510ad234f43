//! How long requests may be.

/// What a reader of requests keeps to. A request beyond is a [`Fault`](crate::fault::Fault), and ends the connection: what follows
/// cannot be told from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Arguments of one request, its command included.
    pub arguments_max: u32,
    /// One argument, bytes.
    pub argument_bytes_max: u32,
    /// One request with all that the protocol adds, or one inline command, bytes.
    pub request_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            arguments_max: 1_024,
            argument_bytes_max: 4_096,
            request_bytes_max: 64 << 10,
        }
    }
}
