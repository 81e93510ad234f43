//! Whether a store is spoken to by TLS.

use super::problems::Problems;
use super::raw::RawStoreSettings;

pub(super) fn is_required(store: &RawStoreSettings, problems: &mut Problems) -> bool {
    let is_required = match store.tls.as_str() {
        "disabled" => false,
        "required" => true,
        other => {
            problems.add(
                "store.tls",
                format!("\"{other}\" is neither disabled nor required"),
            );
            false
        }
    };
    if !is_required && store.tls_ca_file.is_some() {
        problems.add("store.tls_ca_file", "needs tls = \"required\"");
    }
    is_required
}
