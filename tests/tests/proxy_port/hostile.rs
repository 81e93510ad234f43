//! Bytes that keep to no protocol.

use keywright_testkit::Result;
use keywright_testkit::redis::{RespClient, RespValue};

use super::Port;
use super::spoiled::{send, spoiled};

const ROUNDS: usize = 400;
/// That mean something.
const SIGNS: &[u8] = b"*$:-\r\n0\"'";

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
        let bytes = spoiled(&mut random, &good, SIGNS);
        let client = port.client()?;
        send(&mut random, client.stream(), &bytes);
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
