//! TLS as it is configured. PEM files are read with the configuration, so that their mistakes are reported with all others.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
};

/// How much TLS is wanted on one leg, and what it needs.
#[derive(Debug, Clone)]
pub enum TlsMode<T> {
    /// None.
    Disabled,
    /// If the other side wants it too.
    Preferred(T),
    /// Nothing goes without it.
    Required(T),
}

impl<T> TlsMode<T> {
    /// What TLS needs, if there may be any.
    pub fn settings(&self) -> Option<&T> {
        match self {
            TlsMode::Disabled => None,
            TlsMode::Preferred(settings) | TlsMode::Required(settings) => Some(settings),
        }
    }

    /// The same with other settings.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> TlsMode<U> {
        match self {
            TlsMode::Disabled => TlsMode::Disabled,
            TlsMode::Preferred(settings) => TlsMode::Preferred(make(settings)),
            TlsMode::Required(settings) => TlsMode::Required(make(settings)),
        }
    }

    /// Whether nothing goes without TLS.
    pub fn is_required(&self) -> bool {
        match self {
            TlsMode::Disabled | TlsMode::Preferred(_) => false,
            TlsMode::Required(_) => true,
        }
    }
}

/// How the proxy makes sure that an upstream is the one that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verify {
    /// Its certificate is signed by the authority, and carries the name.
    Name,
    /// Its certificate is signed by the authority, whatever the name: servers make certificates without one for themselves.
    Authority,
    /// Not at all: whoever sits on the way can pose as the server.
    Nothing,
}

/// TLS towards a server.
#[derive(Debug, Clone)]
pub struct UpstreamTls {
    /// Authorities, versions, ciphers.
    pub config: Arc<ClientConfig>,
    /// The name that is asked for, and checked if names are.
    pub name: ServerName<'static>,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// TLS towards clients, with a chain of certificates and the first one's key.
pub(crate) fn towards_clients(certificate: &str, key: &str) -> Result<ServerConfig, Vec<String>> {
    let chain = certificates("certificate", certificate);
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| format!("key {key}: {error}"));
    let (chain, private) = both(chain, private)?;
    ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain, private)
        })
        .map_err(|error| vec![format!("certificate {certificate} with key {key}: {error}")])
}

/// TLS towards a server. `authority` is there unless nothing is verified.
pub(crate) fn towards_upstream(
    verify: Verify,
    authority: Option<&str>,
) -> Result<ClientConfig, String> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let roots = authority.map(roots).transpose()?;
    let verifier: Arc<dyn ServerCertVerifier> = match (verify, roots) {
        (Verify::Name, Some(roots)) => {
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| format!("upstream_ca: {error}"))?
        }
        (Verify::Authority, Some(roots)) => Arc::new(Nameless {
            roots: Some(roots),
            algorithms,
        }),
        (Verify::Nothing, _) => Arc::new(Nameless {
            roots: None,
            algorithms,
        }),
        (Verify::Name | Verify::Authority, None) => return Err("upstream_ca is missing".to_owned()),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("upstream_tls: {error}"))?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn roots(file: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("upstream_ca", file)? {
        roots
            .add(certificate)
            .map_err(|error| format!("upstream_ca {file}: {error}"))?;
    }
    Ok(roots)
}

fn certificates(option: &str, file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("{option} {file}: {error}"))?;
    if found.is_empty() {
        return Err(format!("{option} {file} has no certificate in it"));
    }
    Ok(found)
}

/// Both, or all that is wrong.
pub(crate) fn both<A, B>(
    one: Result<A, String>,
    other: Result<B, String>,
) -> Result<(A, B), Vec<String>> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (one, other) => Err([one.err(), other.err()].into_iter().flatten().collect()),
    }
}

/// Looks at who signed a certificate, or not even at that, and never at the name.
#[derive(Debug)]
struct Nameless {
    roots: Option<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Nameless {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            verify_server_cert_signed_by_trust_anchor(
                &ParsedCertificate::try_from(certificate)?,
                roots,
                intermediates,
                now,
                self.algorithms.all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
