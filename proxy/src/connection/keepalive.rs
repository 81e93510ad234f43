//! Peers that are gone without an end of the connection.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// Longest time that Linux takes, seconds.
pub(crate) const KEEPALIVE_S_MAX: u32 = 32_767;
/// How many questions a silent peer may leave unanswered.
const PROBES_MAX: u32 = 4;

/// Has the system ask a peer that was silent for `after_s` whether it is there, and end the connection if after as long again it
/// has not answered. With 0 nobody asks. For TCP: the peer of a UNIX socket cannot go without a word.
pub(crate) fn keep_alive(socket: &SockRef<'_>, after_s: u32) -> io::Result<()> {
    if after_s == 0 {
        return socket.set_keepalive(false);
    }
    let between_s = after_s.div_ceil(PROBES_MAX);
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(after_s.into()))
        .with_interval(Duration::from_secs(between_s.into()))
        .with_retries(PROBES_MAX);
    socket.set_tcp_keepalive(&keepalive)
}
