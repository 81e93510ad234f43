//! Addresses that are listened on and connected to.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::SocketAddr as UnixAddress;

/// What others write for all addresses of a machine.
const ALL_ADDRESSES: &str = "*";

/// What is wrong with an option that names one, as the example; `None`: nothing that can be seen without trying it.
pub(super) fn problem((option, example): (&str, &str), address: &str) -> Option<String> {
    let path = address.strip_prefix("unix:");
    let is_good = match path {
        Some(path) => path.starts_with('/'),
        None => is_host_and_port(address),
    };
    if !is_good {
        return Some(format!(
            "{option} is address:port or unix:/path, as \"{example}\", not \"{address}\""
        ));
    }
    let path = path?;
    let error = UnixAddress::from_pathname(path).err()?;
    let bytes = path.len();
    Some(format!(
        "{option} is \"{address}\", whose path of {bytes} bytes no socket can have: {error}"
    ))
}

/// The same of one that is listened on.
pub(super) fn bind_problem((option, example): (&str, &str), address: &str) -> Option<String> {
    let found = problem((option, example), address);
    let is_all = address
        .rsplit_once(':')
        .is_some_and(|(host, _)| host == ALL_ADDRESSES);
    found.or_else(|| {
        is_all.then(|| {
            format!("{option} is \"{address}\": all addresses are 0.0.0.0, or [::] with IPv6")
        })
    })
}

/// Whether only this machine's users can connect.
pub(super) fn is_of_this_machine(bind: &str) -> bool {
    if bind.starts_with("unix:") {
        return true;
    }
    match bind.parse::<SocketAddr>() {
        Ok(address) => is_loopback(address.ip()),
        Err(_) => bind
            .rsplit_once(':')
            .is_some_and(|(host, _)| host.eq_ignore_ascii_case("localhost")),
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// IPv6 addresses stand in brackets.
fn is_host_and_port(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else {
        return false;
    };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    !host.is_empty() && (is_bracketed || !host.contains(':')) && port.parse::<u16>().is_ok()
}

/// Addresses that the configuration binds twice: those of listeners, and that of metrics.
pub(super) fn bound_twice(listeners: &[String], metrics: Option<&str>) -> Vec<String> {
    let named = |(n, bind)| (format!("listener {n}: bind"), bind);
    let listeners = (1..).zip(listeners.iter().map(String::as_str)).map(named);
    let metrics = metrics.map(|bind| ("metrics.bind".to_owned(), bind));
    let mut before: Vec<(String, &str)> = Vec::new();
    let mut problems = Vec::new();
    for (option, bind) in listeners.chain(metrics) {
        // With port 0 the system chooses one that is free.
        let other = before.iter().find(|(_, other)| *other == bind);
        if let Some((other, _)) = other.filter(|_| !bind.ends_with(":0")) {
            problems.push(format!(
                "{option} is \"{bind}\", and so is {other}: each needs an address of its own"
            ));
        }
        before.push((option, bind));
    }
    problems
}
