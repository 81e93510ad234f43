//! How long certificates of listeners are valid. Who finds out otherwise that one has expired is the first client.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use crate::config::raw::Raw;

/// How long before its end one is told of, days.
const SOON_DAYS: u64 = 14;
/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// A file with a listener's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFile {
    /// The listener's address.
    bind: String,
    option: String,
    path: PathBuf,
}

impl CertificateFile {
    /// That it has expired, or will soon. What cannot be read is told elsewhere.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.warning_at(SystemTime::now())
    }

    /// The listener's address, and when it expires, seconds since 1970.
    pub(super) fn expiry(&self) -> Option<(String, u64)> {
        let end = not_after(&self.path)?.duration_since(UNIX_EPOCH).ok()?;
        Some((self.bind.clone(), end.as_secs()))
    }

    fn warning_at(&self, now: SystemTime) -> Option<String> {
        let end = not_after(&self.path)?;
        let left = end.duration_since(now).ok();
        let days = left.map(|left| left.as_secs() / DAY_S);
        if days.is_some_and(|days| days >= SOON_DAYS) {
            return None;
        }
        let (option, path) = (&self.option, self.path.display());
        let at = humantime::format_rfc3339_seconds(end);
        Some(match days {
            Some(days) => format!(
                "{option}: \"{path}\" expires at {at}, in less than {} day(s): put a new one there, and reload (SIGHUP)",
                days.saturating_add(1)
            ),
            None => format!(
                "{option}: \"{path}\" expired at {at}, and clients that verify it cannot connect: put a new one there, and reload (SIGHUP)"
            ),
        })
    }
}

/// The end of the first one in the file, which is the listener's own; those behind it end later.
fn not_after(file: &Path) -> Option<SystemTime> {
    let first = CertificateDer::from_pem_file(file).ok()?;
    let certificate = Certificate::from_der(first.as_ref()).ok()?;
    let end = certificate.tbs_certificate.validity.not_after;
    UNIX_EPOCH.checked_add(end.to_unix_duration())
}

/// All that a configuration names.
pub(super) fn certificates(raw: &Raw) -> Vec<CertificateFile> {
    let listeners = (1..).zip(&raw.listener);
    let files = listeners.filter_map(|(number, listener)| {
        Some(CertificateFile {
            bind: listener.bind.clone(),
            option: format!("listener {number}: certificate"),
            path: listener.certificate.as_deref()?.into(),
        })
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use keywright_testkit::Pki;

    use super::{CertificateFile, certificates};

    #[test]
    fn one_that_expires_is_told_of() {
        let pki = Pki::new().unwrap();
        pki.valid_until("ends", (2031, 3, 1)).unwrap();
        let file = CertificateFile {
            bind: "a:2".to_owned(),
            option: "listener 2: certificate".to_owned(),
            path: pki.file("ends.pem"),
        };
        let begins = format!("listener 2: certificate: \"{}\" ", file.path.display());
        let told = |now: &str| {
            let warning = file.warning_at(humantime::parse_rfc3339(now).unwrap());
            warning.map(|told| told.strip_prefix(&begins).map(str::to_owned).unwrap())
        };
        assert_eq!(file.expiry(), Some(("a:2".to_owned(), 1_930_089_600)));
        assert_eq!(told("2031-02-15T00:00:00Z"), None);
        for (now, expected) in [
            (
                "2031-02-15T00:00:01Z",
                "expires at 2031-03-01T00:00:00Z, in less than 14 day(s): ",
            ),
            (
                "2031-02-28T12:00:00Z",
                "expires at 2031-03-01T00:00:00Z, in less than 1 day(s): ",
            ),
            (
                "2031-03-01T00:00:01Z",
                "expired at 2031-03-01T00:00:00Z, and clients ",
            ),
        ] {
            let told = told(now).unwrap();
            assert!(told.starts_with(expected), "{told}");
        }
    }

    #[test]
    fn of_a_chain_the_first_counts_and_of_what_is_none_nothing_is_said() {
        let pki = Pki::new().unwrap();
        pki.valid_until("ended", (2001, 1, 1)).unwrap();
        let read = |name: &str| std::fs::read_to_string(pki.file(name)).unwrap();
        let chain = pki.file("chain.pem");
        let warns = |text: String| {
            std::fs::write(&chain, text).unwrap();
            let file = CertificateFile {
                bind: "a:1".to_owned(),
                option: "listener 1: certificate".to_owned(),
                path: chain.clone(),
            };
            file.warning().is_some()
        };
        assert!(!warns(read("proxy.pem") + &read("ended.pem")));
        assert!(warns(read("ended.pem") + &read("proxy.pem")));
        assert!(!warns("no certificate".to_owned()));
        assert!(!warns(read("ended.key")));
    }

    #[test]
    fn all_listeners_are_looked_at() {
        let text = "[store]\nurl = \"file:/a\"\n[[listener]]\nbind = \"a:1\"\ncertificate = \"/1\"\n[[listener]]\nbind = \"a:2\"\n\
                    [[listener]]\nprotocol = \"http\"\nbind = \"a:3\"\ncertificate = \"/3\"\n";
        let named: Vec<String> = certificates(&toml::from_str(text).unwrap())
            .iter()
            .map(|file| format!("{} {} {}", file.bind, file.option, file.path.display()))
            .collect();
        assert_eq!(
            named,
            [
                "a:1 listener 1: certificate /1",
                "a:3 listener 3: certificate /3"
            ]
        );
    }
}
