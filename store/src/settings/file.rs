//! Settings of a store in a file.

use std::path::PathBuf;

use super::problems::Problems;
use super::raw::RawStoreSettings;
use crate::engine::file::FileSettings;

/// How such a url begins.
pub(super) const SCHEME: &str = "file:";

pub(super) fn settings(
    path: &str,
    store: &RawStoreSettings,
    problems: &mut Problems,
) -> Option<FileSettings> {
    const OF_A_SERVER: &str = "a store in a file has none";
    let default = RawStoreSettings::default();
    for (setting, is_set) in [
        ("store.password_file", store.password_file.is_some()),
        ("store.password_env", store.password_env.is_some()),
        ("store.segment_table", store.segment_table.is_some()),
        ("store.tls_ca_file", store.tls_ca_file.is_some()),
        ("store.tls", store.tls != default.tls),
    ] {
        if is_set {
            problems.add(setting, OF_A_SERVER);
        }
    }
    if store.dialect != default.dialect {
        problems.add(
            "store.dialect",
            "a store in a file has tags of its own only",
        );
    }
    // As some write it: file:///var/lib/…
    let path = path.strip_prefix("//").unwrap_or(path);
    let is_absolute = path.starts_with('/') && !path.ends_with('/');
    if !is_absolute || path.contains(['\0', '?', '#']) {
        problems.add("store.url", "is not of the form file:/absolute/path");
        return None;
    }
    Some(FileSettings {
        path: PathBuf::from(path),
        any_file_system: store.any_file_system,
    })
}
