//! Settings, beside what the binding does with them.

use pgrx::{GucEnum, GucSetting, pg_sys};

/// The ordinal of a setting's choice, without the check of the calling thread that pgrx puts before every look.
#[inline]
pub fn choice<T: GucEnum>(setting: &'static GucSetting<T>) -> i32 {
    // SAFETY: the setting's value is one integer, which the server changes on this, the process's only thread.
    unsafe { *setting.as_ptr() }
}

/// Has misspelt settings of keywright told of instead of ignored: with a warning in postgresql.conf, with an error (from
/// PostgreSQL 15 on) in SET.
pub fn refuse_unknown_settings() {
    // SAFETY: the prefix is a constant C string, which the server copies.
    unsafe {
        #[cfg(feature = "pg14")]
        pg_sys::EmitWarningsOnPlaceholders(c"keywright".as_ptr());
        #[cfg(not(feature = "pg14"))]
        pg_sys::MarkGUCPrefixReserved(c"keywright".as_ptr());
    }
}
