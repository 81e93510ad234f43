//! Which hosts requests over HTTP may name.
//!
//! A page in a browser may have its own name resolved to an address of this machine, and then reads what is answered there as if it was its own (DNS
//! rebinding). What it cannot do is name another host than that.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::header::HOST;
use hyper::{HeaderMap, Uri};
use keywright_core::Cause;
use keywright_store::Failure;

use crate::config::address;

/// Stands for all names.
const ANY: &str = "*";
/// Longest name of a host, bytes.
const NAME_BYTES_MAX: usize = 253;
/// So much of a refused one is told, bytes.
const TOLD_BYTES_MAX: usize = 64;

/// The hosts that requests may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hosts {
    /// Any.
    Any,
    /// Addresses, `localhost`, and these names.
    These(Arc<[String]>),
}

impl Hosts {
    /// `given`: what `host_names` says. Without it names are looked at where only this machine's programs are meant to connect, and by nothing that
    /// a page of elsewhere would not know (`is_guarded`: TLS, or a password).
    ///
    /// # Errors
    /// One of them is no name.
    pub(super) fn new(
        given: Option<&[String]>,
        bind: &str,
        is_guarded: bool,
    ) -> Result<Self, String> {
        let is_reached_by_pages = address::is_of_this_machine(bind) && !bind.starts_with("unix:");
        match given {
            None if is_reached_by_pages && !is_guarded => Ok(Self::These(Arc::default())),
            None => Ok(Self::Any),
            Some([any]) if any == ANY => Ok(Self::Any),
            Some(names) => match names.iter().find(|name| !is_name(name)) {
                None => Ok(Self::These(names.into())),
                Some(other) => Err(format!(
                    "host_names has names without ports, as \"keys.example.com\", or \"{ANY}\" alone for all, not \"{other}\""
                )),
            },
        }
    }

    /// Looks at the hosts that the head of a request names, if any.
    ///
    /// # Errors
    /// [`Cause::BrowserRefused`]: one is another.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Failure> {
        let Self::These(names) = self else {
            return Ok(());
        };
        let in_headers = headers.get_all(HOST).into_iter();
        let mut named = in_headers
            .map(|host| host.as_bytes())
            .chain(uri.authority().map(|host| host.as_str().as_bytes()));
        let Some(other) = named.find(|host| !may_be_named(host, names)) else {
            return Ok(());
        };
        let told = other.get(..TOLD_BYTES_MAX).unwrap_or(other);
        let message = format!(
            "\"{}\" is no name of this program: a page in a browser may have had it resolved to this address",
            told.escape_ascii()
        );
        let failure = Failure::new(Cause::BrowserRefused, message);
        Err(failure.hint(
            "ask by the address, or as localhost, or give the name to host_names, beside bind in the configuration",
        ))
    }
}

/// Whether it is one of these, or names no host that a stranger can have resolved.
fn may_be_named(said: &[u8], names: &[String]) -> bool {
    let Ok(said) = std::str::from_utf8(said) else {
        return false;
    };
    let host = without_port(said.trim());
    // Browsers take `x.localhost` for this machine without asking anybody.
    let is_local = host
        .rsplit('.')
        .next()
        .is_some_and(|last| last.eq_ignore_ascii_case("localhost"));
    let is_address = host.parse::<IpAddr>().is_ok();
    let mut names = names.iter();
    host.is_empty() || is_address || is_local || names.any(|name| name.eq_ignore_ascii_case(host))
}

/// Addresses of IPv6 stand in brackets, or alone.
fn without_port(said: &str) -> &str {
    if said.parse::<IpAddr>().is_ok() {
        return said;
    }
    let host = match said.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => said.split(':').next(),
    };
    let host = host.unwrap_or_default();
    host.strip_suffix('.').unwrap_or(host)
}

fn is_name(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use hyper::header::{HOST, HeaderValue};
    use hyper::{HeaderMap, Uri};
    use keywright_core::Cause;

    use super::Hosts;

    fn refused(hosts: &Hosts, uri: &'static str, host: &'static str) -> Option<Cause> {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        let checked = hosts.check(&Uri::from_static(uri), &headers);
        checked.err().map(|failure| failure.cause())
    }

    #[test]
    fn names_of_strangers_are_refused() {
        let names = ["keys.example.com".to_owned(), "keywright".to_owned()];
        let hosts = Hosts::new(Some(&names), "0.0.0.0:6400", true).unwrap();
        for good in [
            "",
            "127.0.0.1",
            "127.0.0.1:6400",
            "10.1.2.3:80",
            "[::1]:6400",
            "[2001:db8::1]",
            "::1",
            "localhost",
            "LOCALHOST:6400",
            "localhost.",
            "page.localhost:1",
            "keys.example.com",
            "Keys.Example.Com.:6400",
            "keywright:9306",
        ] {
            assert_eq!(refused(&hosts, "/metrics", good), None, "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:6400",
            "keys.example.com.evil.example",
            "keywright.evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "[evil.example]:6400",
            "user@127.0.0.1",
            "2130706433",
            "*",
        ] {
            let cause = refused(&hosts, "/metrics", bad);
            assert_eq!(cause, Some(Cause::BrowserRefused), "{bad}");
        }
        // What the first line names counts too, and a request need not name any.
        let cause = refused(&hosts, "http://evil.example/metrics", "localhost");
        assert_eq!(cause, Some(Cause::BrowserRefused));
        let none = hosts.check(&Uri::from_static("/"), &HeaderMap::new());
        assert!(none.is_ok());
    }

    #[test]
    fn without_names_only_what_pages_could_read_is_looked_at() {
        let is_refused = |given: Option<&[String]>, bind, is_guarded| {
            let hosts = Hosts::new(given, bind, is_guarded).unwrap();
            refused(&hosts, "/", "keywright.shop.svc:9306").is_some()
        };
        for (bind, expected) in [
            ("127.0.0.1:9306", true),
            ("[::1]:9306", true),
            ("localhost:9306", true),
            ("unix:/run/keywright.socket", false),
            // Where services and load balancers ask by names.
            ("0.0.0.0:9306", false),
            ("[::]:9306", false),
            ("10.0.0.1:9306", false),
        ] {
            assert_eq!(is_refused(None, bind, false), expected, "{bind}");
            assert!(!is_refused(None, bind, true), "{bind}");
            assert!(is_refused(Some(&[]), bind, true), "{bind}");
            assert!(!is_refused(Some(&["*".to_owned()]), bind, false), "{bind}");
        }
        for bad in ["", "a:1", "*.example.com", "http://a", "a b"] {
            let names = ["keywright".to_owned(), bad.to_owned()];
            assert!(
                Hosts::new(Some(&names), "0.0.0.0:1", false).is_err(),
                "{bad}"
            );
        }
    }
}
