//! What is bounded of a key port that speaks HTTP.

use keywright_store::StoreSettings;

use crate::config::bounds::{at_least_one, within};
use crate::config::listener::RawListener;

/// Smallest `head_bytes_max`, bytes: what the library reads at once.
pub(in crate::config) const HEAD_BYTES_MIN: usize = 8 << 10;
/// Largest `head_bytes_max` and `body_bytes_max`, bytes.
pub(in crate::config) const BYTES_MAX: usize = 1 << 20;
/// Largest `request_keys_max`.
pub(in crate::config) const KEYS_MAX: usize = 1_000_000;

/// The limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// The head of a request, bytes.
    pub head_bytes_max: usize,
    /// Its body, bytes.
    pub body_bytes_max: usize,
    /// How long a head may take, and a body, milliseconds.
    pub request_ms_max: u64,
    /// Keys of one request.
    pub request_keys_max: u64,
    /// Requests of one connection; 0: without end.
    pub keepalive_requests_max: u64,
    /// Keys of one segment that a client of tinyid gets.
    pub tinyid_segment_keys: u64,
}

/// The options, and whether they are there.
pub(in crate::config) fn options_given(raw: &RawListener) -> [(&'static str, bool); 7] {
    [
        ("head_bytes_max", raw.head_bytes_max.is_some()),
        ("body_bytes_max", raw.body_bytes_max.is_some()),
        ("request_ms_max", raw.request_ms_max.is_some()),
        ("request_keys_max", raw.request_keys_max.is_some()),
        (
            "keepalive_requests_max",
            raw.keepalive_requests_max.is_some(),
        ),
        ("tinyid_segment_keys", raw.tinyid_segment_keys.is_some()),
        ("host_names", raw.host_names.is_some()),
    ]
}

/// Segments for clients of tinyid that are longer than any that a store gives at once.
pub(in crate::config) fn too_long_segments(
    raw: &RawListener,
    store: &StoreSettings,
) -> Option<String> {
    let wanted = raw.tinyid_segment_keys?;
    let others = store.further().iter();
    let others = others.map(|store| store.settings().range_ids_max());
    let most = others.fold(store.range_ids_max(), u64::max);
    (wanted > most).then(|| {
        format!(
            "tinyid_segment_keys is at most range_ids_max of [store], which is {most}, not {wanted}"
        )
    })
}

pub(in crate::config) fn limits(raw: &RawListener, problems: &mut Vec<String>) -> HttpLimits {
    let limits = HttpLimits {
        head_bytes_max: raw.head_bytes_max.unwrap_or(16 << 10),
        body_bytes_max: raw.body_bytes_max.unwrap_or(8 << 10),
        request_ms_max: raw.request_ms_max.unwrap_or(10_000),
        request_keys_max: raw.request_keys_max.unwrap_or(100_000),
        keepalive_requests_max: raw.keepalive_requests_max.unwrap_or(0),
        tinyid_segment_keys: raw.tinyid_segment_keys.unwrap_or(1_000),
    };
    at_least_one(
        &[
            ("request_ms_max", limits.request_ms_max),
            ("tinyid_segment_keys", limits.tinyid_segment_keys),
            // A head that is not whole may wait for it.
            ("idle_s_max", raw.idle_s_max.unwrap_or(1)),
        ],
        problems,
    );
    let keys = usize::try_from(limits.request_keys_max).unwrap_or(usize::MAX);
    for (limit, bounds) in [
        (
            ("head_bytes_max", limits.head_bytes_max),
            HEAD_BYTES_MIN..=BYTES_MAX,
        ),
        (("body_bytes_max", limits.body_bytes_max), 0..=BYTES_MAX),
        (("request_keys_max", keys), 1..=KEYS_MAX),
    ] {
        within(limit, bounds, problems);
    }
    limits
}
