//! Ports for servers.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Result;

/// Below those that the system gives to outgoing connections.
const FIRST: u16 = 20_000;
/// How many there are.
const PORTS: u16 = 12_000;

/// A port of 127.0.0.1 that nobody listens on now. A program gets none a second time before it has had all of them:
/// who asks for two before it starts a server gets two.
///
/// # Errors
/// All ports that were tried are taken.
pub fn free_port() -> Result<u16> {
    const TRIES: usize = 100;
    static START: OnceLock<u16> = OnceLock::new();
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    let start = usize::from(*START.get_or_init(|| fastrand::u16(..PORTS)));
    for _ in 0..TRIES {
        let at = (start + GIVEN.fetch_add(1, Ordering::Relaxed)) % usize::from(PORTS);
        let port = FIRST + u16::try_from(at)?;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    anyhow::bail!(
        "no free port between {FIRST} and {} in {TRIES} tries",
        FIRST + PORTS
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_nobody_listens_on_yet_are_not_given_twice() -> Result<()> {
        let mut given = std::collections::HashSet::new();
        for _ in 0..2_000 {
            let port = free_port()?;
            assert!(given.insert(port), "port {port} was given twice");
        }
        Ok(())
    }
}
