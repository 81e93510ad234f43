//! Which of a program's own clients a switch waits for.

use std::sync::Arc;
use std::time::Duration;

use crate::status::clients::{Client, ListenerFigures};

/// How many are named.
const NAMED_MAX: usize = 3;

/// Those of these listeners, for people: the ones that others have waited for longest.
pub(super) fn in_the_way(listeners: &[Arc<ListenerFigures>]) -> String {
    told(found(listeners))
}

/// Whether no connection has come to say so.
pub(super) fn nobody_is_named(listeners: &[Arc<ListenerFigures>]) -> bool {
    found(listeners).is_empty()
}

fn found(listeners: &[Arc<ListenerFigures>]) -> Vec<(Duration, String)> {
    let mut found = Vec::new();
    for listener in listeners {
        for client in listener.clients() {
            if let Some(since) = client.waited_for() {
                found.push((since.elapsed(), named(&client, &listener.upstream)));
            }
        }
    }
    found
}

fn named(client: &Client, upstream: &str) -> String {
    let who = match client.on_server {
        0 => format!("client {} of this program", client.number),
        number => format!("connection {number} to {upstream} through this program"),
    };
    let from = match client.address {
        Some(address) => address.to_string(),
        None => "a UNIX socket".to_owned(),
    };
    format!("{who}, of {} from {from},", client.user().escape_debug())
}

fn told(mut found: Vec<(Duration, String)>) -> String {
    // It has ended just now, or its connection has not come to say so.
    if found.is_empty() {
        return "a statement through this program is under way on the tables".to_owned();
    }
    found.sort();
    let more = found.len().saturating_sub(NAMED_MAX);
    let first = found.into_iter().rev().take(NAMED_MAX);
    let mut told: Vec<String> = first
        .map(|(since, who)| format!("{who} has had the tables in use for {} s", since.as_secs()))
        .collect();
    if more > 0 {
        told.push(format!("{more} more"));
    }
    told.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_waited_for_are_named() {
        let listener = Arc::new(ListenerFigures::new("127.0.0.1:6033", "db:3306"));
        let address = "10.0.0.5:41234".parse().ok();
        let waited = listener.enter(Client::new(1, address, (b"app\n", 222)));
        let other = listener.enter(Client::new(2, address, (b"app", 223)));
        for entered in [&waited, &other] {
            entered.follows(Some(1));
        }
        let listeners = [Arc::clone(&listener)];
        let unknown = "a statement through this program is under way on the tables";
        assert_eq!(in_the_way(&listeners), unknown);
        assert!(nobody_is_named(&listeners));
        waited.is_waited_for(Some(std::time::Instant::now()));
        let named = "connection 222 to db:3306 through this program, of app\\n from 10.0.0.5:41234, has had the tables in use for 0 s";
        assert_eq!(in_the_way(&listeners), named);
        assert!(!nobody_is_named(&listeners));
        waited.is_waited_for(None);
        assert_eq!(in_the_way(&listeners), unknown);
        // Nobody knows what one in passthrough uses.
        let _unread = listener.enter(Client::new(3, None, (b"old", 0)));
        let named = "client 3 of this program, of old from a UNIX socket, has had the tables in use for 0 s";
        assert_eq!(in_the_way(&listeners), named);
    }

    #[test]
    fn the_oldest_come_first_and_not_all_are_named() {
        let found = |seconds: u64| (Duration::from_secs(seconds), format!("{seconds}"));
        let found = [1, 40, 3, 20, 2].map(found).to_vec();
        assert_eq!(
            told(found),
            "40 has had the tables in use for 40 s; 20 has had the tables in use for 20 s; 3 has had the tables in use for 3 s; 2 more"
        );
    }
}
