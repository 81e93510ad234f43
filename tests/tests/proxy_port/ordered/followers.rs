//! Clients in cluster mode, as applications have them: they find the program that gives the keys, and the next one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};
use keywright_testkit::recipes::node_with_redis;
use keywright_testkit::{Result, WAIT_MAX};
use redis::Commands;
use redis::cluster::ClusterClient;

use super::Nodes;
use crate::clients::script;

/// Ids that each program gives before something happens to it.
const IDS: usize = 200;

/// What a client says: an id, or an error.
type Said = std::result::Result<u64, String>;

/// The client with which somebody takes ids until the receiver is gone, of programs at these ports, the first that it knows of first.
type Follow = fn(&[u16], Sender<Said>) -> Result<()>;

/// A client follows two hand-overs without an error, then takes ids of the one that is left after the other was killed. Its ids ascend all
/// the time.
fn follow(client: Follow) -> Result<()> {
    let mut nodes = Nodes::start(2, "")?;
    let active = nodes.active()?;
    let mut ports = nodes.ports()?;
    // It is told of the standby first.
    if active == 0 {
        ports.reverse();
    }
    let (tell, said) = channel();
    let client = thread::spawn(move || client(&ports, tell));
    let mut last = 0;
    let mut errors = Vec::new();
    ascending(&said, &mut last, &mut errors)?;
    for _ in 0..2 {
        let active = nodes.active()?;
        nodes.nodes[active].begin_stop()?;
        assert!(nodes.nodes[active].wait()?.success());
        nodes.nodes[active].restart()?;
        ascending(&said, &mut last, &mut errors)?;
    }
    assert_eq!(errors, [""; 0]);
    let active = nodes.active()?;
    nodes.nodes[active].kill9()?;
    // What it says while nobody gives keys is its own business.
    ascending(&said, &mut last, &mut Vec::new())?;
    drop(said);
    match client.join() {
        Ok(ended) => ended?,
        Err(_) => bail!("the client's thread panicked"),
    }
    Ok(())
}

/// Waits until there are ids above all before, and adds what is no id.
fn ascending(said: &Receiver<Said>, last: &mut u64, errors: &mut Vec<String>) -> Result<()> {
    let began = Instant::now();
    let mut ids = 0;
    while ids < IDS {
        if began.elapsed() > WAIT_MAX {
            bail!("{ids} ids in {WAIT_MAX:?}: {errors:?}");
        }
        match said
            .recv_timeout(WAIT_MAX)
            .context("the client is silent")?
        {
            Ok(id) => {
                assert!(id > *last, "{id} after {last}");
                *last = id;
                ids += 1;
            }
            Err(error) => errors.push(error),
        }
    }
    Ok(())
}

/// A program that is killed when dropped.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody to tell.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Of a program that writes a line for each id.
fn lines_of(command: &mut Command, ports: &[u16], tell: &Sender<Said>) -> Result<()> {
    command.args(ports.iter().map(u16::to_string));
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {command:?}"))?;
    let mut program = Started(child);
    let lines = program.0.stdout.take().context("no output")?;
    for line in BufReader::new(lines).lines() {
        let line = line?;
        if tell.send(line.parse().map_err(|_| line)).is_err() {
            return Ok(());
        }
    }
    bail!("{command:?} has ended")
}

fn ioredis(ports: &[u16], tell: Sender<Said>) -> Result<()> {
    let mut node = Command::new("node");
    node.env("NODE_PATH", node_with_redis()?);
    lines_of(node.arg(script("cluster.js")), ports, &tell)
}

fn php(ports: &[u16], tell: Sender<Said>) -> Result<()> {
    lines_of(Command::new("php").arg(script("cluster.php")), ports, &tell)
}

fn redis_crate(ports: &[u16], tell: Sender<Said>) -> Result<()> {
    let nodes = ports.iter().map(|port| format!("redis://127.0.0.1:{port}"));
    let client = ClusterClient::new(nodes)?;
    let mut connection = client.get_connection()?;
    loop {
        let said = connection.incr("orders", 1);
        let said = said.map_err(|error| error.to_string());
        if tell.send(said).is_err() {
            return Ok(());
        }
    }
}

#[test]
fn ioredis_follows() -> Result<()> {
    follow(ioredis)
}

#[test]
fn php_follows() -> Result<()> {
    follow(php)
}

#[test]
fn the_redis_crate_follows() -> Result<()> {
    follow(redis_crate)
}
