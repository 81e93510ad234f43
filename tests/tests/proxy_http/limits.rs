//! What is bounded, and what becomes of whoever goes beyond.

use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use keywright_testkit::{Result, WAIT_MAX, assert_has, take_until_refused, wait_until};

use super::Port;
use super::client::HttpClient;

#[test]
fn one_connection_too_many_is_told_so() -> Result<()> {
    let port = Port::start("connections_max = 2\n")?;
    let (first, mut second) = (let_in(&port)?, let_in(&port)?);
    let mut third = port.client()?;
    let told = third.read()?;
    assert_eq!(told.status, 503);
    assert_eq!(told.header("retry-after"), Some("1"));
    assert_eq!(told.header("connection"), Some("close"));
    assert_has(&told.body, &["\"connections_full\"", "connections_max"]);
    assert_eq!(third.rest()?, "");
    drop(first);
    let_in(&port)?;
    second.say("GET /v1/keys")?;
    Ok(())
}

/// Whoever looked whether it listens may have a place for a moment.
fn let_in(port: &Port) -> Result<HttpClient> {
    let mut client = None;
    wait_until("a place", WAIT_MAX, || {
        let mut new = port.client()?;
        if new
            .say("GET /v1/keys")
            .is_ok_and(|answer| answer.status == 200)
        {
            client = Some(new);
        }
        Ok(client.is_some())
    })?;
    client.context("a place")
}

#[test]
fn heads_and_bodies_have_a_longest() -> Result<()> {
    let port = Port::start("head_bytes_max = 8192\nbody_bytes_max = 100\n")?;
    let mut client = port.client()?;
    let long = format!("X: {}\r\n", "x".repeat(7_500));
    assert_eq!(client.say_with("POST /v1/keys/orders", &long)?.status, 200);
    let longer = format!("X: {}\r\n", "x".repeat(9_000));
    let refused = client.say_with("POST /v1/keys/orders", &longer)?;
    assert_eq!(refused.status, 431);
    assert_eq!(client.rest()?, "");

    let mut client = port.client()?;
    let body = format!("count=2&{}", "x".repeat(92));
    let fits = client.form("POST /v1/keys/orders", &body)?;
    // It has a parameter too many.
    assert_eq!((fits.status, body.len()), (400, 100));
    let refused = client.form("POST /v1/keys/orders", &format!("{body}x"))?;
    assert_eq!(refused.status, 413);
    assert_has(&refused.body, &["\"packet_too_large\"", "100 bytes"]);
    assert_eq!(client.rest()?, "");
    // The same in pieces, of which nobody says how long they are together.
    let mut client = port.client()?;
    let head = HttpClient::written("POST /v1/keys/orders", "Transfer-Encoding: chunked\r\n");
    let chunk = format!("32\r\n{}\r\n", "x".repeat(50));
    client.send(format!("{head}{chunk}{chunk}{chunk}").as_bytes())?;
    assert_eq!(client.read()?.status, 413);
    assert_eq!(client.rest()?, "");
    assert_eq!(
        port.metric("keywright_port_cut_off_total{why=\"protocol\"")?,
        1
    );
    Ok(())
}

/// Whoever sends a head or a body byte by byte is disconnected all the same.
#[test]
fn slow_requests_are_given_up() -> Result<()> {
    let port = Port::start("request_ms_max = 400\n")?;
    for head in ["POST /v1/keys/orders HTTP/1.1\r\n", ""] {
        let client = port.client()?;
        let began = Instant::now();
        let mut stream = client.stream();
        let ended = drip(&mut stream, head);
        assert!(ended, "{head}");
        assert!(began.elapsed() > Duration::from_millis(390));
    }
    assert_eq!(port.metric("keywright_port_cut_off_total{why=\"head\"")?, 2);
    // The beginning of another request behind a good one.
    let mut client = port.client()?;
    let good = HttpClient::written("POST /v1/keys/orders", "");
    client.send(format!("{good}POST /v1/ke").as_bytes())?;
    assert_eq!(client.read()?.status, 200);
    assert!(drip(&mut client.stream(), ""));
    // Who says nothing at all.
    assert_eq!(port.client()?.rest()?, "");
    // A body that never comes is answered.
    let mut client = port.client()?;
    let head = HttpClient::written("POST /v1/keys/orders", "Content-Length: 10\r\n");
    client.send(format!("{head}coun").as_bytes())?;
    let answer = client.read()?;
    assert_eq!(answer.status, 408);
    assert_has(&answer.body, &["\"request_timeout\""]);
    assert_eq!(client.rest()?, "");
    assert_eq!(port.metric("keywright_port_keys_total{name=\"orders\"")?, 1);
    Ok(())
}

/// Sends a header byte by byte; whether the connection ended.
fn drip(stream: &mut &std::net::TcpStream, head: &str) -> bool {
    let began = Instant::now();
    let mut sent = stream.write_all(head.as_bytes());
    while sent.is_ok() && began.elapsed() < WAIT_MAX {
        thread::sleep(Duration::from_millis(20));
        sent = stream.write_all(b"x");
    }
    sent.is_err()
}

#[test]
fn who_is_silent_between_requests_is_disconnected() -> Result<()> {
    let port = Port::start("idle_s_max = 4\n")?;
    let mut client = port.client()?;
    for _ in 0..3 {
        client.say("POST /v1/keys/orders")?;
        thread::sleep(Duration::from_millis(1_500));
    }
    assert_eq!(client.rest()?, "");
    assert_eq!(port.metric("keywright_port_cut_off_total{why=\"idle\"")?, 1);
    Ok(())
}

/// Who asks and does not read takes no memory beyond the limit, and is disconnected.
#[test]
fn who_does_not_read_is_bounded_and_disconnected() -> Result<()> {
    let port = Port::start("unread_ms_max = 1500\n")?;
    let client = port.client()?;
    let before = port.proxy.memory_kb()?;
    let request = HttpClient::written("POST /v1/keys/orders?count=1000", "");
    let stream = client.stream();
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    let mut sent = take_until_refused(stream, request.as_bytes(), 1 << 28);
    let more_kb = port.proxy.memory_kb()?.saturating_sub(before);
    assert!(more_kb < 8_192, "{more_kb} kB more");
    // Others are served meanwhile.
    port.client()?
        .say("POST /v1/keys/orders")?
        .numbers("keys")?;
    // Nor is anything more taken when it is disconnected.
    stream.set_write_timeout(Some(WAIT_MAX))?;
    sent += take_until_refused(stream, request.as_bytes(), 1 << 28);
    assert!(
        sent < 1 << 26,
        "{sent} bytes were taken of one who reads nothing"
    );
    wait_until("the end", WAIT_MAX, || {
        Ok(port.metric("keywright_port_cut_off_total{why=\"unread\"")? == 1)
    })?;
    Ok(())
}

/// Long answers share the memory that statements have.
#[test]
fn answers_beyond_the_memory_for_all_are_refused() -> Result<()> {
    let port = Port::start_with("", |mut config| {
        config.more =
            "[limits]\nmemory_bytes_max = 4194304\nrewrite_bytes_max = 1048576\n".to_owned();
        config
    })?;
    let mut client = port.client()?;
    let fits = client.say("POST /v1/keys/orders?count=20000")?;
    assert_eq!(fits.numbers("keys")?.len(), 20_000);
    let refused = client.say("POST /v1/keys/orders?count=30000")?;
    assert_eq!(refused.status, 503);
    assert_has(&refused.body, &["\"memory_full\""]);
    // What was there is given back.
    let fits = client.say("POST /v1/keys/orders?count=20000")?;
    assert_eq!(fits.numbers("keys")?.len(), 20_000);
    Ok(())
}

/// What an answer takes of it is its own until it has gone out.
#[test]
fn an_answer_that_is_not_read_holds_its_memory() -> Result<()> {
    // More than the system's own buffers hold.
    const LONG: &str = "POST /v1/keys/tokens?count=300000";
    let port = Port::start_with("request_keys_max = 300000\n", |mut config| {
        config.more =
            "[limits]\nmemory_bytes_max = 67108864\nrewrite_bytes_max = 1048576\n".to_owned();
        config
    })?;
    let mut reader = port.client()?;
    reader.send(HttpClient::written(LONG, "").as_bytes())?;
    wait_until("the keys", WAIT_MAX, || {
        let given = port.metric("keywright_port_keys_total{name=\"tokens\"")?;
        Ok(given == 300_000)
    })?;
    let mut other = port.client()?;
    for _ in 0..3 {
        let refused = other.say(LONG)?;
        assert_eq!(refused.status, 503);
        assert_has(&refused.body, &["\"memory_full\""]);
        thread::sleep(Duration::from_millis(100));
    }
    let read = reader.read()?;
    assert_eq!(
        (read.status, read.body.matches('-').count()),
        (200, 1_200_000)
    );
    assert_eq!(other.say(LONG)?.status, 200);
    Ok(())
}

/// Nor does it stay with the connection.
#[test]
fn connections_keep_little_of_long_answers() -> Result<()> {
    const CONNECTIONS: usize = 12;
    let port = Port::start("")?;
    let crowd = || -> Result<Vec<HttpClient>> {
        let connection = |_| -> Result<HttpClient> {
            let mut client = port.client()?;
            let request = "POST /v1/keys/tokens?count=100000";
            let answer = client.say_with(request, "Accept: text/plain\r\n")?;
            // 44 MB of all of them.
            assert_eq!(answer.body.len(), 3_700_000);
            Ok(client)
        };
        (0..CONNECTIONS).map(connection).collect()
    };
    // What the allocator keeps for itself is there then.
    drop(crowd()?);
    let before = port.proxy.memory_kb()?;
    let held = crowd()?;
    let more_kb = port.proxy.memory_kb()?.saturating_sub(before);
    assert!(more_kb < 24_576, "{more_kb} kB more");
    drop(held);
    Ok(())
}

#[test]
fn as_many_keys_as_may_be_come_in_one_answer() -> Result<()> {
    let port = Port::start("")?;
    let mut client = port.client()?;
    for name in ["orders", "flakes", "tokens"] {
        let request = format!("POST /v1/keys/{name}?count=100000");
        let lines = client.say_with(&request, "Accept: text/plain\r\n")?;
        let keys: std::collections::BTreeSet<&str> = lines.body.lines().collect();
        assert_eq!(keys.len(), 100_000, "{name}");
    }
    Ok(())
}
