//! Programs that end at any moment: what a key port gave is never given again.

use keywright_testkit::redis::RespClient;
use keywright_testkit::{
    Flavour, Login, ProxyConfig, ProxyProcess, Result, Upstream, WAIT_MAX, Wire, make_store,
    wait_until,
};

use super::Port;
use super::client::HttpClient;
use super::killed::{Given, no_number_is_given_twice};

const KILLS: usize = 5;
const NAMES: &str = "keys = { orders = \"segment:orders\" }\ntinyid_segment_keys = 50\n";

/// Over HTTP, over the Redis protocol and through SQL numbers of one tag are taken, while the program is killed again and again.
#[test]
fn no_number_is_given_twice_however_the_program_ends() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    server.run(
        "mysql",
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
    )?;
    let store = make_store(&server, "keywright", &[("orders", 1)])?;
    let mut config = ProxyConfig::before(&server, &store).rule("shop.orders", "segment:orders");
    config.key_ports = vec!["keys = { orders = \"segment:orders\" }\n".to_owned()];
    config.http_ports = vec![NAMES.to_owned()];
    let mut proxy = ProxyProcess::start(config.clone())?;
    // A second program on the same store, which nobody kills.
    let other = ProxyProcess::start(ProxyConfig {
        store_url: store,
        http_ports: vec![NAMES.to_owned()],
        ..ProxyConfig::default()
    })?;
    let ports = Ports {
        sql: proxy.port(),
        redis: proxy.key_port()?,
        http: [proxy.http_port()?, other.http_port()?],
    };
    no_number_is_given_twice(&mut proxy, KILLS, |client, given| {
        take(ports, client, given)
    })
}

#[derive(Clone, Copy)]
struct Ports {
    sql: u16,
    redis: u16,
    http: [u16; 2],
}

fn take(ports: Ports, client: usize, given: &Given) -> Result<()> {
    match client {
        0 => {
            let mut wire = Wire::connect_tcp(ports.sql, &Login::root("shop"))?;
            while given.is_going_on() {
                let done = wire.run("INSERT INTO orders (a) VALUES (1), (2)")?;
                let first = i64::try_from(done.last_insert_id)?;
                given.note(first, first + 1);
            }
        }
        1 => {
            let mut wire = RespClient::connect(ports.redis)?;
            while given.is_going_on() {
                let last = wire.say("INCRBY orders 5")?.integer()?;
                given.note(last - 4, last);
            }
        }
        2 => {
            let mut http = HttpClient::connect(ports.http[0])?;
            while given.is_going_on() {
                let segment =
                    http.say("GET /tinyid/id/nextSegmentIdSimple?bizType=orders&token=x")?;
                let parts: Vec<i64> = segment
                    .body
                    .split(',')
                    .map(str::parse)
                    .collect::<std::result::Result<_, _>>()?;
                given.note(parts[0] + 1, parts[2]);
            }
        }
        3 => {
            let mut http = HttpClient::connect(ports.http[1])?;
            while given.is_going_on() {
                let id = http.say("GET /api/segment/get/orders")?.body.parse()?;
                given.note(id, id);
            }
        }
        _ => {
            let mut http = HttpClient::connect(ports.http[client % 2])?;
            let requests = client % 3 * 5 + 1;
            let request = HttpClient::written("POST /v1/keys/orders?count=7", "");
            while given.is_going_on() {
                http.send(request.repeat(requests).as_bytes())?;
                for _ in 0..requests {
                    for id in http.read()?.numbers("keys")? {
                        given.note(id, id);
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_stop_answers_what_was_read_and_hands_the_rest_back() -> Result<()> {
    let mut port = Port::start("")?;
    let mut idle = port.client()?;
    let mut busy = port.client()?;
    assert_eq!(idle.say("POST /v1/keys/orders")?.numbers("keys")?, [1]);
    let request = HttpClient::written("POST /v1/keys/orders", "");
    busy.send(request.repeat(2_000).as_bytes())?;
    let mut last = busy.read()?.numbers("keys")?[0];
    port.proxy.begin_stop()?;
    assert_eq!(idle.rest()?, "");
    while let Ok(answer) = busy.read() {
        let number = answer.numbers("keys")?[0];
        assert_eq!(number, last + 1);
        last = number;
    }
    assert!(port.proxy.wait()?.success(), "{}", port.proxy.log());
    port.proxy.restart()?;
    // Nothing comes twice, and nothing but what was on its way was lost.
    let next = port
        .client()?
        .say("POST /v1/keys/orders")?
        .numbers("keys")?[0];
    assert_eq!(next, last + 1);
    Ok(())
}

/// Who is connected goes on with the old program, who comes gets keys of the new one, and nobody is kept waiting.
#[test]
fn another_program_takes_over_without_an_error() -> Result<()> {
    let mut port = Port::start("")?;
    let mut before = port.client()?;
    let take = |client: &mut HttpClient| {
        let answer = client.say("POST /v1/keys/orders")?;
        Ok::<_, anyhow::Error>(answer.numbers("keys")?[0])
    };
    let mut all = vec![take(&mut before)?];
    let mut old = port.proxy.take_over()?;
    let mut after = port.client()?;
    for _ in 0..1_000 {
        all.push(take(&mut before)?);
        all.push(take(&mut after)?);
    }
    drop(before);
    assert!(old.wait()?.success());
    all.push(take(&mut after)?);
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    Ok(())
}

#[test]
fn names_and_passwords_come_and_go_while_clients_are_connected() -> Result<()> {
    let mut port = Port::start("")?;
    let mut client = port.client()?;
    assert_eq!(client.say("POST /v1/keys/orders")?.status, 200);
    let mut config = port.config.clone();
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), "sesame\n")?;
    let lines = format!("{NAMES}password_file = \"{}\"\n", file.path().display());
    // The limits are those of before: they take a new program.
    let lines = lines
        .replace("orders =", "shop =")
        .replace("tinyid_segment_keys = 50\n", "");
    config.http_ports = vec![lines];
    port.proxy.reload(config)?;
    let headers = "Authorization: Bearer sesame\r\n";
    wait_until("the new name", WAIT_MAX, || {
        let answer = client.say_with("POST /v1/keys/shop", headers)?;
        Ok(answer.status == 200)
    })?;
    assert_eq!(client.say("POST /v1/keys/shop")?.status, 401);
    assert_eq!(
        client.say_with("POST /v1/keys/orders", headers)?.status,
        404
    );
    Ok(())
}
