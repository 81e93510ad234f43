//! Clients of Leaf and of tinyid, which know no other server than their own.

use std::collections::BTreeSet;
use std::thread;

use anyhow::{Context as _, bail};
use keywright_testkit::{Flavour, ProxyConfig, ProxyProcess, Result, Upstream, assert_has};

use super::Port;
use super::client::{Answer, HttpClient};

/// As Leaf's users write it: a number, or an exception.
fn leaf_id(client: &mut HttpClient, kind: &str, key: &str) -> Result<i64> {
    let answer = client.say(&format!("GET /api/{kind}/get/{key}"))?;
    if answer.status != 200 {
        bail!("{answer:?}");
    }
    Ok(answer.body.parse()?)
}

#[test]
fn clients_of_leaf_get_segment_ids() -> Result<()> {
    let port = Port::start("")?;
    let mut client = port.client()?;
    let answer = client.say("GET /api/segment/get/orders")?;
    assert_eq!((answer.status, answer.body.as_str()), (200, "1"));
    let kind = |answer: &Answer| answer.header("content-type").map(str::to_owned);
    assert_eq!(kind(&answer).as_deref(), Some("text/plain;charset=UTF-8"));
    let posted = client.say_with(
        "POST /api/segment/get/orders",
        "Accept: application/json\r\n",
    )?;
    assert_eq!(posted.body, "2");
    assert_eq!(
        kind(&posted).as_deref(),
        Some("application/json;charset=UTF-8")
    );
    for number in 3..2_000 {
        assert_eq!(leaf_id(&mut client, "segment", "orders")?, number);
    }
    for key in ["none", "flakes", "tokens"] {
        let refused = client.say(&format!("GET /api/segment/get/{key}"))?;
        assert_eq!(refused.status, 500);
        assert_eq!(
            kind(&refused).as_deref(),
            Some("application/json;charset=UTF-8")
        );
        let (head, rest) = refused.body.split_once(',').context("parts")?;
        assert_has(head, &["{\"timestamp\":1"]);
        let expected = format!(
            "\"status\":500,\"error\":\"Internal Server Error\",\"exception\":\"com.sankuai.inf.leaf.server.exception.LeafServerException\",\
             \"message\":\"Result{{id=-2, status=EXCEPTION}}\",\"path\":\"/api/segment/get/{key}\"}}"
        );
        assert_eq!(rest, expected);
    }
    Ok(())
}

/// A worker id that is leased may be that of a server of Leaf.
#[test]
fn clients_of_leaf_get_snowflake_ids_of_a_worker_id_that_was_chosen() -> Result<()> {
    let port = Port::start("")?;
    let mut client = port.client()?;
    let refused = client.say("GET /api/snowflake/get/flakes")?;
    assert_eq!(refused.status, 500);
    assert_has(&refused.body, &["Result{id=-1, status=EXCEPTION}"]);
    client.say("GET /api/snowflake/get/flakes")?;
    assert_eq!(
        port.metric("keywright_port_refused_total{name=\"flakes\",cause=\"worker_id_unset\"")?,
        2
    );
    // The operator hears what Leaf's answer has no room for, once.
    let log = port.proxy.log();
    let told: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("get no snowflake ids of \"flakes\""))
        .collect();
    assert_eq!(told.len(), 1, "{log}");
    assert_has(told[0], &["set worker_id of [snowflake]"]);
    let port = Port::start_with("", |mut config| {
        config.more = "[snowflake]\nlayout = \"leaf\"\nworker_id = 77\n".to_owned();
        config
    })?;
    let mut client = port.client()?;
    let mut last = 0;
    for _ in 0..1_000 {
        let id = leaf_id(&mut client, "snowflake", "flakes")?;
        assert!(id > last);
        assert_eq!(id >> 12 & 1023, 77);
        last = id;
    }
    let refused = client.say("GET /api/snowflake/get/orders")?;
    assert_has(&refused.body, &["Result{id=-2, status=EXCEPTION}"]);
    Ok(())
}

#[test]
fn clients_of_tinyid_get_ids() -> Result<()> {
    let port = Port::start("request_keys_max = 50\n")?;
    let mut client = port.client()?;
    let json = "application/json;charset=UTF-8";
    let text = "text/plain;charset=UTF-8";
    let not_there = "{\"data\":null,\"code\":6,\"message\":\"error query segmentId: can not find biztype:none\"}";
    let no_type = "{\"data\":null,\"code\":5,\"message\":\"token is error\"}";
    for (request, kind, body) in [
        (
            "nextId?bizType=orders&token=x",
            json,
            "{\"data\":[1],\"code\":200,\"message\":\"\"}",
        ),
        (
            "nextId?bizType=orders&batchSize=3",
            json,
            "{\"data\":[2,3,4],\"code\":200,\"message\":\"\"}",
        ),
        (
            "nextId?bizType=orders&batchSize=",
            json,
            "{\"data\":[5],\"code\":200,\"message\":\"\"}",
        ),
        (
            "nextId?bizType=orders&batchSize=0",
            json,
            "{\"data\":[],\"code\":200,\"message\":\"\"}",
        ),
        (
            "nextId?bizType=orders&batchSize=-1",
            json,
            "{\"data\":[],\"code\":200,\"message\":\"\"}",
        ),
        ("nextId?bizType=none&token=x", json, not_there),
        ("nextId?token=x", json, no_type),
        ("nextIdSimple?bizType=orders&token=x", text, "6"),
        ("nextIdSimple?bizType=orders&batchSize=3", text, "7,8,9"),
        ("nextIdSimple?bizType=orders&batchSize=0", text, ""),
        ("nextIdSimple?bizType=none&token=x", text, ""),
        ("nextIdSimple?bizType=tokens&token=x", text, ""),
        (
            "nextSegmentId?bizType=none&token=x",
            json,
            "{\"data\":null,\"code\":6,\"message\":\"can not find biztype:none\"}",
        ),
        ("nextSegmentIdSimple?bizType=none&token=x", text, ""),
        ("nextSegmentIdSimple?bizType=flakes&token=x", text, ""),
    ] {
        let answer = client.say(&format!("GET /tinyid/id/{request}"))?;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, body),
            "{request}"
        );
        assert_eq!(answer.header("content-type"), Some(kind), "{request}");
    }
    // As many as may be where more are asked for.
    let many = client.say("GET /tinyid/id/nextId?bizType=orders&batchSize=1000")?;
    assert_eq!(many.numbers("data")?, (10..60).collect::<Vec<_>>());
    let posted = client.form(
        "POST /tinyid/id/nextIdSimple",
        "bizType=orders&token=x&batchSize=2",
    )?;
    assert_eq!(posted.body, "60,61");
    let wrong = client.say("GET /tinyid/id/nextId?bizType=orders&batchSize=x1")?;
    assert_eq!(wrong.status, 400);
    assert_has(
        &wrong.body,
        &[
            "\"status\":400,\"error\":\"Bad Request\",\"exception\":\"org.springframework.web.method.annotation.\
             MethodArgumentTypeMismatchException\"",
            "For input string: \\\"x1\\\"\",\"path\":\"/tinyid/id/nextId\"}",
        ],
    );
    Ok(())
}

/// What tinyid's client does with a segment: it counts through it, and asks for the next one in time.
struct TinyidClient {
    http: HttpClient,
    token: &'static str,
    biz_type: &'static str,
    /// Current, loading, max, delta, remainder; counted on from current.
    segment: [i64; 5],
    next: Option<[i64; 5]>,
}

impl TinyidClient {
    fn new(port: u16, biz_type: &'static str, token: &'static str) -> Result<Self> {
        let mut client = Self {
            http: HttpClient::connect(port)?,
            token,
            biz_type,
            segment: [0; 5],
            next: None,
        };
        client.segment = client.load()?;
        Ok(client)
    }

    /// As its `HttpURLConnection` sends it: a POST with an empty form, the parameters behind the `?`.
    fn load(&mut self) -> Result<[i64; 5]> {
        let request = format!(
            "POST /tinyid/id/nextSegmentIdSimple?token={}&bizType={}",
            self.token, self.biz_type
        );
        let answer = self.http.form(&request, "")?;
        if answer.body.trim().is_empty() {
            bail!("error query segmentId");
        }
        let parts: Vec<i64> = answer
            .body
            .split(',')
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        let mut segment: [i64; 5] = parts.try_into().ok().context("five numbers")?;
        let [current, _, _, delta, remainder] = &mut segment;
        if *current % *delta != *remainder {
            for _ in 0..=*delta {
                *current += 1;
                if *current % *delta == *remainder {
                    *current -= *delta;
                    break;
                }
            }
        }
        Ok(segment)
    }

    fn next_id(&mut self) -> Result<i64> {
        loop {
            self.segment[0] += self.segment[3];
            let [id, loading, max, ..] = self.segment;
            if id > max {
                self.segment = match self.next.take() {
                    Some(next) => next,
                    None => self.load()?,
                };
                continue;
            }
            if id >= loading && self.next.is_none() {
                self.next = Some(self.load()?);
            }
            return Ok(id);
        }
    }
}

#[test]
fn clients_of_tinyid_count_through_segments_of_their_own() -> Result<()> {
    const CLIENTS: usize = 4;
    const IDS: usize = 5_000;
    let port = Port::with_password("tinyid_segment_keys = 100\n")?;
    let number = port.proxy.http_port()?;
    let mut client = port.client()?;
    let first = client.say("GET /tinyid/id/nextSegmentId?bizType=orders&token=sesame")?;
    assert_eq!(
        first.body,
        "{\"data\":{\"maxId\":100,\"loadingId\":20,\"currentId\":0,\"delta\":1,\"remainder\":0},\"code\":200,\"message\":\"\"}"
    );
    let wrong = client.say("GET /tinyid/id/nextSegmentId?bizType=orders&token=other")?;
    assert_eq!(
        wrong.body,
        "{\"data\":null,\"code\":5,\"message\":\"token is error\"}"
    );
    let mut guessing = port.client()?;
    let guess = HttpClient::written("GET /tinyid/id/nextId?bizType=orders&token=other", "");
    guessing.send(guess.repeat(20).as_bytes())?;
    let told = guessing.rest()?;
    assert_eq!(told.matches("token is error").count(), 5, "{told}");
    let none = client.say("GET /tinyid/id/nextIdSimple?bizType=orders")?;
    assert_eq!((none.status, none.body.as_str()), (200, ""));
    // Who says the password in the head needs no token.
    let headers = "Authorization: Bearer sesame\r\n";
    let let_in = client.say_with("GET /tinyid/id/nextIdSimple?bizType=orders", headers)?;
    assert_eq!(let_in.body, "101");

    let all = thread::scope(|scope| {
        let clients = (0..CLIENTS).map(|_| {
            scope.spawn(move || -> Result<Vec<i64>> {
                let mut client = TinyidClient::new(number, "orders", "sesame")?;
                (0..IDS).map(|_| client.next_id()).collect()
            })
        });
        let clients: Vec<_> = clients.collect();
        let ids = clients.into_iter().map(|client| match client.join() {
            Ok(ids) => ids,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ids.collect::<Result<Vec<_>>>()
    })?;
    let mut distinct: BTreeSet<i64> = all.into_iter().flatten().collect();
    assert_eq!(distinct.len(), CLIENTS * IDS);
    assert!(distinct.iter().all(|id| *id > 101));
    // A segment is used when it is handed out.
    let key = client
        .say_with("POST /v1/keys/orders", headers)?
        .numbers("keys")?[0];
    assert!(distinct.insert(key));
    assert!(key > *distinct.first().context("ids")?);
    Ok(())
}

/// In tinyid's own table, with rows of an installation of two databases: one gives odd ids, the other even ones.
#[test]
fn the_delta_of_a_table_of_tinyid_is_kept() -> Result<()> {
    let server = Upstream::start(Flavour::MariaDb)?;
    let mut urls = Vec::new();
    for (schema, remainder) in [("one", 1), ("two", 0)] {
        server.run("mysql", &format!("CREATE DATABASE {schema}"))?;
        server.run(
            schema,
            &format!(
                "CREATE TABLE tiny_id_info (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_type VARCHAR(63) NOT NULL UNIQUE, \
                 begin_id BIGINT NOT NULL DEFAULT 0, max_id BIGINT NOT NULL DEFAULT 0, step INT DEFAULT 0, delta INT NOT NULL DEFAULT 1, \
                 remainder INT NOT NULL DEFAULT 0, create_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', \
                 update_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', version BIGINT NOT NULL DEFAULT 0);
                 INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder) VALUES ('orders', 1, 1000, 1000, 2, {remainder})"
            ),
        )?;
        urls.push(format!("mysql://root@127.0.0.1:{}/{schema}", server.port()));
    }
    let mut all = BTreeSet::new();
    for (url, remainder) in urls.into_iter().zip([1, 0]) {
        let proxy = ProxyProcess::start(ProxyConfig {
            store_url: url,
            store: "dialect = \"tinyid\"\n".to_owned(),
            http_ports: vec![
                "keys = { orders = \"segment:orders\" }\ntinyid_segment_keys = 50\n".to_owned(),
            ],
            ..ProxyConfig::default()
        })?;
        let mut client = TinyidClient::new(proxy.http_port()?, "orders", "x")?;
        for _ in 0..2_000 {
            let id = client.next_id()?;
            assert_eq!(id % 2, remainder);
            assert!(id > 1_000);
            assert!(all.insert(id));
        }
        let mut http = HttpClient::connect(proxy.http_port()?)?;
        let answer = http.say("GET /tinyid/id/nextId?bizType=orders&batchSize=3&token=x")?;
        for id in answer.numbers("data")? {
            assert_eq!(id % 2, remainder);
            assert!(all.insert(id));
        }
    }
    Ok(())
}
