//! Why there is no key, as clients are told.

use std::time::{Duration, Instant};

use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, assert_has, make_store,
    wait_until,
};

use super::Port;
use super::client::HttpClient;

/// How much longer than the limit a busy machine may take, milliseconds.
const GRACE_MS: u64 = 5_000;

#[test]
fn what_is_refused_says_why_and_gives_no_key() -> Result<()> {
    let port = Port::start("request_keys_max = 1000\n")?;
    let mut client = port.client()?;
    for (request, status, expected) in [
        (
            "POST /v1/keys/none",
            404,
            "{\"cause\":\"tag_unknown\",\"message\":\"no keys are given under \\\"none\\\" here\",\"hint\":\"GET /v1/keys shows the names; \
             keys of the [[listener]] says them\",\"retryable\":false}\n",
        ),
        (
            "POST /v1/keys/orders?count=0",
            400,
            "\"argument_out_of_range\",\"message\":\"\\\"orders\\\" gives 1 key or more, not 0\"",
        ),
        (
            "POST /v1/keys/orders?count=-5",
            400,
            "argument_out_of_range",
        ),
        (
            "POST /v1/keys/orders?count=1001",
            400,
            "one request gives at most 1000 keys of \\\"orders\\\", not 1001",
        ),
        (
            "POST /v1/keys/orders?count=9223372036854775808",
            400,
            "count is a number, not \\\"9223372036854775808\\\"",
        ),
        ("POST /v1/keys/orders?count=", 400, "count is a number"),
        (
            "POST /v1/keys/orders?cuont=5",
            400,
            "\"command_refused\",\"message\":\"parameter \\\"cuont\\\" has no meaning here",
        ),
        (
            "POST /v1/keys/orders?count=1&count=2",
            400,
            "the only parameter is count, once",
        ),
        ("GET /v1/decode/x", 400, "\"id_foreign\""),
        ("GET /v1/decode/%ff", 400, "\"id_foreign\""),
        (
            "GET /",
            404,
            "\"path_unknown\",\"message\":\"nothing is served at \\\"/\\\"\"",
        ),
        ("GET /v1/decode/", 404, "path_unknown"),
        (
            "GET /v1/keys/orders",
            405,
            "\"method_refused\",\"message\":\"GET has no meaning at this path\",\"hint\":\"use POST\"",
        ),
        ("DELETE /v1/keys/orders", 405, "method_refused"),
        ("PUT /api/segment/get/orders", 405, "use GET, POST"),
    ] {
        let answer = client.say(request)?;
        assert_eq!(answer.status, status, "{request}: {answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_has(&answer.body, &[expected]);
    }
    let refused = client.say("GET /v1/keys/orders")?;
    assert_eq!(refused.header("allow"), Some("POST"));
    let text = client.say_with("POST /v1/keys/none", "Accept: text/plain\r\n")?;
    assert_has(
        &text.body,
        &["tag_unknown: no keys are given under \"none\" here (GET"],
    );
    let body = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    let head = HttpClient::written("POST /v1/keys/orders", body);
    client.send(format!("{head}{{}}").as_bytes())?;
    let refused = client.read()?;
    assert_eq!(refused.status, 400);
    assert_has(&refused.body, &["a body has no meaning here"]);
    // Nothing was taken.
    assert_eq!(client.say("POST /v1/keys/orders")?.numbers("keys")?, [1]);
    for (cause, count) in [
        ("tag_unknown", 2),
        ("path_unknown", 2),
        ("method_refused", 4),
    ] {
        let refused = format!("keywright_port_refused_total{{name=\"\",cause=\"{cause}\"");
        assert_eq!(port.metric(&refused)?, count, "{cause}");
    }
    Ok(())
}

/// What a page can send without being asked.
#[test]
fn pages_in_browsers_take_no_keys() -> Result<()> {
    let port = Port::start("")?;
    let mut client = port.client()?;
    for headers in [
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-origin\r\n",
    ] {
        for request in [
            "POST /v1/keys/orders",
            "GET /api/segment/get/orders",
            "GET /tinyid/id/nextId?bizType=orders",
        ] {
            let answer = client.say_with(request, headers)?;
            assert_eq!(answer.status, 403, "{headers}{request}");
            assert_has(&answer.body, &["\"browser_refused\""]);
        }
    }
    let refused = "keywright_port_refused_total{name=\"\",cause=\"browser_refused\"";
    assert_eq!(port.metric(refused)?, 12);
    let typed = client.say_with("GET /api/segment/get/orders", "Sec-Fetch-Site: none\r\n")?;
    assert_eq!(typed.body, "1");
    Ok(())
}

/// Of a page whose own name leads to this machine: to its browser all of it is one site, so of `Origin` and `Sec-Fetch-Site` there is nothing.
#[test]
fn pages_whose_name_leads_here_read_nothing() -> Result<()> {
    let port = Port::start("")?;
    let named = |at: u16, path: &str, host: &str| {
        let mut client = HttpClient::connect(at)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}:{at}\r\n\r\n");
        client.send(request.as_bytes())?;
        client.read()
    };
    let (metrics, keys) = (port.proxy.metrics_port(), port.proxy.http_port()?);
    for (at, path) in [
        (keys, "/v1/keys"),
        (metrics, "/"),
        (metrics, "/status.json"),
        (metrics, "/metrics"),
        (metrics, "/readyz"),
    ] {
        let refused = named(at, path, "page.evil.example")?;
        assert_eq!(refused.status, 403, "{path}");
        assert_has(&refused.body, &["page.evil.example", "host_names"]);
        for host in ["127.0.0.1", "localhost"] {
            assert_eq!(named(at, path, host)?.status, 200, "{path} of {host}");
        }
    }
    let port = Port::start("host_names = [\"keys.example.com\"]\n")?;
    let keys = port.proxy.http_port()?;
    for (host, status) in [("keys.example.com", 200), ("page.evil.example", 403)] {
        assert_eq!(named(keys, "/v1/keys", host)?.status, status, "{host}");
    }
    Ok(())
}

/// An image of a page, whose address is a plain one of this network: of `Origin` and `Sec-Fetch-Site` there is nothing.
#[test]
fn images_of_pages_take_no_keys() -> Result<()> {
    const CHROME: &str = "User-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                          Chrome/140.0.0.0 Safari/537.36\r\n";
    const TAKE_BY_GET: [&str; 6] = [
        "/api/segment/get/orders",
        "/api/snowflake/get/flakes",
        "/tinyid/id/nextId?bizType=orders",
        "/tinyid/id/nextIdSimple?bizType=orders",
        "/tinyid/id/nextSegmentId?bizType=orders",
        "/tinyid/id/nextSegmentIdSimple?bizType=orders",
    ];
    let port = Port::start("")?;
    let mut client = port.client()?;
    for headers in ["Referer: http://evil.example/\r\n", CHROME] {
        for path in TAKE_BY_GET {
            let answer = client.say_with(&format!("GET {path}"), headers)?;
            assert_eq!(answer.status, 403, "{headers}{path}");
            assert_has(&answer.body, &["\"browser_refused\"", "\"hint\""]);
        }
        // What takes nothing may be looked at.
        let names = client.say_with("GET /v1/keys", headers)?;
        assert_eq!(names.status, 200, "{headers}");
    }
    // Nothing was taken. A page cannot post without saying so.
    let posted = client.say_with("POST /api/segment/get/orders", CHROME)?;
    assert_eq!(posted.body, "1");
    for agent in [
        "curl/8.14.1",
        "Java/1.8.0_452",
        "Go-http-client/1.1",
        "python-requests/2.32.3",
        "Mozilla/5.0 (Windows NT 10.0; Microsoft Windows 10.0.26100; en-US) PowerShell/7.5.2",
    ] {
        let headers = format!("User-Agent: {agent}\r\n");
        let taken = client.say_with("GET /api/segment/get/orders", &headers)?;
        assert_eq!(taken.status, 200, "{agent}");
    }
    Ok(())
}

#[test]
fn the_password_opens() -> Result<()> {
    let port = Port::with_password("")?;
    for (headers, cause) in [
        ("", "\"password_missing\""),
        ("Authorization: Bearer sesamE\r\n", "\"password_wrong\""),
        // app:sesame
        (
            "Authorization: Basic YXBwOnNlc2FtZQ==\r\n",
            "\"password_wrong\"",
        ),
    ] {
        // Five wrong ones end a connection.
        let mut client = port.client()?;
        for request in [
            "POST /v1/keys/orders",
            "GET /v1/keys",
            "GET /v1/decode/1",
            "GET /nothing",
            "GET /api/segment/get/orders",
        ] {
            let answer = client.say_with(request, headers)?;
            assert_eq!(answer.status, 401, "{headers}{request}");
            assert_has(&answer.body, &[cause]);
            let schemes = answer.headers.iter();
            let schemes = schemes.filter(|(name, _)| name == "www-authenticate");
            assert_eq!(schemes.count(), 2);
        }
    }
    let refused = port.metric("keywright_port_refused_total{cause=\"password_wrong\"")?;
    assert_eq!(refused, 10);
    let mut client = port.client()?;
    for headers in [
        "Authorization: Bearer sesame\r\n",
        // default:sesame
        "Authorization: Basic ZGVmYXVsdDpzZXNhbWU=\r\n",
    ] {
        let answer = client.say_with("POST /v1/keys/orders", headers)?;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(port.metric("keywright_port_keys_total{name=\"orders\"")?, 2);
    assert!(!port.proxy.log().contains("sesame"));
    Ok(())
}

#[test]
fn a_store_that_is_away_gives_an_error_in_time_and_no_key() -> Result<()> {
    let mut server = Upstream::start(Flavour::MariaDb)?;
    // Servers of tests are not as durable as real ones, and this one comes back.
    let durable = "SET GLOBAL innodb_flush_log_at_trx_commit = 1";
    server.run("mysql", durable)?;
    let url = make_store(&server, "keywright", &[("orders", 1)])?;
    let config = ProxyConfig {
        store_url: url,
        store: "wait_ms_max = 700\n".to_owned(),
        http_ports: vec!["keys = { orders = \"segment:orders\" }\n".to_owned()],
        ..ProxyConfig::default()
    };
    let proxy = ProxyProcess::start(config)?;
    let mut client = HttpClient::connect(proxy.http_port()?)?;
    let mut last = client.say("POST /v1/keys/orders")?.numbers("keys")?[0];
    server.kill9()?;
    let refused = loop {
        let began = Instant::now();
        let answer = client.say("POST /v1/keys/orders?count=500")?;
        if answer.status != 200 {
            assert!(began.elapsed() < Duration::from_millis(700 + GRACE_MS));
            break answer;
        }
        for number in answer.numbers("keys")? {
            assert!(number > last);
            last = number;
        }
    };
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_has(
        &refused.body,
        &["\"store_unavailable\"", "\"retryable\":true"],
    );
    // What clients of others are told, once nothing is left.
    let mut leaf = client.say("GET /api/segment/get/orders")?;
    while leaf.status == 200 {
        last = leaf.body.parse()?;
        leaf = client.say("GET /api/segment/get/orders")?;
    }
    assert_eq!(leaf.status, 500);
    assert_has(
        &leaf.body,
        &["\"message\":\"Result{id=-3, status=EXCEPTION}\""],
    );
    let tinyid = client.say("GET /tinyid/id/nextId?bizType=orders&token=x")?;
    assert_eq!(tinyid.status, 200);
    assert_has(
        &tinyid.body,
        &["{\"data\":null,\"code\":6,\"message\":\"error query segmentId: "],
    );
    for simple in ["nextIdSimple", "nextSegmentIdSimple"] {
        let request = format!("GET /tinyid/id/{simple}?bizType=orders&token=x");
        assert_eq!(client.say(&request)?.body, "");
    }
    server.restart()?;
    wait_until("keys again", WAIT_MAX, || {
        let mut client = HttpClient::connect(proxy.http_port()?)?;
        let answer = client.say("POST /v1/keys/orders")?;
        if answer.status == 200 {
            assert!(answer.numbers("keys")?[0] > last);
        }
        Ok(answer.status == 200)
    })
}

#[test]
fn a_tag_at_its_end_is_no_reason_to_ask_again() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    let url = make_store(&server, "keywright", &[("orders", i64::MAX as u64 - 5)])?;
    let config = ProxyConfig {
        store_url: url,
        http_ports: vec!["keys = { orders = \"segment:orders\" }\n".to_owned()],
        ..ProxyConfig::default()
    };
    let proxy = ProxyProcess::start(config)?;
    let mut client = HttpClient::connect(proxy.http_port()?)?;
    let refused = client.say("POST /v1/keys/orders?count=100")?;
    assert_eq!(refused.status, 500, "{refused:?}");
    assert_eq!(refused.header("retry-after"), None);
    assert_has(&refused.body, &["\"tag_exhausted\"", "\"retryable\":false"]);
    Ok(())
}

/// Ids that are made of time: so many at once would be of moments that are still far ahead.
#[test]
fn a_burst_that_runs_ahead_of_the_clock_is_told_to_slow_down() -> Result<()> {
    let port = Port::start_with("", |config| ProxyConfig {
        // 256 ids of one worker in 10 ms.
        more: "[snowflake]\nlayout = \"sonyflake\"\nlead_ms_max = 1000\n".to_owned(),
        ..config
    })?;
    let mut client = port.client()?;
    let refused = client.say("POST /v1/keys/flakes?count=100000")?;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_has(
        &refused.body,
        &[
            "\"lead_exceeded\"",
            "ahead of the clock",
            "\"retryable\":true",
        ],
    );
    // Smaller ones go on, and other names.
    assert_eq!(client.say("POST /v1/keys/flakes?count=100")?.status, 200);
    assert_eq!(client.say("POST /v1/keys/orders?count=100000")?.status, 200);
    let refused = "keywright_port_refused_total{name=\"flakes\",cause=\"lead_exceeded\"";
    assert_eq!(port.metric(refused)?, 1);
    Ok(())
}
