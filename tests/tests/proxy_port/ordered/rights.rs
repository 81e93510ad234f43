//! Rights on every program, whether it gives the keys or sends clients on.

use anyhow::Context;
use keywright_testkit::redis::RespValue;
use keywright_testkit::{ProxyProcess, Result, WAIT_MAX, wait_until};

use super::{Nodes, moved_to};
use crate::rights::uses;
use crate::{PASSWORD, USERS, client_as};

/// Who may use which of the names that programs here give keys of, by [`USERS`].
const MAY_USE: [(&str, &str); 5] = [
    ("app", "orders"),
    ("everything", "orders"),
    ("everything", "more"),
    ("everything", "plain"),
    ("everything", "flakes"),
];
/// Names whose tags are ordered.
const ORDERED: [&str; 2] = ["orders", "more"];

/// Every user, command, name and program: who may not is refused everywhere, before anything else is said of the name; who may gets an
/// answer of the program that gives the keys, and is sent there by the other.
#[test]
fn who_may_not_is_not_even_sent_on() -> Result<()> {
    // A slow machine keeps its lease to the end.
    let nodes = Nodes::start(2, "users = true\norder_ttl_ms = 5000\n")?;
    for (name, grants) in USERS {
        ProxyProcess::add_user(&nodes.config, name, PASSWORD, grants)?;
    }
    let ports = nodes.ports()?;
    let there = active(&ports)?;
    for port in &ports {
        for (user, _) in USERS {
            let mut client = client_as(*port, user)?;
            for name in ["orders", "more", "plain", "flakes"] {
                let may = MAY_USE.contains(&(user, name));
                for request in &uses(name) {
                    let reply = client.ask(request)?;
                    let what = format!("{user} at {port}: {request:?}: {reply:?}");
                    let sent_on = ORDERED.contains(&name) && *port != there;
                    match may {
                        false => assert!(is_denied(&reply), "{what}"),
                        true if sent_on => {
                            assert_eq!(moved_to(&reply)?, Some(there), "{what}");
                        }
                        true => assert!(reply.error().is_err(), "{what}"),
                    }
                }
                let keeps = user == "keeper" && name == "orders";
                let kept = client.ask(&["KEYWRIGHT", "ALTER", name, "STEP", "50"])?;
                assert_eq!(
                    is_denied(&kept),
                    !keeps,
                    "{user} at {port}: {name}: {kept:?}"
                );
            }
            let is_root = user == "root";
            let listed = client.say("KEYWRIGHT USER LIST")?;
            assert_eq!(is_denied(&listed), !is_root, "{user} at {port}: {listed:?}");
            // The one that does not give keys has nothing to hand over; the other is asked by nobody who may.
            if *port != there || !is_root {
                let demoted = client.say("KEYWRIGHT DEMOTE")?;
                assert_eq!(
                    is_denied(&demoted),
                    !is_root,
                    "{user} at {port}: {demoted:?}"
                );
                assert!(demoted.error().is_ok(), "{user} at {port}: {demoted:?}");
            }
        }
    }
    assert_eq!(
        active(&ports)?,
        there,
        "the lease went to another meanwhile"
    );
    Ok(())
}

fn is_denied(reply: &RespValue) -> bool {
    matches!(reply, RespValue::Error(text) if text.starts_with("NOPERM "))
}

/// The port of the program that gives keys of ordered tags.
fn active(ports: &[u16]) -> Result<u16> {
    let mut clients = Vec::new();
    for &port in ports {
        clients.push((port, client_as(port, "everything")?));
    }
    let mut there = None;
    wait_until("one that is active", WAIT_MAX, || {
        for (port, client) in &mut clients {
            if client.say("INCR orders")?.integer().is_ok() {
                there = Some(*port);
            }
        }
        Ok(there.is_some())
    })?;
    there.context("nobody is active")
}
