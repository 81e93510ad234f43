//! The server's own random numbers, fit for secrets.

use pgrx::pg_sys;

/// Random bytes. Raises an error where the system has none.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the buffer is exclusively borrowed and has N bytes; the call writes no more and raises no error.
    let is_filled = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), N) };
    if !is_filled {
        pgrx::error!("the system gives no random numbers");
    }
    bytes
}
