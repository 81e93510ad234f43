//! A key port whose store is a server that goes away.

use std::time::{Duration, Instant};

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, make_store,
    wait_until,
};

/// How much longer than the limit a busy machine may take, milliseconds.
const GRACE_MS: u64 = 5_000;

#[test]
fn a_store_that_is_away_gives_an_error_in_time_and_no_key() -> Result<()> {
    // What it has committed it must have when it comes back.
    let mut server =
        Upstream::start_with(Flavour::MariaDb, &["--innodb-flush-log-at-trx-commit=1"])?;
    let url = make_store(&server, "keywright", &[("orders", 1)])?;
    let config = ProxyConfig {
        store_url: url,
        store: "wait_ms_max = 700\n".to_owned(),
        key_ports: vec!["keys = { orders = \"segment:orders\" }\n".to_owned()],
        ..ProxyConfig::default()
    };
    let proxy = ProxyProcess::start(config)?;
    let mut client = RespClient::connect(proxy.key_port()?)?;
    let mut last = client.say("INCR orders")?.integer()?;
    server.kill9()?;
    // What was reserved is given; then there is an error, and it comes in time.
    let error = loop {
        let began = Instant::now();
        match client.say("INCRBY orders 500")? {
            RespValue::Integer(number) => {
                assert!(number > last);
                last = number;
            }
            other => {
                assert!(began.elapsed() < Duration::from_millis(700 + GRACE_MS));
                break other;
            }
        }
    };
    assert_has(error.error()?, &["STORE_UNAVAILABLE "]);
    // A pipeline, too: each of it.
    let request = RespClient::written(&["INCRBY", "orders", "100000"]);
    client.send(&request.repeat(3))?;
    for _ in 0..3 {
        assert_has(client.read()?.error()?, &["STORE_UNAVAILABLE "]);
    }
    assert_eq!(client.say("PING")?, RespValue::Simple("PONG".to_owned()));
    // The one that waited in vain is a slow one; those behind it were refused at once.
    let (_, metrics) = proxy.http_get("/metrics")?;
    let figure = |series: &str, label: &str| -> Result<u64> {
        let name = format!("keywright_port_request_seconds_{series}{{");
        let is_it = |line: &&str| line.starts_with(&name) && line.contains(label);
        let line = metrics.lines().find(is_it);
        let value = line.and_then(|line| line.rsplit(' ').next());
        Ok(value.map_or(Ok(0), str::parse)?)
    };
    let fast = figure("bucket", "le=\"0.5\"")?;
    let all = figure("count", "name=\"orders\"")?;
    assert!(fast > 0 && fast < all, "{fast} {all}\n{metrics}");
    server.restart()?;
    wait_until("keys again", WAIT_MAX, || {
        match client.say("INCR orders")? {
            RespValue::Integer(number) => {
                assert!(number > last, "{number} {last}");
                Ok(true)
            }
            _ => Ok(false),
        }
    })
}
