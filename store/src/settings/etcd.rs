//! Settings of a store in etcd.

use std::path::Path;

use etcd_client::{Certificate, Identity, TlsOptions};

use super::problems::Problems;
use super::raw::RawStoreSettings;
use super::url::{LOGIN_WITHIN, has_login_within, host, login, not_of_form};
use super::{password, tls};
use crate::engine::etcd::EtcdSettings;

/// How such a url begins.
const SCHEME: &str = "etcd://";
/// Where etcd listens if nobody says otherwise.
const PORT: u16 = 2_379;
/// Members at most.
const MEMBERS_MAX: usize = 16;
/// Bytes of a prefix at most.
const PREFIX_BYTES_MAX: usize = 200;
const FORM: &str = "etcd://user@host:port,host:port/prefix";

/// What is behind the scheme, if it is such a url.
pub(super) fn of_url(url: &str) -> Option<&str> {
    url.strip_prefix(SCHEME)
}

/// Where the store is, without user and password.
pub(super) fn address(settings: &EtcdSettings) -> String {
    let EtcdSettings {
        members, prefix, ..
    } = settings;
    format!(
        "{SCHEME}{}{}",
        members.join(","),
        prefix.trim_end_matches('/')
    )
}

pub(super) fn settings(
    url: &str,
    store: &RawStoreSettings,
    problems: &mut Problems,
) -> Option<EtcdSettings> {
    refuse_others(store, problems);
    if url
        .split_once('/')
        .is_some_and(|(place, _)| has_login_within(place))
    {
        problems.add("store.url", LOGIN_WITHIN);
        return None;
    }
    let Some(Url {
        members,
        prefix,
        user,
        password: in_url,
    }) = Url::parse(url)
    else {
        problems.add("store.url", not_of_form(FORM));
        return None;
    };
    if members.len() > MEMBERS_MAX {
        problems.add(
            "store.url",
            format!("names more than {MEMBERS_MAX} members"),
        );
    }
    let is_in_url = in_url.is_some();
    let password = password::of_store(store, is_in_url, problems).or(in_url);
    let user = match (user, password) {
        (Some(user), Some(password)) => Some((user, password)),
        (None, None) => None,
        (Some(_), None) => {
            problems.add("store.url", "names a user, whose password is nowhere");
            None
        }
        (None, Some(_)) => {
            problems.add("store.url", "names no user, and there is a password");
            None
        }
    };
    let tls = tls::is_required(store, problems)
        .then(|| tls_options(store, problems))
        .flatten();
    if tls.is_none() {
        for (setting, file) in [
            ("store.tls_cert_file", &store.tls_cert_file),
            ("store.tls_key_file", &store.tls_key_file),
        ] {
            if file.is_some() && store.tls != "required" {
                problems.add(setting, "needs tls = \"required\"");
            }
        }
    }
    let count = u64::try_from(members.len()).unwrap_or(u64::MAX);
    Some(EtcdSettings {
        member_ms_max: store
            .store_ms_max
            .checked_div(count)
            .unwrap_or(store.store_ms_max),
        members,
        prefix,
        user,
        tls,
    })
}

/// What is behind the scheme.
struct Url {
    members: Vec<String>,
    prefix: String,
    user: Option<String>,
    password: Option<String>,
}

impl Url {
    fn parse(url: &str) -> Option<Self> {
        let (place, prefix) = url.split_once('/')?;
        let (in_front, hosts) = match place.rsplit_once('@') {
            Some((in_front, hosts)) => (Some(in_front), hosts),
            None => (None, place),
        };
        let (user, password) = login(in_front)?;
        let members: Option<Vec<String>> = hosts
            .split(',')
            .map(|text| host(text, PORT).map(|host| host.to_string()))
            .collect();
        let prefix = prefix.trim_end_matches('/');
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
        let is_fine = !prefix.is_empty()
            && prefix.len() <= PREFIX_BYTES_MAX
            && prefix.bytes().all(is_plain)
            && !prefix.contains("//");
        if !is_fine || user.as_ref().is_some_and(String::is_empty) {
            return None;
        }
        Some(Self {
            members: members?,
            prefix: format!("/{prefix}/"),
            user,
            password,
        })
    }
}

fn refuse_others(store: &RawStoreSettings, problems: &mut Problems) {
    if store.any_file_system && store.kept_ranges_file.is_none() {
        problems.add("store.any_file_system", "is for a store in a file");
    }
    if store.segment_table.is_some() {
        problems.add("store.segment_table", "a store in etcd has none");
    }
    if store.dialect != RawStoreSettings::default().dialect {
        problems.add("store.dialect", "a store in etcd has tags of its own only");
    }
}

/// The members' certificates are checked, and the host's name in each.
fn tls_options(store: &RawStoreSettings, problems: &mut Problems) -> Option<TlsOptions> {
    let mut read = |setting: &str, file: &Path| match std::fs::read(file) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            let what = format!("\"{}\" cannot be read: {error}", file.display());
            problems.add(setting, what);
            None
        }
    };
    let mut options = TlsOptions::new();
    options = match store.tls_ca_file.as_deref() {
        Some(file) => {
            let authorities = read("store.tls_ca_file", file)?;
            options.ca_certificate(Certificate::from_pem(authorities))
        }
        None => options.with_webpki_roots(),
    };
    match (&store.tls_cert_file, &store.tls_key_file) {
        (None, None) => Some(options),
        (Some(certificate), Some(key)) => {
            let certificate = read("store.tls_cert_file", certificate);
            let key = read("store.tls_key_file", key);
            Some(options.identity(Identity::from_pem(certificate?, key?)))
        }
        (Some(_), None) => {
            problems.add("store.tls_cert_file", "needs tls_key_file");
            None
        }
        (None, Some(_)) => {
            problems.add("store.tls_key_file", "needs tls_cert_file");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Url;

    #[test]
    fn a_url_names_members_and_a_prefix() {
        let url = Url::parse("kw:a%2Fb@etcd-1,10.0.0.2:4001,[::1]:2379/keywright/shop/").unwrap();
        assert_eq!(url.members, ["etcd-1:2379", "10.0.0.2:4001", "[::1]:2379"]);
        assert_eq!(url.prefix, "/keywright/shop/");
        assert_eq!(url.user.as_deref(), Some("kw"));
        assert_eq!(url.password.as_deref(), Some("a/b"));
        let url = Url::parse("[::1]/k").unwrap();
        assert_eq!(url.members, ["[::1]:2379"]);
        assert!(url.user.is_none());
        for wrong in [
            "", "etcd", "etcd/", "/k", "a,/k", "a:x/k", "a/k//l", "a/k?b", "@a/k", "a b/k",
            "[::x]/k", "u:%2@a/k",
        ] {
            assert!(Url::parse(wrong).is_none(), "{wrong}");
        }
    }
}
