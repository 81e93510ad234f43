//! What requests may be: of clients that are let in, and of those that have not said who they are.

use keywright_resp::limits::Limits;

use crate::config::port::redis::RedisLimits;

/// Arguments of one request at most.
const ARGUMENTS_MAX: u32 = 1_024;
/// What a request may have beside one longest argument, bytes.
const REQUEST_BYTES: u32 = 64 << 10;
/// Arguments of one request at most before a login. `HELLO 3 AUTH user password SETNAME name` has seven.
const STRANGER_ARGUMENTS_MAX: u32 = 10;
/// Longest request before a login, bytes: a buffer that has no more room is one that is too long, so that none grows.
const STRANGER_REQUEST_BYTES_MAX: u32 = (16 << 10) - 1;

/// What a request of a client may be, by whether it is let in.
pub(super) fn of_requests(limits: &RedisLimits, is_let_in: bool) -> Limits {
    match is_let_in {
        true => Limits {
            arguments_max: ARGUMENTS_MAX,
            argument_bytes_max: limits.bulk_bytes_max,
            request_bytes_max: limits.bulk_bytes_max.saturating_add(REQUEST_BYTES),
        },
        false => Limits {
            arguments_max: STRANGER_ARGUMENTS_MAX,
            argument_bytes_max: limits.bulk_bytes_max.min(STRANGER_REQUEST_BYTES_MAX),
            request_bytes_max: STRANGER_REQUEST_BYTES_MAX,
        },
    }
}

/// Longest request, bytes.
pub(super) fn request_bytes_max(limits: &RedisLimits) -> usize {
    let longest = of_requests(limits, true).request_bytes_max;
    usize::try_from(longest).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::STRANGER_REQUEST_BYTES_MAX;
    use crate::connection::buffers::BUFFER_BYTES_MIN;

    #[test]
    fn no_buffer_grows_before_a_login() {
        let longest = usize::try_from(STRANGER_REQUEST_BYTES_MAX).unwrap();
        assert!(longest < BUFFER_BYTES_MIN);
    }
}
