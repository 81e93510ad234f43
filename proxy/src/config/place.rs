//! What a `[[listener]]` is: before a server, or a key port.

use crate::config::address;
use crate::config::listener::{self, Listener, MYSQL, RawListener};
use crate::config::port::{self, Port, PortProtocol, http, redis};

const REDIS: &str = "redis";
const HTTP: &str = "http";

/// What clients of a listener find.
pub(crate) enum Place {
    /// A server.
    Server(Box<Listener>),
    /// Keys.
    Port(Port),
}

/// `None`: problems were found.
pub(crate) fn place(index: usize, raw: RawListener, problems: &mut Vec<String>) -> Option<Place> {
    let mut found = Vec::new();
    // Each with the port of its own that the pages and the sample have.
    let example = match raw.protocol.as_str() {
        REDIS => "127.0.0.1:6399",
        HTTP => "127.0.0.1:6400",
        _ => "127.0.0.1:6033",
    };
    found.extend(address::bind_problem(("bind", example), &raw.bind));
    let place = match raw.protocol.as_str() {
        MYSQL => {
            not_for(MYSQL, &port::options_given(&raw), &mut found);
            not_for(MYSQL, &redis::options_given(&raw), &mut found);
            not_for(MYSQL, &http::options_given(&raw), &mut found);
            listener::listener(raw, &mut found).map(|listener| Place::Server(Box::new(listener)))
        }
        REDIS => {
            not_for(REDIS, &listener::options_given(&raw), &mut found);
            not_for(REDIS, &http::options_given(&raw), &mut found);
            let protocol = PortProtocol::Redis(redis::limits(&raw, &mut found));
            port::port((REDIS, raw), protocol, &mut found).map(Place::Port)
        }
        HTTP => {
            not_for(HTTP, &listener::options_given(&raw), &mut found);
            not_for(HTTP, &redis::options_given(&raw), &mut found);
            let protocol = PortProtocol::Http(http::limits(&raw, &mut found));
            port::port((HTTP, raw), protocol, &mut found).map(Place::Port)
        }
        other => {
            found.push(format!("protocol is mysql, redis or http, not \"{other}\""));
            None
        }
    };
    let is_good = found.is_empty();
    let named = |problem| format!("listener {}: {problem}", index + 1);
    problems.extend(found.into_iter().map(named));
    place.filter(|_| is_good)
}

/// Options of the other protocol: whoever wrote them expects something of them.
fn not_for(protocol: &str, given: &[(&str, bool)], problems: &mut Vec<String>) {
    for (name, _) in given.iter().filter(|(_, is_given)| *is_given) {
        problems.push(format!(
            "{name} has no meaning with protocol = \"{protocol}\""
        ));
    }
}
