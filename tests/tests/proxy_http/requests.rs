//! What clients ask for, and what they are told.

use std::collections::BTreeSet;

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{Result, assert_has};

use super::Port;
use super::client::HttpClient;

#[test]
fn keys_of_every_kind_are_given() -> Result<()> {
    let port = Port::start("")?;
    let mut client = port.client()?;
    let one = client.say("POST /v1/keys/orders")?;
    assert_eq!(one.status, 200);
    assert_eq!(one.header("content-type"), Some("application/json"));
    assert_eq!(one.header("cache-control"), Some("no-store"));
    let expected = "{\"name\":\"orders\",\"keys\":[\"1\"],\"numbers\":[1]}\n";
    assert_eq!(one.body, expected);
    let three = client.say("POST /v1/keys/orders?count=3")?;
    assert_eq!(three.numbers("keys")?, [2, 3, 4]);
    assert_eq!(three.numbers("numbers")?, [2, 3, 4]);
    let lines = client.say_with("POST /v1/keys/orders?count=2", "Accept: text/plain\r\n")?;
    assert_eq!(
        lines.header("content-type"),
        Some("text/plain;charset=UTF-8")
    );
    assert_eq!(lines.body, "5\n6\n");
    let of_form = client.form("POST /v1/keys/orders", "count=2")?;
    assert_eq!(of_form.numbers("keys")?, [7, 8]);
    // The name as URLs write it.
    assert_eq!(client.say("POST /v1/keys/%6frders")?.numbers("keys")?, [9]);

    let flakes = client
        .say("POST /v1/keys/flakes?count=10000")?
        .numbers("keys")?;
    let distinct: BTreeSet<_> = flakes.iter().collect();
    assert_eq!(distinct.len(), 10_000);
    let decoded = client.say(&format!("GET /v1/decode/{}", flakes[0]))?;
    let id = format!(
        "{{\"id\":\"{}\",\"kind\":\"snowflake\",\"layout\":\"twitter\",\"issued_at\":\"",
        flakes[0]
    );
    assert_has(&decoded.body, &[&id, "\"worker\":"]);
    assert!(!decoded.body.contains("\"note\""), "{decoded:?}");
    // One of a tag.
    let small = client.say("GET /v1/decode/9")?;
    assert_has(&small.body, &["\"note\":\"an id of a tag looks so, too"]);
    for (name, length) in [("tokens", 36), ("bytes", 32), ("invoices", 27)] {
        let request = format!("POST /v1/keys/{name}?count=50");
        let lines = client.say_with(&request, "Accept: text/plain\r\n")?;
        let keys: BTreeSet<&str> = lines.body.lines().collect();
        assert_eq!(keys.len(), 50);
        assert!(keys.iter().all(|key| key.len() == length), "{keys:?}");
        let json = client.say(&request)?;
        assert!(!json.body.contains("numbers"), "{json:?}");
    }
    let id = client.say_with("POST /v1/keys/invoices", "Accept: text/plain\r\n")?;
    let request = format!("GET /v1/decode/{}", id.body.trim());
    let decoded = client.say_with(&request, "Accept: text/plain\r\n")?;
    assert_has(&decoded.body, &["kind        readable", "biz         INV"]);
    assert_eq!(port.metric("keywright_port_keys_total{name=\"orders\"")?, 9);
    let requests = "keywright_port_request_seconds_count{name=\"orders\"";
    assert_eq!(port.metric(requests)?, 5);
    Ok(())
}

#[test]
fn names_are_listed() -> Result<()> {
    let port = Port::start("")?;
    let mut client = port.client()?;
    client.say("POST /v1/keys/orders?count=3")?;
    let listed = client.say("GET /v1/keys")?;
    let orders =
        "{\"name\":\"orders\",\"key\":\"segment:orders\",\"state\":\"gives keys\",\"given\":3}";
    assert_has(&listed.body, &["{\"names\":[{", orders]);
    let lines = client.say_with("GET /v1/keys", "Accept: text/plain\r\n")?;
    assert_eq!(
        lines.body,
        "bytes uuid_v4:bytes16\nflakes snowflake\ninvoices readable:INV\norders segment:orders\ntokens uuid_v7:text36\n"
    );
    client.send(HttpClient::written("HEAD /v1/keys", "").as_bytes())?;
    client.send(HttpClient::written("POST /v1/keys/orders", "Connection: close\r\n").as_bytes())?;
    let told = client.rest()?;
    // The head alone, then the next answer.
    let (_, behind) = told.split_once("\r\n\r\n").unwrap_or_default();
    assert!(behind.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
    assert!(told.ends_with("\"numbers\":[4]}\n"), "{told}");
    Ok(())
}

/// One tag behind both.
#[test]
fn http_and_the_redis_protocol_share_names() -> Result<()> {
    let port = Port::start("")?;
    let mut redis = RespClient::connect(port.proxy.key_port()?)?;
    let mut client = port.client()?;
    assert_eq!(redis.say("INCR orders")?, RespValue::Integer(1));
    assert_eq!(client.say("POST /v1/keys/orders")?.numbers("keys")?, [2]);
    assert_eq!(redis.say("INCRBY orders 10")?, RespValue::Integer(12));
    assert_eq!(client.say("GET /api/segment/get/orders")?.body, "13");
    assert_eq!(redis.say("INCR orders")?, RespValue::Integer(14));
    Ok(())
}

/// Wherever the network cuts it, answers are the same, and come in the order of requests.
#[test]
fn a_pipeline_is_answered_in_order_wherever_it_is_cut() -> Result<()> {
    let port = Port::start("")?;
    let form = "POST /v1/keys/orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: \
                chunked\r\n\r\n3\r\ncou\r\n4\r\nnt=4\r\n0\r\n\r\n";
    let pieces = [
        HttpClient::written("POST /v1/keys/orders", ""),
        HttpClient::written("POST /v1/keys/none", ""),
        form.to_owned(),
        HttpClient::written("GET /v1/keys/orders", ""),
        HttpClient::written("POST /v1/keys/orders?count=2", ""),
    ];
    let bytes = pieces.concat().into_bytes();
    let mut next = 1;
    for cut in (1..bytes.len()).step_by(7) {
        let mut client = port.client()?;
        for piece in [&bytes[..cut], &bytes[cut..]] {
            client.send(piece)?;
        }
        client.end()?;
        assert_eq!(client.read()?.numbers("keys")?, [next], "{cut}");
        assert_eq!(client.read()?.status, 404);
        let four: Vec<i64> = (next + 1..next + 5).collect();
        assert_eq!(client.read()?.numbers("keys")?, four);
        assert_eq!(client.read()?.status, 405);
        assert_eq!(client.read()?.numbers("keys")?, [next + 5, next + 6]);
        assert_eq!(client.rest()?, "");
        next += 7;
    }
    Ok(())
}

#[test]
fn a_connection_is_kept_and_closed_as_clients_say() -> Result<()> {
    let port = Port::start("keepalive_requests_max = 3\n")?;
    let mut client = port.client()?;
    for number in 1..=3 {
        let answer = client.say("POST /v1/keys/orders")?;
        assert_eq!(answer.numbers("keys")?, [number]);
        let is_last = answer.header("connection") == Some("close");
        assert_eq!(is_last, number == 3);
    }
    assert_eq!(client.rest()?, "");
    // HTTP/1.0, where connections are closed unless somebody says otherwise.
    let mut client = port.client()?;
    client.send(b"POST /v1/keys/orders HTTP/1.0\r\n\r\n")?;
    assert!(client.rest()?.ends_with("\"numbers\":[4]}\n"));
    Ok(())
}

/// As probes ask that want no body.
#[test]
fn the_metrics_listener_answers_head() -> Result<()> {
    let port = Port::start("")?;
    let ask = |request: &str| {
        let mut client = HttpClient::connect(port.proxy.metrics_port())?;
        client.send(HttpClient::written(request, "").as_bytes())?;
        client.rest()
    };
    for path in ["/healthz", "/readyz", "/metrics", "/"] {
        let answer = ask(&format!("HEAD {path}"))?;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{path}: {answer}");
    }
    let refused = ask("POST /healthz")?;
    assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
    assert_has(&refused.to_ascii_lowercase(), &["\r\nallow: get, head\r\n"]);
    Ok(())
}
