//! Clients as applications have them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::ensure;
use keywright_testkit::recipes::{node_with_redis, python_with_redis};
use keywright_testkit::redis::RedisTools;
use keywright_testkit::{Pki, Result, assert_has, workspace_root};

use redis::TypedCommands;

use super::Port;

/// What a program says that succeeds.
pub(super) fn said(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8(output.stdout)?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {text}{errors}");
    Ok(text)
}

/// A program of a client, beside this file.
pub(super) fn script(name: &str) -> PathBuf {
    workspace_root()
        .join("tests/tests/proxy_port/clients")
        .join(name)
}

#[test]
fn redis_cli_takes_keys() -> Result<()> {
    let port = Port::start("")?;
    let tools = RedisTools::get()?;
    let number = port.proxy.key_port()?.to_string();
    let cli = |arguments: &str| {
        let mut command = tools.command("redis-cli")?;
        said(command.args(["-p", &number]).args(arguments.split(' ')))
    };
    assert_eq!(cli("INCR orders")?, "1\n");
    assert_eq!(cli("-3 INCRBY orders 5")?, "6\n");
    assert_has(&cli("KEYWRIGHT LIST")?, &["orders", "segment:orders"]);
    let help = cli("KEYWRIGHT HELP")?;
    assert_has(&help, &["NEXT <name> [COUNT <n>]\n", "USER ADD"]);
    assert_has(&cli("KEYWRIGHT ODD")?, &["Try KEYWRIGHT HELP"]);
    assert_has(&cli("INFO")?, &["keywright_version:"]);
    assert_has(
        &cli("COMMAND DOCS incr")?,
        &["Gives the next key of a name."],
    );
    assert_has(&cli("SET orders 1")?, &["ERR keys are given once"]);
    // Many in one connection.
    let repeated = cli("-r 100 INCR orders")?;
    let all: BTreeSet<&str> = repeated.lines().collect();
    assert_eq!(all.len(), 100);
    Ok(())
}

#[test]
fn redis_cli_speaks_tls() -> Result<()> {
    let pki = Pki::new()?;
    let port = Port::start(&pki.towards_clients("required"))?;
    let number = port.proxy.key_port()?.to_string();
    let mut cli = RedisTools::get()?.command("redis-cli")?;
    cli.args(["-p", &number, "--tls", "--cacert"]);
    let said = said(cli.arg(pki.file("ca.pem")).args(["INCRBY", "orders", "7"]))?;
    assert_eq!(said, "7\n");
    Ok(())
}

#[test]
fn redis_benchmark_runs() -> Result<()> {
    let port = Port::start("")?;
    let number = port.proxy.key_port()?.to_string();
    for more in ["-c 1", "-c 20", "-c 20 -P 16", "-c 8 --threads 2"] {
        let mut benchmark = RedisTools::get()?.command("redis-benchmark")?;
        benchmark.args(["-p", &number, "-n", "20000", "-q"]);
        let said = said(benchmark.args(more.split(' ')).args(["INCR", "orders"]))?;
        assert_has(&said, &["requests per second"]);
    }
    assert_eq!(
        port.metric("keywright_port_keys_total{name=\"orders\"")?,
        80_000
    );
    Ok(())
}

const PYTHON: &str = r#"
import sys, threading, redis
port = int(sys.argv[1])
for protocol in (2, 3):
    r = redis.Redis(port=port, decode_responses=True, protocol=protocol, client_name="tests")
    assert r.ping()
    first = r.incr("orders")
    assert r.get("orders") == str(first)
    assert r.incrby("orders", 10) == first + 10
    assert r.incr("orders", 5) == first + 15
    assert r.mget("orders", "none") == [str(first + 15), None]
    assert r.client_getname() == "tests"
    assert r.echo("x") == "x"
    assert r.info()["redis_mode"] == "standalone"
    assert r.execute_command("KEYWRIGHT", "NEXT", "tokens", "COUNT", 3)[2].count("-") == 4
    with r.pipeline(transaction=False) as pipeline:
        for _ in range(10_000):
            pipeline.incr("orders")
        ids = pipeline.execute()
    assert ids == list(range(ids[0], ids[0] + 10_000)), "one connection, one program"
    for wrong in (lambda: r.set("orders", 1), lambda: r.incr("none"), lambda: r.incr("tokens"), lambda: r.decr("orders"),
                  lambda: r.incrby("orders", -1), lambda: r.pipeline().incr("orders").execute()):
        try:
            wrong()
        except redis.ResponseError as error:
            print(error)
        else:
            raise AssertionError("not refused")
all, lock = [], threading.Lock()
def take():
    r = redis.Redis(port=port)
    ids = [r.incr("orders") for _ in range(500)]
    with lock:
        all.extend(ids)
threads = [threading.Thread(target=take) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(set(all)) == 4000
"#;

#[test]
fn redis_py_takes_keys() -> Result<()> {
    let port = Port::start("")?;
    let mut python = Command::new(python_with_redis()?);
    python.args(["-c", PYTHON, &port.proxy.key_port()?.to_string()]);
    let said = said(&mut python)?;
    assert_has(
        &said,
        &[
            "keys are given once",
            "TAG_UNKNOWN",
            "WRONGTYPE",
            "pipeline(transaction=False)",
        ],
    );
    Ok(())
}

/// What each of them is told of what it may not.
const REFUSED: [&str; 4] = [
    "keys are given once",
    "TAG_UNKNOWN",
    "WRONGTYPE",
    "gives 1 key or more, not -1",
];

#[test]
fn ioredis_takes_keys() -> Result<()> {
    let port = Port::start("")?;
    let mut node = Command::new("node");
    node.env("NODE_PATH", node_with_redis()?);
    node.arg(script("plain.js"));
    let said = said(node.arg(port.proxy.key_port()?.to_string()))?;
    assert_has(&said, &REFUSED);
    assert_has(&said, &["there are no transactions"]);
    Ok(())
}

#[test]
fn php_takes_keys() -> Result<()> {
    let port = Port::start("")?;
    let mut php = Command::new("php");
    php.arg(script("plain.php"));
    let said = said(php.arg(port.proxy.key_port()?.to_string()))?;
    assert_has(&said, &REFUSED);
    Ok(())
}

#[test]
fn the_redis_crate_takes_keys() -> Result<()> {
    let port = Port::start("")?;
    for protocol in ["resp2", "resp3"] {
        let number = port.proxy.key_port()?;
        let client =
            redis::Client::open(format!("redis://127.0.0.1:{number}/?protocol={protocol}"))?;
        let mut connection = client.get_connection()?;
        let first = connection.incr("orders", 1)?;
        assert_eq!(connection.get("orders")?, Some(first.to_string()));
        assert_eq!(connection.incr("orders", 10)?, first + 10);
        let mut pipeline = redis::pipe();
        for _ in 0..10_000 {
            pipeline.incr("orders", 1);
        }
        let ids: Vec<isize> = pipeline.query(&mut connection)?;
        let last = first + 10;
        assert!(ids.iter().zip(last + 1..).all(|(&id, wanted)| id == wanted));
        let mut next = redis::cmd("KEYWRIGHT");
        let next = next.arg(&["NEXT", "tokens", "COUNT", "3"]);
        let uuids: BTreeSet<String> = next.query(&mut connection)?;
        assert_eq!(uuids.len(), 3);
        let refused = [
            connection.set("orders", 1).map(|()| 0),
            connection.incr("none", 1),
            connection.incr("tokens", 1),
            connection.incr("orders", -1),
        ];
        for (refused, why) in refused.into_iter().zip(REFUSED) {
            match refused {
                Ok(id) => panic!("{id}"),
                Err(error) => assert_has(&error.to_string(), &[why]),
            }
        }
    }
    Ok(())
}
