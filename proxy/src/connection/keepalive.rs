//! Peers that are gone without an end of the connection.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use crate::connection::stream::Stream;

/// Longest time that Linux takes, seconds.
pub(crate) const KEEPALIVE_S_MAX: u32 = 32_767;
/// How many questions a silent peer may leave unanswered.
const PROBES_MAX: u32 = 4;

/// Has the system ask a peer that was silent for `after_s` whether it is there, and end the connection if after as long again it
/// has not answered. With 0 nobody asks. The peer of a UNIX socket cannot go without a word.
pub(crate) fn keep_alive(stream: &Stream, after_s: u32) -> io::Result<()> {
    let Stream::Tcp(stream) = stream else {
        return Ok(());
    };
    if after_s == 0 {
        return Ok(());
    }
    let between_s = after_s.div_ceil(PROBES_MAX);
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(after_s.into()))
        .with_interval(Duration::from_secs(between_s.into()))
        .with_retries(PROBES_MAX);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}
