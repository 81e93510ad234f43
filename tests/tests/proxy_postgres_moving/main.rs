//! A tag of a PostgreSQL database that moves to the store and back, by the program: under load, and whatever comes between. No id comes twice.

mod lives;
mod orders;

use std::sync::Arc;

use keywright_testkit::{
    IdLog, Load, PgServer, ProxyConfig, ProxyProcess, Result, Stop, WAIT_MAX, assert_has, copy_ids,
    query_i64, query_text, scratch_dir, wait_until,
};
use tempfile::TempDir;

const DRAW: &str = "SELECT next_biz_id('orders') FROM generate_series(1, 20)";
const NEXT: &str = "SELECT next_biz_id('orders')";
const SOURCE: &str = "keywright.source";

/// A server with a database `shop` that has a native tag `orders`, and a role that feeds.
fn native_server() -> Result<PgServer> {
    let server = PgServer::builder().start()?;
    server.client("postgres")?.batch_execute(
        "CREATE EXTENSION keywright; CREATE ROLE feeder LOGIN; GRANT USAGE ON SCHEMA keywright TO feeder; \
         GRANT EXECUTE ON FUNCTION keywright.await_demand, keywright.feed_tag, keywright.handed_over TO feeder",
    )?;
    server
        .client("postgres")?
        .batch_execute("CREATE DATABASE shop")?;
    server.client("shop")?.batch_execute(
        "CREATE EXTENSION keywright; SELECT keywright.create_tag('orders', step => 200, step_min => 200)",
    )?;
    Ok(server)
}

/// The tag's ids are those of names on the key port, too.
const PORT: &str = "keys = { orders = \"segment:orders\" }";

/// A store in a file, and a program that feeds these servers.
struct Keeper {
    config: ProxyConfig,
    _dir: TempDir,
}

impl Keeper {
    /// It gives nobody else ids of the tag.
    fn of(servers: &[&PgServer]) -> Result<Keeper> {
        Self::with_port(servers, "keys = { others = \"segment:others\" }")
    }

    fn with_port(servers: &[&PgServer], port: &str) -> Result<Keeper> {
        let dir = scratch_dir()?;
        let keeper = Keeper {
            config: ProxyConfig {
                more: servers.iter().map(|server| section(server)).collect(),
                ..ProxyConfig::key_port(&dir.path().join("store.db"), port)
            },
            _dir: dir,
        };
        ProxyProcess::said(&keeper.config, &["init"])?;
        Ok(keeper)
    }

    fn program(&self) -> Result<ProxyProcess> {
        ProxyProcess::start(self.config.clone())
    }

    /// What the command prints.
    fn moved(&self, server: &PgServer, to: &str) -> Result<String> {
        ProxyProcess::said(&self.config, &arguments(&server.url("shop"), to))
    }

    fn moved_by(&self, server: &PgServer, to: &str, more: &[&str]) -> Result<String> {
        let url = server.url("shop");
        let arguments = [&arguments(&url, to), more].concat();
        ProxyProcess::said(&self.config, &arguments)
    }

    /// What the command says when it fails.
    fn refused(&self, server: &PgServer, to: &str) -> Result<String> {
        let output = ProxyProcess::command(&self.config, &arguments(&server.url("shop"), to))?;
        assert!(!output.status.success(), "{output:?}");
        Ok(String::from_utf8(output.stderr)?)
    }
}

fn arguments<'a>(url: &'a str, to: &'a str) -> [&'a str; 7] {
    ["tag", "move", "orders", "--database", url, "--to", to]
}

fn section(server: &PgServer) -> String {
    format!(
        "\n[[feed]]\nurl = \"postgres://feeder@127.0.0.1:{}/postgres\"\ntags = [\"orders\"]\n",
        server.port()
    )
}

/// The server is told of one more move, which takes a restart.
fn tell(server: &mut PgServer, number: u32) -> Result<()> {
    server.set(SOURCE, &format!("orders=fed:{number}"));
    server.restart(Stop::Fast)
}

/// Draws ids of `shop`.
fn draw(server: &PgServer, log: &IdLog) -> Result<Vec<i64>> {
    let mut ids = Vec::new();
    copy_ids(&mut server.client("shop")?, DRAW, &mut ids)?;
    log.record(ids.clone());
    Ok(ids)
}

/// The database issues nothing, for this cause.
fn expect_refusal(server: &PgServer, words: &str) -> Result<()> {
    let mut client = server.client("shop")?;
    client.batch_execute("SET keywright.refill_wait_ms_max = 300")?;
    let refused = query_i64(&mut client, NEXT).unwrap_err();
    let refused = refused.as_db_error().expect("the server's");
    assert_has(refused.message(), &[words]);
    Ok(())
}

fn source(server: &PgServer) -> Result<String> {
    let query = "SELECT source || ' ' || number FROM keywright.tag_move('orders')";
    Ok(query_text(&mut server.client("shop")?, query)?)
}

/// There and back, twice, while sessions draw and the key port gives ids of the same tag.
#[test]
fn a_tag_moves_there_and_back_under_load() -> Result<()> {
    let mut server = native_server()?;
    let keeper = Keeper::with_port(&[&server], PORT)?;
    // The program reserves some as soon as it starts.
    ProxyProcess::said(
        &keeper.config,
        &["advance", "orders", "--above", "10000000"],
    )?;
    let program = keeper.program()?;
    let log = Arc::new(IdLog::new());
    let load = |server: &PgServer| Load::start(&server.config("shop", "postgres"), 3, DRAW, &log);
    let native = load(&server);
    native.wait_for(2_000)?;
    for number in 1..=2 {
        tell(&mut server, number)?;
        let between = load(&server);
        let said = keeper.moved(&server, "fed")?;
        assert_has(
            &said,
            &["issues no more ids of its own", "is fed from the store"],
        );
        between.wait_for(2_000)?;
        let mut port = keywright_testkit::redis::RespClient::connect(program.key_port()?)?;
        wait_until("ids on the key port", WAIT_MAX, || {
            let answer = port.say("INCR orders")?;
            Ok(match answer.integer() {
                Ok(id) => {
                    log.record_unordered(vec![id]);
                    true
                }
                // It has not asked the store again since.
                Err(_) => false,
            })
        })?;
        let keys: Result<Vec<i64>> = (0..200)
            .map(|_| port.say("INCR orders")?.integer())
            .collect();
        log.record_unordered(keys?);
        let said = keeper.moved(&server, "native")?;
        assert_has(&said, &["is closed for everybody", "issues ids of its own"]);
        between.wait_for(2_000)?;
        // What it has reserved before is below.
        let refused = wait_until("no more ids on the key port", WAIT_MAX, || {
            let answer = port.say("INCR orders")?;
            Ok(match answer.integer() {
                Ok(id) => {
                    log.record_unordered(vec![id]);
                    false
                }
                Err(_) => {
                    assert_has(answer.error()?, &["TAG_MOVED", "issues its ids natively"]);
                    true
                }
            })
        });
        refused?;
        assert_eq!(source(&server)?, format!("native {number}"));
        let refusals = between.stop()?;
        // Until the move, and while it was under way.
        let known = ["55000", "55P03"];
        assert!(
            refusals.keys().all(|state| known.contains(&state.as_str())),
            "{refusals:?}"
        );
    }
    native.stop()?;
    log.check()?;
    Ok(())
}
