//! The two functions that run once per row, as the server calls them: no argument conversion, no allocation.

use keywright_core::cause::Cause;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, Pg_finfo_record};

use crate::failure::{Failure, OrRaise};
use crate::issue::{snowflake, tag};

static FINFO_V1: Pg_finfo_record = Pg_finfo_record { api_version: 1 };

/// Tells the server how to call [`keywright_snowflake_id`].
#[unsafe(no_mangle)]
pub extern "C" fn pg_finfo_keywright_snowflake_id() -> *const Pg_finfo_record {
    &raw const FINFO_V1
}

/// Tells the server how to call [`keywright_next_biz_id`].
#[unsafe(no_mangle)]
pub extern "C" fn pg_finfo_keywright_next_biz_id() -> *const Pg_finfo_record {
    &raw const FINFO_V1
}

/// snowflake_id() → bigint
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub extern "C-unwind" fn keywright_snowflake_id(_call: FunctionCallInfo) -> Datum {
    Datum::from(snowflake::take(1).or_raise().id(0))
}

/// next_biz_id(tag text) → bigint
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub extern "C-unwind" fn keywright_next_biz_id(call: FunctionCallInfo) -> Datum {
    // SAFETY: the server passes a valid call record; the function is declared with one argument in the install script,
    // so there is one element to read, and it stays in place during the call.
    let argument = unsafe { &*(&raw const (*call).args).cast::<pg_sys::NullableDatum>() };
    if argument.isnull {
        Failure::new(
            Cause::ArgumentNull,
            "the tag of next_biz_id must not be null",
        )
        .hint("Name one, as in next_biz_id('orders').")
        .raise();
    }
    // SAFETY: the argument is declared text and not null, so the datum points to a varlena that outlives the call.
    let taken = unsafe { with_text(argument.value, |text| tag::take(text, 1)) };
    Datum::from(taken.or_raise().id(0).or_raise())
}

/// Hands the bytes of a text datum to `work`; a short or plain one is read where it lies.
///
/// # Safety
/// `datum` must be a non-null text that outlives the call.
#[inline]
unsafe fn with_text<T>(datum: Datum, work: impl FnOnce(&[u8]) -> T) -> T {
    let value = datum.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: the header says which of the server's forms the value has; compressed and external ones are unpacked by the
    // server first, and the length of the plain ones is taken from the header.
    unsafe {
        let plain = if pgrx::varatt_is_1b_e(value) || pgrx::varatt_is_4b_c(value) {
            pg_sys::pg_detoast_datum_packed(value)
        } else {
            value
        };
        let bytes = std::slice::from_raw_parts(
            pgrx::vardata_any(plain).cast::<u8>(),
            pgrx::varsize_any_exhdr(plain),
        );
        work(bytes)
    }
}
