//! Bytes that keep to no protocol.

use std::io::Write as _;
use std::net::{Shutdown, TcpStream};

use fastrand::Rng;

/// Some of what is good, changed at a few places: bytes are others, are missing, or are signs that mean something to the protocol.
pub(crate) fn spoiled(random: &mut Rng, good: &[impl AsRef<[u8]>], signs: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for _ in 0..random.usize(1..6) {
        bytes.extend_from_slice(good[random.usize(..good.len())].as_ref());
    }
    for _ in 0..random.usize(..6) {
        let at = random.usize(..bytes.len());
        match random.u8(..4) {
            0 => bytes[at] = random.u8(..),
            1 => bytes.truncate(at + 1),
            2 => bytes.insert(at, signs[random.usize(..signs.len())]),
            _ => drop(bytes.remove(at)),
        }
        if bytes.is_empty() {
            bytes.push(signs[0]);
        }
    }
    bytes
}

/// Sends them, and leaves, says nothing more, or stays.
pub(crate) fn send(random: &mut Rng, mut stream: &TcpStream, bytes: &[u8]) {
    // It may be disconnected meanwhile.
    let _sent = stream.write_all(bytes);
    match random.u8(..3) {
        0 => {}
        1 => drop(stream.shutdown(Shutdown::Write)),
        _ => drop(stream.shutdown(Shutdown::Both)),
    }
}
