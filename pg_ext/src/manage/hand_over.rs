//! What all hand-overs have in common, of ranges and of time.

use keywright_core::cause::Cause;

use crate::arguments;
use crate::failure::Failure;
use crate::server::text;

/// After so long without a hand-over another call is told of the same again.
pub const TOLD_MS_MAX: u64 = 2_000;

/// A key space as SQL tells it; none where it is not known.
pub fn known_key_space(mark: u64) -> Option<i64> {
    (mark > 0).then(|| mark.cast_signed())
}

/// 128 bits, as they are written.
pub fn hex(value: Option<&[u8]>, what: &str) -> Result<u128, Failure> {
    const DIGITS: usize = 32;
    let value = arguments::required(value, what)?;
    let value = text::read(value).ok().filter(|text| text.len() == DIGITS);
    value
        .and_then(|text| u128::from_str_radix(text, 16).ok())
        .ok_or_else(|| {
            Failure::new(
                Cause::ArgumentOutOfRange,
                format!("{what} is not written with {DIGITS} hexadecimal digits"),
            )
            .hint("Give what keywright.await_demand and the store say.")
        })
}
