//! A peer that sends and does not read.

use std::io::Write as _;
use std::net::TcpStream;

/// Writes requests until none is taken any more, or so many bytes were; how many that were.
pub fn take_until_refused(mut stream: &TcpStream, request: &[u8], bytes_max: usize) -> usize {
    let mut sent = 0;
    while sent < bytes_max && stream.write_all(request).is_ok() {
        sent += request.len();
    }
    sent
}
