//! Settings, beside what the binding does with them.

use std::ffi::{CStr, CString, c_char, c_void};

use keywright_core::source::SourceSetting;
use pgrx::{GucContext, GucEnum, GucFlags, GucRegistry, GucSetting, pg_sys};

use crate::server::process;

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

/// Defines a setting that says which tags were moved, as [`SourceSetting`] reads it. ALTER SYSTEM and a reload take no text that cannot be read: the next
/// start would end with it. While the server starts any text is taken, and whoever defines the setting reads it: one that is refused here the server would
/// replace by the default.
pub fn define_source(
    [name, short, long]: [&'static CStr; 3],
    setting: &'static GucSetting<Option<CString>>,
) {
    // SAFETY: the hook is guarded.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            name,
            short,
            long,
            setting,
            GucContext::Postmaster,
            GucFlags::default(),
            Some(check_source),
            None,
            None,
        );
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn check_source(
    new: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    if process::is_preloading() {
        return true;
    }
    // SAFETY: the server passes the place of the text, which is null or a C string.
    let text = unsafe {
        match (*new).is_null() {
            true => return true,
            false => CStr::from_ptr(*new).to_string_lossy(),
        }
    };
    let Err(error) = SourceSetting::parse(&text) else {
        return true;
    };
    // A tag's name has no zero byte, and neither has what was refused.
    if let Ok(detail) = CString::new(format!("{error}.")) {
        // SAFETY: the server reads the text, a copy in the memory context of whoever sets it, as soon as this returns.
        unsafe { pg_sys::GUC_check_errdetail_string = pg_sys::pstrdup(detail.as_ptr()) };
    }
    false
}
