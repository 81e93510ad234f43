//! The body of a request.

use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use keywright_core::Cause;
use keywright_store::Failure;
use tokio::time::timeout;

use crate::config::port::http::HttpLimits;

/// A body to its end.
///
/// # Errors
/// It is longer than may be, comes too slowly, or is none.
pub(super) async fn whole(mut body: Incoming, limits: &HttpLimits) -> Result<Vec<u8>, Failure> {
    let most = limits.body_bytes_max;
    let too_long = || {
        let message = format!("a body has at most {most} bytes on this listener");
        Failure::new(Cause::PacketTooLarge, message).hint("raise body_bytes_max")
    };
    if body.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    let reads = async {
        while let Some(frame) =
            std::future::poll_fn(|waker| Pin::new(&mut body).poll_frame(waker)).await
        {
            let broken = |error| {
                let message = format!("the body is none: {error}");
                Failure::new(Cause::PacketMalformed, message)
            };
            let frame = frame.map_err(broken)?;
            let data = frame.data_ref().map_or(&[] as &[u8], |data| data);
            if bytes.len().saturating_add(data.len()) > most {
                return Err(too_long());
            }
            bytes.extend_from_slice(data);
        }
        Ok(())
    };
    match timeout(Duration::from_millis(limits.request_ms_max), reads).await {
        Ok(outcome) => outcome.map(|()| bytes),
        Err(_) => Err(Failure::new(
            Cause::RequestTimeout,
            "the body did not come within request_ms_max",
        )),
    }
}
