//! Whether a store is spoken to by TLS.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

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

/// How TLS is spoken with the store, where it is.
pub(super) fn client(
    store: &RawStoreSettings,
    problems: &mut Problems,
) -> Option<Arc<ClientConfig>> {
    if !is_required(store, problems) {
        return None;
    }
    match client_config(store.tls_ca_file.as_deref()) {
        Ok(tls) => Some(Arc::new(tls)),
        Err(what) => {
            problems.add("store.tls_ca_file", what);
            None
        }
    }
}

/// The server's certificate is checked, and the host's name in it.
fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(file) => {
            let unreadable = |error: &dyn std::fmt::Display| {
                format!("\"{}\" cannot be read: {error}", file.display())
            };
            let all = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))?;
            for one in all {
                let one = one.map_err(|error| unreadable(&error))?;
                roots.add(one).map_err(|error| unreadable(&error))?;
            }
            if roots.is_empty() {
                return Err(format!("\"{}\" has no certificate", file.display()));
            }
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
