//! What is bounded, and what becomes of whoever goes beyond.

use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{
    Flavour, ProxyConfig, ProxyProcess, Result, SqlFault, Upstream, WAIT_MAX, assert_has,
    make_store, take_until_refused, wait_until,
};

use super::{PASSWORD, Port, bulk, client_as, ok, port_with_users};

#[test]
fn one_connection_too_many_is_told_so() -> Result<()> {
    let port = Port::start("connections_max = 2\n")?;
    let (first, mut second) = (let_in(&port)?, let_in(&port)?);
    let told = String::from_utf8(port.client()?.rest()?)?;
    assert_has(&told, &["-CONNECTIONS_FULL ", "connections_max"]);
    assert_eq!(port.metric("keywright_port_connections{")?, 2);
    drop(first);
    let_in(&port)?;
    second.say("PING")?;
    Ok(())
}

/// It was told twenty times a second, for as long as it lasted.
#[test]
fn clients_that_cannot_be_accepted_are_told_of_once() -> Result<()> {
    let port = Port::start("")?;
    let pid = port.proxy.pid()?;
    let limit_files = |most: usize| -> Result<()> {
        let mut prlimit = Command::new("prlimit");
        prlimit.args([format!("--pid={pid}"), format!("--nofile={most}:")]);
        anyhow::ensure!(prlimit.status()?.success(), "{prlimit:?}");
        Ok(())
    };
    let open = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    limit_files(open)?;
    let waiting = (0..20).map(|_| port.client());
    let waiting = waiting.collect::<Result<Vec<_>>>()?;
    let logged = |words: &str| port.proxy.log().matches(words).count();
    wait_until("the log", WAIT_MAX, || {
        Ok(logged("clients cannot be accepted") > 0)
    })?;
    limit_files(open + 100)?;
    for mut client in waiting {
        client.say("INCR orders")?.integer()?;
    }
    wait_until("the end in the log", WAIT_MAX, || {
        port.client()?.say("INCR orders")?.integer()?;
        Ok(logged("clients are accepted again") > 0)
    })?;
    assert_eq!(logged("clients cannot be accepted"), 1);
    assert_eq!(logged("clients are accepted again"), 1);
    Ok(())
}

/// Whoever fills a key port keeps nobody out of another one, nor from a server.
#[test]
fn key_ports_and_listeners_have_places_of_their_own() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    let store = make_store(&server, "keywright", &[("orders", 1)])?;
    let mut config = ProxyConfig::before(&server, &store);
    let lines = "keys = { orders = \"segment:orders\" }\nconnections_max = 3\n";
    config.key_ports = vec![lines.to_owned(), lines.to_owned()];
    config.more = "[limits]\nconnections_max = 1\n".to_owned();
    let proxy = ProxyProcess::start(config)?;
    let mut clients = Vec::new();
    for port in proxy.ports().iter().skip(1) {
        let all = clients.len() + 3;
        wait_until("three places", WAIT_MAX, || {
            let mut client = RespClient::connect(*port)?;
            let reply = client.say("PING");
            if reply.is_ok_and(|reply| reply == RespValue::Simple("PONG".to_owned())) {
                clients.push(client);
            }
            Ok(clients.len() == all)
        })?;
        let told = String::from_utf8(RespClient::connect(*port)?.rest()?)?;
        assert_has(&told, &["-CONNECTIONS_FULL "]);
    }
    let mut wire = None;
    wait_until("the only place of the listener", WAIT_MAX, || {
        wire = proxy.wire("keywright").ok();
        Ok(wire.is_some())
    })?;
    let refused = proxy.wire("keywright").err();
    let refused = refused.context("a second connection")?;
    assert_eq!(refused.downcast::<SqlFault>()?.errno, 1040);
    for client in &mut clients {
        client.say("INCR orders")?.integer()?;
    }
    let mut wire = wire.context("the connection")?;
    assert_eq!(wire.rows("SELECT 1")?, [["1"]]);
    Ok(())
}

/// Whoever looked whether it listens may have a place for a moment.
fn let_in(port: &Port) -> Result<RespClient> {
    let mut client = None;
    wait_until("a place", WAIT_MAX, || {
        let mut new = port.client()?;
        let reply = new.say("PING");
        if reply.is_ok_and(|reply| reply == RespValue::Simple("PONG".to_owned())) {
            client = Some(new);
        }
        Ok(client.is_some())
    })?;
    client.context("a place")
}

#[test]
fn who_is_silent_or_says_no_password_is_disconnected() -> Result<()> {
    let port = Port::start("idle_s_max = 3\n")?;
    let mut client = port.client()?;
    client.say("PING")?;
    assert_eq!(client.rest()?, b"");
    assert_eq!(port.metric("keywright_port_cut_off_total{why=\"idle\"")?, 1);

    let port = Port::start_with("password_env = \"PORT_PASSWORD\"\n", |mut config| {
        let password = ("PORT_PASSWORD".to_owned(), "sesame".to_owned());
        config.environment.push(password);
        config.more = "[limits]\nlogin_ms_max = 3000\n".to_owned();
        config
    })?;
    let mut let_in = port.client()?;
    let_in.ask(&["AUTH", "sesame"])?;
    assert_eq!(port.client()?.rest()?, b"");
    assert_eq!(
        port.metric("keywright_port_cut_off_total{why=\"login\"")?,
        1
    );
    let_in.say("INCR orders")?.integer()?;
    // It has as long again when it has said that it is nobody.
    assert_eq!(let_in.say("RESET")?, RespValue::Simple("RESET".to_owned()));
    let_in.ask(&["AUTH", "sesame"])?;
    let_in.say("INCR orders")?.integer()?;
    Ok(())
}

/// Who sends and does not read takes no memory beyond the limit, and is disconnected.
#[test]
fn who_does_not_read_is_bounded_and_disconnected() -> Result<()> {
    let port = Port::start("output_bytes_max = 65536\nunread_ms_max = 1500\n")?;
    let client = port.client()?;
    let before = port.proxy.memory_kb()?;
    let payload = "x".repeat(4_000);
    let request = RespClient::written(&["ECHO", &payload]);
    let stream = client.stream();
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    let mut sent = take_until_refused(stream, &request, 1 << 30);
    let more_kb = port.proxy.memory_kb()?.saturating_sub(before);
    assert!(more_kb < 4_096, "{more_kb} kB more");
    // Others are served meanwhile.
    port.client()?.say("INCR orders")?.integer()?;
    // Nor is anything more taken when it is disconnected.
    stream.set_write_timeout(Some(WAIT_MAX))?;
    sent += take_until_refused(stream, &request, 1 << 30);
    assert!(
        sent < 1 << 27,
        "{sent} bytes were taken of one who reads nothing"
    );
    wait_until("the end", WAIT_MAX, || {
        Ok(port.metric("keywright_port_cut_off_total{why=\"unread\"")? == 1)
    })?;
    Ok(())
}

/// Whoever can connect, and no more, has the program keep little: few answers are written for it, and its requests are short.
#[test]
fn who_has_not_logged_in_gets_a_few_answers_and_the_end() -> Result<()> {
    const REFUSALS: usize = 32;
    let port = port_with_users("bulk_bytes_max = 1048576\n")?;
    // So that the users are known.
    drop(client_as(port.proxy.key_port()?, "app")?);
    for request in ["A\n", "HELLO 3\r\n"] {
        let mut client = port.client()?;
        client.send(request.repeat(1_000).as_bytes())?;
        let told = String::from_utf8(client.rest()?)?;
        assert_eq!(told.matches("-NOAUTH ").count(), REFUSALS, "{told}");
    }
    assert_eq!(
        port.metric("keywright_port_cut_off_total{why=\"login\"")?,
        2
    );
    let long = "x".repeat(20_000);
    for request in [
        RespClient::written(&["ECHO", &long]),
        RespClient::written(&["A"; 11]),
        long.clone().into_bytes(),
    ] {
        let mut client = port.client()?;
        client.send(&request)?;
        let told = String::from_utf8(client.rest()?)?;
        assert_has(&told, &["-NOAUTH Authentication required before"]);
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    // Behind its login a client may send what users may, also in the same pipeline, and whatever its driver asked before.
    let mut client = port.client()?;
    let mut all = RespClient::written(&["CLIENT", "SETNAME", "me"]).repeat(REFUSALS - 1);
    all.extend(RespClient::written(&["AUTH", "app", PASSWORD]));
    all.extend(RespClient::written(&["ECHO", &long]));
    client.send(&all)?;
    for _ in 1..REFUSALS {
        assert_has(client.read()?.error()?, &["NOAUTH "]);
    }
    assert_eq!(client.read()?, ok());
    assert_eq!(client.read()?, bulk(&long));
    Ok(())
}

/// Long lists share the memory that statements have.
#[test]
fn lists_beyond_the_memory_for_all_are_refused() -> Result<()> {
    let port = Port::start_with("output_bytes_max = 16777216\n", |mut config| {
        config.more =
            "[limits]\nmemory_bytes_max = 4194304\nrewrite_bytes_max = 1048576\n".to_owned();
        config
    })?;
    let mut client = port.client()?;
    // What was there is given back.
    for _ in 0..2 {
        let fits = client.say("KEYWRIGHT NEXT orders COUNT 20000")?;
        assert!(matches!(fits, RespValue::Array(keys) if keys.len() == 20_000));
        let refused = client.say("KEYWRIGHT NEXT orders COUNT 50000")?;
        assert_has(refused.error()?, &["MEMORY_FULL ", "memory_bytes_max"]);
    }
    client.send(&RespClient::written(&["INCR", "orders"]).repeat(10_000))?;
    for _ in 0..10_000 {
        client.read()?.integer()?;
    }
    Ok(())
}

#[test]
fn what_is_no_request_or_too_long_ends_the_connection_with_an_error() -> Result<()> {
    let port = Port::start("bulk_bytes_max = 100\n")?;
    let long = format!("*2\r\n$4\r\nECHO\r\n$101\r\n{}\r\n", "x".repeat(101));
    let line = "x".repeat(80_000);
    for (bytes, expected) in [
        (
            "*1\r\n:1\r\n",
            "-ERR Protocol error: expected '$', got ':'\r\n",
        ),
        (
            "*x\r\n",
            "-ERR Protocol error: invalid multibulk length\r\n",
        ),
        (
            "*9999\r\n",
            "-ERR Protocol error: invalid multibulk length\r\n",
        ),
        (
            "*1\r\n$x\r\n",
            "-ERR Protocol error: invalid bulk length\r\n",
        ),
        (
            "*1\r\n$4\r\nPINGxx",
            "-ERR Protocol error: expected CR and LF\r\n",
        ),
        (
            "PING \"\r\n",
            "-ERR Protocol error: unbalanced quotes in request\r\n",
        ),
        (&long, "-ERR Protocol error: invalid bulk length\r\n"),
        (&line, "-ERR Protocol error: too big request\r\n"),
    ] {
        let mut client = port.client()?;
        let all = format!("PING\r\n{bytes}PING\r\n");
        client.send(all.as_bytes())?;
        let told = String::from_utf8(client.rest()?)?;
        assert_eq!(
            told,
            format!("+PONG\r\n{expected}"),
            "{}",
            &all[..all.len().min(60)]
        );
    }
    assert_eq!(
        port.metric("keywright_port_cut_off_total{why=\"protocol\"")?,
        8
    );
    // A longest request is none of these.
    let mut client = port.client()?;
    let longest = "x".repeat(100);
    assert_eq!(client.ask(&["ECHO", &longest])?, RespValue::Bulk(longest));
    let names = vec!["orders"; 1_023];
    let reply = client.ask(&[&["MGET"], names.as_slice()].concat())?;
    assert!(matches!(reply, RespValue::Array(lasts) if lasts.len() == 1_023));
    Ok(())
}

/// What a page in a browser of this machine can send.
#[test]
fn lines_behind_a_request_of_http_are_not_carried_out() -> Result<()> {
    let port = Port::start("")?;
    for head in [
        "POST / HTTP/1.1\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n",
    ] {
        let mut client = port.client()?;
        client.send(format!("{head}\r\nINCR orders\r\n").as_bytes())?;
        let told = String::from_utf8(client.rest()?)?;
        assert_has(&told, &["-ERR Protocol error: this is no server of HTTP"]);
    }
    assert_eq!(port.client()?.say("INCR orders")?, RespValue::Integer(1));
    Ok(())
}

/// With the smallest limits nothing is lost and nothing hangs, however requests are cut and replies are read.
#[test]
fn small_limits_change_nothing_but_the_pace() -> Result<()> {
    const REQUESTS: usize = 3_000;
    let port =
        Port::start("output_bytes_max = 64\npipeline_requests_max = 1\nbulk_bytes_max = 300\n")?;
    thread::scope(|scope| {
        let clients = (0..6).map(|seed| {
            let mut reader = port.client()?;
            let mut writer = reader.stream().try_clone()?;
            let mut random = fastrand::Rng::with_seed(seed);
            let words: Vec<Option<String>> = (0..REQUESTS)
                .map(|_| (random.u8(..3) > 0).then(|| "x".repeat(random.usize(..300))))
                .collect();
            let sent = words.clone();
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed + 100);
                let requests = sent.iter().map(|word| match word {
                    Some(word) => RespClient::written(&["ECHO", word]),
                    None => RespClient::written(&["INCRBY", "orders", "7"]),
                });
                let bytes: Vec<u8> = requests.flatten().collect();
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let (piece, behind) = rest.split_at(random.usize(1..2_000).min(rest.len()));
                    if writer.write_all(piece).is_err() {
                        return;
                    }
                    rest = behind;
                }
            });
            Ok(scope.spawn(move || -> Result<()> {
                let mut last = 0;
                for word in words {
                    match (word, reader.read()?) {
                        (Some(word), reply) => assert_eq!(reply, RespValue::Bulk(word)),
                        (None, reply) => {
                            let number = reply.integer()?;
                            assert!(number > last, "{number} {last}");
                            last = number;
                        }
                    }
                }
                Ok(())
            }))
        });
        let clients: Vec<_> = clients.collect::<Result<_>>()?;
        clients
            .into_iter()
            .try_for_each(|client| match client.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })
}
