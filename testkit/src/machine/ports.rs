//! Ports for servers.

use crate::Result;

/// A port of 127.0.0.1 that nobody listens on now, below those that the system gives to outgoing connections.
///
/// # Errors
/// All ports that were tried are taken.
pub fn free_port() -> Result<u16> {
    const TRIES: usize = 100;
    for _ in 0..TRIES {
        let port = fastrand::u16(20_000..32_000);
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    anyhow::bail!("no free port between 20000 and 32000 in {TRIES} tries")
}
