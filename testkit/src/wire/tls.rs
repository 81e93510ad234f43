//! TLS under the packets.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::channel::Stream;
use crate::Result;

/// How a client speaks TLS that trusts an authority's certificate.
pub(super) fn trusting(authority: &Path) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Speaks TLS on a connection to this machine.
pub(super) fn over(stream: Box<dyn Stream>, config: Arc<ClientConfig>) -> Result<Box<dyn Stream>> {
    let name = ServerName::try_from("127.0.0.1")?;
    let client = ClientConnection::new(config, name)?;
    Ok(Box::new(StreamOwned::new(client, stream)))
}
