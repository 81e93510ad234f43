//! What clients ask for, and what they are told.

use std::collections::BTreeSet;

use keywright_testkit::redis::{RespClient, RespValue};
use keywright_testkit::{Result, assert_has};

use super::Port;

#[test]
fn keys_of_every_kind_are_given() -> Result<()> {
    let port = Port::start("")?;
    let mut client = port.client()?;
    assert_eq!(client.say("GET orders")?, RespValue::Null);
    assert_eq!(client.say("INCR orders")?, RespValue::Integer(1));
    assert_eq!(client.say("incrby orders 10")?, RespValue::Integer(11));
    assert_eq!(client.say("INCR orders")?, RespValue::Integer(12));
    let last = RespValue::Bulk("12".to_owned());
    assert_eq!(client.say("GET orders")?, last);
    let lasts = [last, RespValue::Null, RespValue::Null, RespValue::Null];
    assert_eq!(
        client.say("MGET orders flakes tokens none")?,
        RespValue::Array(lasts.to_vec())
    );
    let flake = client.say("INCR flakes")?.integer()?;
    let run = client.say("INCRBY flakes 64")?.integer()?;
    assert!(run - 63 > flake, "{run} {flake}");
    client.say("HELLO 3")?;
    let RespValue::Map(parts) = client.say(&format!("KEYWRIGHT DECODE {run}"))? else {
        panic!("no map");
    };
    assert!(parts.contains(&(
        RespValue::Bulk("kind".into()),
        RespValue::Bulk("snowflake".into())
    )));
    assert!(parts.contains(&(
        RespValue::Bulk("layout".into()),
        RespValue::Bulk("twitter".into())
    )));
    assert_eq!(parts.len(), 7, "{parts:?}");
    // One of a tag. The length of the map is what its reader goes by.
    let RespValue::Map(parts) = client.say("KEYWRIGHT DECODE 12")? else {
        panic!("no map");
    };
    let note = parts
        .iter()
        .find(|(name, _)| *name == RespValue::Bulk("note".into()));
    let Some((_, RespValue::Bulk(note))) = note else {
        panic!("{parts:?}");
    };
    assert!(note.contains("of a tag"), "{note}");
    assert_eq!(client.say("PING")?, RespValue::Simple("PONG".into()));
    for (name, length) in [("tokens", 36), ("invoices", 27)] {
        let RespValue::Array(keys) = client.say(&format!("KEYWRIGHT NEXT {name} COUNT 50"))? else {
            panic!("no list");
        };
        let keys = keys.into_iter().map(|key| match key {
            RespValue::Bulk(text) => text,
            other => panic!("{other:?}"),
        });
        let keys: BTreeSet<String> = keys.collect();
        assert_eq!(keys.len(), 50);
        assert!(keys.iter().all(|key| key.len() == length), "{keys:?}");
    }
    assert_eq!(client.say("KEYWRIGHT NEXT orders")?, RespValue::Integer(13));
    let list = [14, 15, 16].map(RespValue::Integer);
    assert_eq!(
        client.say("KEYWRIGHT NEXT orders COUNT 3")?,
        RespValue::Array(list.to_vec())
    );
    assert_eq!(
        port.metric("keywright_port_keys_total{name=\"orders\"")?,
        16
    );
    let requests = "keywright_port_request_seconds_count{name=\"orders\"";
    assert_eq!(port.metric(requests)?, 5);
    Ok(())
}

#[test]
fn what_is_refused_says_why_and_gives_no_key() -> Result<()> {
    let port = Port::start("")?;
    let mut client = port.client()?;
    let (mut refused, mut no_command) = (0, 0);
    for (request, expected) in [
        (
            "INCR none",
            "TAG_UNKNOWN no keys are given under \"none\" here (KEYWRIGHT LIST",
        ),
        ("GET none", "TAG_UNKNOWN"),
        (
            "INCRBY orders 0",
            "ARGUMENT_OUT_OF_RANGE \"orders\" gives 1 key or more, not 0",
        ),
        ("INCRBY orders -5", "ARGUMENT_OUT_OF_RANGE"),
        (
            "INCRBY orders 1000001",
            "ARGUMENT_OUT_OF_RANGE one run of \"orders\" has at most 1000000 keys, not 1000001",
        ),
        ("INCRBY orders 9223372036854775807", "ARGUMENT_OUT_OF_RANGE"),
        (
            "INCRBY orders 9223372036854775808",
            "ERR value is not an integer or out of range",
        ),
        (
            "INCRBY flakes 4097",
            "ARGUMENT_OUT_OF_RANGE one run of \"flakes\" has at most 4096 keys",
        ),
        ("KEYWRIGHT NEXT orders COUNT 0", "ARGUMENT_OUT_OF_RANGE"),
        (
            "KEYWRIGHT NEXT orders COUNT 30000",
            "ARGUMENT_OUT_OF_RANGE one list has at most 21845 keys",
        ),
        (
            "INCR tokens",
            "WRONGTYPE the keys of \"tokens\" are no numbers (KEYWRIGHT NEXT gives them)",
        ),
        ("GET invoices", "WRONGTYPE"),
        (
            "SET orders 7",
            "ERR keys are given once: nothing sets, changes, lowers or deletes them",
        ),
        ("DECR orders", "ERR keys are given once"),
        ("DEL orders", "ERR keys are given once"),
        ("MULTI", "ERR there are no transactions"),
        ("HSET a b c", "ERR this is a key port"),
        ("SCAN 0", "ERR this is a key port"),
        ("NONSENSE", "ERR unknown command 'NONSENSE'"),
        ("CLIENT LIST", "ERR unknown subcommand 'LIST' of CLIENT"),
        ("KEYWRIGHT FOO", "ERR unknown subcommand 'FOO' of KEYWRIGHT"),
        ("KEYWRIGHT ABOUT none", "TAG_UNKNOWN"),
        ("INCR", "ERR wrong number of arguments for 'incr' command"),
        ("SELECT 1", "ERR DB index is out of range"),
        ("HELLO 4", "NOPROTO unsupported protocol version"),
        (
            "CLUSTER SLOTS",
            "ERR This instance has cluster support disabled",
        ),
        (
            "AUTH secret",
            "ERR AUTH <password> called without any password configured",
        ),
        ("KEYWRIGHT DECODE x", "ID_FOREIGN"),
    ] {
        let reply = client.say(request)?;
        let error = reply.error()?;
        assert_has(error, &[expected]);
        refused += 1;
        no_command += u64::from(error.starts_with("ERR ") || error.starts_with("NOPROTO "));
        assert_eq!(refused_by(&port, |_| true)?, refused, "{request}");
    }
    assert_eq!(client.say("INCR orders")?, RespValue::Integer(1));
    // Each of them once.
    assert_eq!(refused_by(&port, |_| true)?, refused);
    let is_no_command = |series: &str| series.contains("cause=\"command_refused\"");
    assert_eq!(refused_by(&port, is_no_command)?, no_command);
    assert_eq!(
        port.metric("keywright_port_refused_total{cause=\"key_kind\"")?,
        1
    );
    assert_eq!(
        port.metric("keywright_port_refused_total{name=\"\",cause=\"tag_unknown\"")?,
        3
    );
    Ok(())
}

/// Requests that the port counted as refused, in the series that are asked for.
fn refused_by(port: &Port, is_asked: impl Fn(&str) -> bool) -> Result<u64> {
    let (_, metrics) = port.proxy.http_get("/metrics")?;
    let mut refused = 0;
    for line in metrics.lines() {
        if let Some((series, count)) = line.rsplit_once(' ')
            && series.starts_with("keywright_port_refused_total{")
            && is_asked(series)
        {
            refused += count.parse::<u64>()?;
        }
    }
    Ok(refused)
}

#[test]
fn what_clients_send_on_connecting_just_works() -> Result<()> {
    let port = Port::start("")?;
    let mut client = port.client()?;
    let ok = RespValue::Simple("OK".to_owned());
    let bulk = |text: &str| RespValue::Bulk(text.to_owned());
    for (request, expected) in [
        ("PING", RespValue::Simple("PONG".to_owned())),
        ("PING hello", bulk("hello")),
        ("ECHO hello", bulk("hello")),
        ("SELECT 0", ok.clone()),
        ("CLIENT SETINFO LIB-NAME x", ok.clone()),
        ("CLIENT GETNAME", RespValue::Null),
        ("CLIENT SETNAME me", ok.clone()),
        ("CLIENT GETNAME", bulk("me")),
        ("READONLY", ok.clone()),
        ("ACL WHOAMI", bulk("default")),
        ("CONFIG GET save", RespValue::Array(Vec::new())),
        ("CLUSTER KEYSLOT foo", RespValue::Integer(12_182)),
        ("COMMAND INFO none", RespValue::Array(vec![RespValue::Null])),
        ("RESET", RespValue::Simple("RESET".to_owned())),
        ("CLIENT GETNAME", RespValue::Null),
    ] {
        assert_eq!(client.say(request)?, expected, "{request}");
    }
    let id = client.say("CLIENT ID")?.integer()?;
    let RespValue::Bulk(info) = client.say("INFO")? else {
        panic!("no text");
    };
    assert_has(
        &info,
        &[
            "redis_version:",
            "loading:0",
            "connected_clients:1",
            "store_up:1",
        ],
    );
    let count = client.say("COMMAND COUNT")?.integer()?;
    let RespValue::Array(commands) = client.say("COMMAND")? else {
        panic!("no list");
    };
    assert_eq!(i64::try_from(commands.len())?, count);
    let RespValue::Map(hello) = client.say("HELLO 3 SETNAME you")? else {
        panic!("no map");
    };
    assert!(hello.contains(&(bulk("proto"), RespValue::Integer(3))));
    assert!(hello.contains(&(bulk("id"), RespValue::Integer(id))));
    assert_eq!(client.say("CONFIG GET save")?, RespValue::Map(Vec::new()));
    assert!(matches!(client.say("COMMAND DOCS incr")?, RespValue::Map(docs) if docs.len() == 1));
    assert!(matches!(client.say("TIME")?, RespValue::Array(time) if time.len() == 2));
    assert_has(
        &format!("{:?}", client.say("CLIENT INFO")?),
        &["name=you", "resp=3"],
    );
    assert_eq!(client.say("QUIT")?, ok);
    assert_eq!(client.rest()?, b"");
    Ok(())
}

#[test]
fn lines_are_understood_as_people_type_them() -> Result<()> {
    let port = Port::start("")?;
    let mut client = port.client()?;
    client.send(b"\r\nincr orders\r\n  ECHO \"a b\"  \nMGET orders\r\n")?;
    client.end()?;
    let expected: &[u8] = b":1\r\n$3\r\na b\r\n*1\r\n$1\r\n1\r\n";
    assert_eq!(client.rest()?, expected);
    Ok(())
}

/// Wherever the network cuts it, replies are the same, and come in the order of requests.
#[test]
fn a_pipeline_is_answered_in_order_wherever_it_is_cut() -> Result<()> {
    let port = Port::start("")?;
    let requests: &[&[&str]] = &[
        &["PING"],
        &["INCR", "orders"],
        &["ECHO", "\r\n$5\r\n"],
        &["INCR", "none"],
        &["INCRBY", "orders", "3"],
        &["GET", "orders"],
    ];
    let mut bytes: Vec<u8> = requests
        .iter()
        .flat_map(|request| RespClient::written(request))
        .collect();
    bytes.extend_from_slice(b"ping \"x y\"\r\n");
    let mut last = 0;
    for cut in 0..bytes.len() {
        let mut client = port.client()?;
        client.send(&bytes[..cut])?;
        // So that they come apart: this reply comes when all before it was read.
        if cut > RespClient::written(&["PING"]).len() {
            assert_eq!(client.read()?, RespValue::Simple("PONG".to_owned()));
            client.send(&bytes[cut..])?;
        } else {
            client.send(&bytes[cut..])?;
            assert_eq!(client.read()?, RespValue::Simple("PONG".to_owned()));
        }
        let one = client.read()?.integer()?;
        assert_eq!(client.read()?, RespValue::Bulk("\r\n$5\r\n".to_owned()));
        assert_has(client.read()?.error()?, &["TAG_UNKNOWN"]);
        let run = client.read()?.integer()?;
        assert_eq!((one, run), (last + 1, last + 4));
        last = run;
        assert_eq!(client.read()?, RespValue::Bulk(last.to_string()));
        assert_eq!(client.read()?, RespValue::Bulk("x y".to_owned()));
        client.end()?;
        assert_eq!(client.rest()?, b"");
    }
    Ok(())
}

/// Longer than what a socket takes, and than a turn.
#[test]
fn a_long_pipeline_is_written_before_anything_is_read() -> Result<()> {
    const REQUESTS: usize = 100_000;
    let port = Port::start("")?;
    let mut client = port.client()?;
    let one = RespClient::written(&["INCR", "orders"]);
    client.send(&one.repeat(REQUESTS))?;
    let mut ids = BTreeSet::new();
    for _ in 0..REQUESTS {
        ids.insert(client.read()?.integer()?);
    }
    assert_eq!(ids.len(), REQUESTS);
    Ok(())
}

#[test]
fn nobody_gets_keys_without_the_password() -> Result<()> {
    let port = Port::start_with("password_env = \"PORT_PASSWORD\"\n", |mut config| {
        let password = ("PORT_PASSWORD".to_owned(), "open sesame".to_owned());
        config.environment.push(password);
        config
    })?;
    let mut client = port.client()?;
    for request in [
        "INCR orders",
        "PING",
        "NONSENSE",
        "INFO",
        "KEYWRIGHT LIST",
        "CLIENT ID",
    ] {
        let reply = client.say(request)?;
        assert_eq!(
            reply.error()?,
            "NOAUTH Authentication required.",
            "{request}"
        );
    }
    assert_has(
        client.say("HELLO 3")?.error()?,
        &["NOAUTH HELLO must be called"],
    );
    for wrong in [
        &["AUTH", "open"][..],
        &["AUTH", "app", "open sesame"],
        &["HELLO", "3", "AUTH", "default", "sesame"],
    ] {
        assert_has(client.ask(wrong)?.error()?, &["WRONGPASS "]);
    }
    let ok = RespValue::Simple("OK".to_owned());
    assert_eq!(client.ask(&["AUTH", "open sesame"])?, ok);
    assert_eq!(client.say("INCR orders")?, RespValue::Integer(1));
    assert_eq!(client.say("RESET")?, RespValue::Simple("RESET".to_owned()));
    assert_has(client.say("INCR orders")?.error()?, &["NOAUTH"]);
    let hello = client.ask(&["HELLO", "2", "AUTH", "default", "open sesame"])?;
    assert!(matches!(hello, RespValue::Array(_)), "{hello:?}");
    assert_eq!(client.say("INCR orders")?, RespValue::Integer(2));
    // Whoever guesses has to come again.
    let mut client = port.client()?;
    for guess in 1..=5 {
        let reply = client.ask(&["AUTH", &format!("a wrong guess {guess}")])?;
        assert_has(reply.error()?, &["WRONGPASS "]);
    }
    assert_eq!(client.rest()?, b"");
    let refused = port.metric("keywright_port_refused_total{cause=\"password_wrong\"")?;
    assert!(refused >= 5, "{refused}");
    let log = port.proxy.log();
    assert!(!log.contains("sesame"), "{log}");
    Ok(())
}
