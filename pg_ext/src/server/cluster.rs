//! Which server this is: its system identifier, timeline and version.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::server::backend::BackendCell;

/// Number that initdb gave this cluster; copies and standbys share it.
pub fn system_identifier() -> u64 {
    // SAFETY: reads the control data that the server mapped at start.
    unsafe { pg_sys::GetSystemIdentifier() }
}

/// Timeline that write-ahead log is inserted on. The control file's lags a promotion by minutes; this one does not.
/// Only outside recovery.
pub fn timeline() -> u32 {
    // SAFETY: callers are past the read-only check, so the server is not in recovery; on 14 RecoveryInProgress() is what
    // sets the process's copy of the timeline.
    unsafe {
        #[cfg(feature = "pg14")]
        {
            pg_sys::RecoveryInProgress();
            pg_sys::ThisTimeLineID
        }
        #[cfg(not(feature = "pg14"))]
        pg_sys::GetWALInsertionTimeLine()
    }
}

/// The version of the server that runs, which may be a later minor release than the one this was built for.
pub fn version() -> u32 {
    static VERSION: BackendCell<u32> = BackendCell::new(0);
    if VERSION.get() == 0 {
        // SAFETY: a setting that every server has; the answer is a C string of the server's.
        let text = unsafe {
            let text = pg_sys::GetConfigOption(c"server_version_num".as_ptr(), false, false);
            CStr::from_ptr(text)
        };
        let built_for = pg_sys::PG_VERSION_NUM;
        let number = text.to_str().ok().and_then(|text| text.parse().ok());
        VERSION.set(number.unwrap_or(built_for));
    }
    VERSION.get()
}
