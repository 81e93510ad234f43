//! What is bounded of a key port that speaks the Redis protocol.

use std::net::{Ipv4Addr, Ipv6Addr};

use keywright_store::OrderSettings;

use crate::config::bounds::{at_least_one, within};
use crate::config::listener::RawListener;

/// Default of `order_ttl_ms`, milliseconds.
pub const ORDER_TTL_MS: u64 = 2_000;
/// Smallest `order_ttl_ms`, milliseconds.
pub(in crate::config) const ORDER_TTL_MS_MIN: u64 = 200;
/// Largest `order_ttl_ms`, milliseconds.
pub(in crate::config) const ORDER_TTL_MS_MAX: u64 = 60_000;
/// Largest `output_bytes_max`, bytes.
pub(in crate::config) const OUTPUT_BYTES_MAX: usize = 1 << 30;
/// Longest host of `cluster_address`, bytes.
const HOST_BYTES_MAX: usize = 200;
/// Smallest `output_bytes_max` and `bulk_bytes_max`, bytes.
pub(in crate::config) const BYTES_MIN: usize = 64;
/// Largest `bulk_bytes_max`, bytes.
pub(in crate::config) const BULK_BYTES_MAX: usize = 1 << 20;

/// The limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisLimits {
    /// Requests of one connection that are answered before others have their turn.
    pub pipeline_requests_max: u32,
    /// One argument, bytes.
    pub bulk_bytes_max: u32,
    /// Replies that a client has not read, bytes.
    pub output_bytes_max: usize,
}

/// The options, and whether they are there.
pub(in crate::config) fn options_given(raw: &RawListener) -> [(&'static str, bool); 5] {
    [
        ("cluster_address", raw.cluster_address.is_some()),
        ("order_ttl_ms", raw.order_ttl_ms.is_some()),
        ("pipeline_requests_max", raw.pipeline_requests_max.is_some()),
        ("bulk_bytes_max", raw.bulk_bytes_max.is_some()),
        ("output_bytes_max", raw.output_bytes_max.is_some()),
    ]
}

/// How the program stands for the lease of those who give keys of ordered tags.
pub(in crate::config) fn order(
    raw: &RawListener,
    problems: &mut Vec<String>,
) -> Option<OrderSettings> {
    let Some(address) = &raw.cluster_address else {
        if raw.order_ttl_ms.is_some() {
            problems.push("order_ttl_ms needs cluster_address".to_owned());
        }
        return None;
    };
    if !is_reachable(address) {
        problems.push(format!(
            "cluster_address is host:port, as clients reach it, not \"{address}\""
        ));
    }
    let ttl_ms = raw.order_ttl_ms.unwrap_or(ORDER_TTL_MS);
    if !(ORDER_TTL_MS_MIN..=ORDER_TTL_MS_MAX).contains(&ttl_ms) {
        problems.push(format!(
            "order_ttl_ms is {ORDER_TTL_MS_MIN} to {ORDER_TTL_MS_MAX}, not {ttl_ms}"
        ));
    }
    Some(OrderSettings {
        address: address.clone(),
        ttl_ms,
    })
}

/// Whether clients can be sent there: to a name, an address of IPv4, or one of IPv6 in brackets, and not to all addresses of a machine.
fn is_reachable(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else {
        return false;
    };
    let in_brackets = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_host = match (in_brackets, host.parse::<Ipv4Addr>()) {
        (Some(host), _) => host
            .parse()
            .is_ok_and(|address: Ipv6Addr| !address.is_unspecified()),
        (None, Ok(address)) => !address.is_unspecified(),
        (None, Err(_)) => {
            let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !host.is_empty() && host.len() <= HOST_BYTES_MAX && host.bytes().all(is_of_name)
        }
    };
    is_host && port.parse().is_ok_and(|port: u16| port > 0)
}

pub(in crate::config) fn limits(raw: &RawListener, problems: &mut Vec<String>) -> RedisLimits {
    let limits = RedisLimits {
        pipeline_requests_max: raw.pipeline_requests_max.unwrap_or(1_000),
        bulk_bytes_max: raw.bulk_bytes_max.unwrap_or(4_096),
        output_bytes_max: raw.output_bytes_max.unwrap_or(1 << 20),
    };
    let pipeline = u64::from(limits.pipeline_requests_max);
    at_least_one(&[("pipeline_requests_max", pipeline)], problems);
    let bulk = usize::try_from(limits.bulk_bytes_max).unwrap_or(usize::MAX);
    within(
        ("bulk_bytes_max", bulk),
        BYTES_MIN..=BULK_BYTES_MAX,
        problems,
    );
    let output = limits.output_bytes_max;
    within(
        ("output_bytes_max", output),
        BYTES_MIN..=OUTPUT_BYTES_MAX,
        problems,
    );
    limits
}
