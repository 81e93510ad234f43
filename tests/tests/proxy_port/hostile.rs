//! Bytes that keep to no protocol.

use std::io::Write as _;
use std::net::Shutdown;

use keywright_testkit::Result;
use keywright_testkit::redis::{RespClient, RespValue};

use super::Port;

const ROUNDS: usize = 400;

/// Whatever is sent, the program goes on, and what it gives is distinct.
#[test]
fn the_program_goes_on_whatever_is_sent() -> Result<()> {
    let mut port = Port::start("unread_ms_max = 200\n")?;
    let mut random = fastrand::Rng::with_seed(7);
    let good = [
        RespClient::written(&["INCR", "orders"]),
        RespClient::written(&["INCRBY", "orders", "16"]),
        RespClient::written(&["KEYWRIGHT", "NEXT", "tokens", "COUNT", "3"]),
        RespClient::written(&["HELLO", "3"]),
        RespClient::written(&["COMMAND", "DOCS"]),
        b"mget orders \"b c\"\r\n".to_vec(),
        b"*0\r\n*-1\r\n\r\n".to_vec(),
        b"*200000\r\n".to_vec(),
        b"*1\r\n".repeat(5_000),
        vec![0x16, 3, 1, 0, 200, 1, 0, 0, 196],
    ];
    let mut watching = port.client()?;
    let mut last = 0;
    for round in 0..ROUNDS {
        let mut bytes: Vec<u8> = Vec::new();
        for _ in 0..random.usize(1..6) {
            bytes.extend_from_slice(&good[random.usize(..good.len())]);
        }
        for _ in 0..random.usize(..6) {
            let at = random.usize(..bytes.len());
            match random.u8(..4) {
                0 => bytes[at] = random.u8(..),
                1 => bytes.truncate(at + 1),
                2 => bytes.insert(at, b"*$:-\r\n0\"'"[random.usize(..9)]),
                _ => drop(bytes.remove(at)),
            }
            if bytes.is_empty() {
                bytes.push(b'*');
            }
        }
        let client = port.client()?;
        let mut stream = client.stream();
        // It may be disconnected meanwhile.
        let _sent = stream.write_all(&bytes);
        match random.u8(..3) {
            0 => {}
            1 => drop(stream.shutdown(Shutdown::Write)),
            _ => drop(stream.shutdown(Shutdown::Both)),
        }
        drop(client);
        let RespValue::Integer(number) = watching.say("INCR orders")? else {
            panic!("round {round}: no number");
        };
        assert!(number > last, "round {round}: {number} after {last}");
        last = number;
    }
    assert!(port.proxy.is_running()?);
    let log = port.proxy.log();
    assert!(!log.contains("panicked"), "{log}");
    Ok(())
}
