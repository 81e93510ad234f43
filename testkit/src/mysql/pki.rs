//! Certificates for the time of a test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use tempfile::TempDir;

use crate::machine::account;
use crate::{Account, Flavour, Result, Upstream};

/// An authority, and what it signed, as files that servers may read: certificates and keys of `proxy` and `server` at 127.0.0.1
/// and of `other` at db.example.
#[derive(Debug)]
pub struct Pki {
    dir: TempDir,
}

impl Pki {
    /// Makes both anew.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn new() -> Result<Pki> {
        let dir = TempDir::new()?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority");
        fs::write(dir.path().join("ca.pem"), params.self_signed(&key)?.pem())?;
        let pki = Pki { dir };
        let issuer = Issuer::new(params, key);
        for (who, name) in [
            ("proxy", "127.0.0.1"),
            ("server", "127.0.0.1"),
            ("other", "db.example"),
        ] {
            let key = KeyPair::generate()?;
            let mut params = CertificateParams::new(vec![name.to_owned()])?;
            params.distinguished_name.push(DnType::CommonName, who);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            let certificate = params.signed_by(&key, &issuer)?;
            fs::write(pki.file(&format!("{who}.pem")), certificate.pem())?;
            fs::write(pki.file(&format!("{who}.key")), key.serialize_pem())?;
        }
        Ok(pki)
    }

    /// Where `ca.pem`, `proxy.pem`, `proxy.key` and the like lie.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A certificate at 127.0.0.1 that nobody else signed, valid until the begin of that year, month and day (UTC).
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn valid_until(&self, who: &str, (year, month, day): (i32, u8, u8)) -> Result<()> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
        params.not_after = date_time_ymd(year, month, day);
        let certificate = params.self_signed(&key)?;
        fs::write(self.file(&format!("{who}.pem")), certificate.pem())?;
        fs::write(self.file(&format!("{who}.key")), key.serialize_pem())?;
        Ok(())
    }

    /// The key of `who`, in a file of its own that only PostgreSQL's account can read: the server refuses others.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn postgres_key(&self, who: &str) -> Result<PathBuf> {
        let file = self.file(&format!("{who}.postgres.key"));
        fs::copy(self.file(&format!("{who}.key")), &file)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
        Account::for_servers(account::POSTGRES)?.own(&file)?;
        Ok(file)
    }

    /// A server that shows the certificate of `who`.
    ///
    /// # Errors
    /// It does not start.
    pub fn server(&self, flavour: Flavour, who: &str) -> Result<Upstream> {
        let option = |name: &str, file: &str| format!("--{name}={}", self.file(file).display());
        let options = [
            option("ssl-ca", "ca.pem"),
            option("ssl-cert", &format!("{who}.pem")),
            option("ssl-key", &format!("{who}.key")),
        ];
        Upstream::start_with(flavour, &options.each_ref().map(String::as_str))
    }

    /// Lines of a listener with TLS towards clients.
    #[must_use]
    pub fn towards_clients(&self, wanted: &str) -> String {
        format!(
            "tls = \"{wanted}\"\ncertificate = \"{}\"\nkey = \"{}\"\n",
            self.file("proxy.pem").display(),
            self.file("proxy.key").display()
        )
    }

    /// Lines of a listener with TLS towards its server.
    #[must_use]
    pub fn towards_upstream(&self, wanted: &str) -> String {
        format!(
            "upstream_tls = \"{wanted}\"\nupstream_ca = \"{}\"\n",
            self.file("ca.pem").display()
        )
    }
}
