//! Bytes that keep to no protocol.

use keywright_testkit::{Result, assert_has};

use super::Port;
use super::client::HttpClient;
use super::spoiled::{send, spoiled};

const ROUNDS: usize = 400;
/// That mean something.
const SIGNS: &[u8] = b" \r\n:%?&/\0";

/// Whatever is sent, the program goes on, and what it gives is distinct.
#[test]
fn the_program_goes_on_whatever_is_sent() -> Result<()> {
    let mut port = Port::start("unread_ms_max = 200\nrequest_ms_max = 200\n")?;
    let mut random = fastrand::Rng::with_seed(7);
    let good = [
        HttpClient::written("POST /v1/keys/orders?count=16", ""),
        HttpClient::written("GET /v1/keys", "Accept: text/plain;q=0.3, */*\r\n"),
        HttpClient::written("GET /v1/decode/%31%zz", ""),
        HttpClient::written("GET /api/segment/get/orders", "Authorization: Basic !!!\r\n"),
        HttpClient::written("POST /tinyid/id/nextId?bizType=orders&batchSize=3", "Content-Length: 0\r\n"),
        "POST /v1/keys/orders HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ncount\r\n0\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\0\u{7f}\u{1}\0\0".to_owned(),
        "X: y\r\n".repeat(500),
    ];
    let mut watching = port.client()?;
    let mut last = 0;
    for round in 0..ROUNDS {
        let bytes = spoiled(&mut random, &good, SIGNS);
        let client = port.client()?;
        send(&mut random, client.stream(), &bytes);
        drop(client);
        // The one who watches may be disconnected when the machine is busy.
        let mut answer = watching.say("POST /v1/keys/orders");
        for _ in 0..10 {
            if answer.is_ok() {
                break;
            }
            watching = port.client()?;
            answer = watching.say("POST /v1/keys/orders");
        }
        let answer = answer?;
        let number = answer.numbers("keys")?[0];
        assert!(number > last, "round {round}: {number} after {last}");
        last = number;
    }
    assert!(port.proxy.is_running()?);
    let log = port.proxy.log();
    assert!(!log.contains("panicked"), "{log}");
    Ok(())
}

#[test]
fn what_is_no_request_ends_the_connection_with_an_answer() -> Result<()> {
    let port = Port::start("")?;
    for bytes in [
        "INCR orders\r\n",
        "GET\r\n\r\n",
        "POST /v1/keys/orders HTTP/3.0\r\n\r\n",
        "POST /v1/keys/orders HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST /v1/keys/orders HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        // What one proxy reads as one request and another as two.
        "POST /v1/keys/orders HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked, x\r\n\r\n",
    ] {
        let mut client = port.client()?;
        let good = HttpClient::written("GET /v1/keys", "");
        client.send(format!("{good}{bytes}").as_bytes())?;
        assert_eq!(client.read()?.status, 200);
        let told = client.rest()?;
        assert_has(&told, &["HTTP/1.1 4"]);
    }
    assert_eq!(
        port.client()?
            .say("POST /v1/keys/orders")?
            .numbers("keys")?,
        [1]
    );
    Ok(())
}
