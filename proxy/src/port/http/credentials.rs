//! Who may ask: the password, or a user with his, in the header `Authorization`, and no page in a browser.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, ORIGIN, REFERER, USER_AGENT};
use keywright_core::Cause;
use keywright_store::Failure;

use crate::port::access::Who;
use crate::port::keys::PortKeys;
use crate::port::password::{USER, is_same};
use crate::users::PortUsers;
use crate::users::login::{ComingUser, Login};
use crate::users::turns::Line;

/// What browsers say of where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What the name of every browser begins with.
const MOZILLA: &[u8] = b"Mozilla/";
/// What a program that takes such a name says in it: PowerShell's own commands.
const POWERSHELL: &[u8] = b"PowerShell";

/// Who asks.
pub(super) enum Asker {
    /// Somebody who is known, or known not to be let in.
    Decided(Result<Who, Failure>),
    /// A user whose password is being looked at.
    Coming(ComingUser),
}

/// Looks at the header. `line`: where the client waits until a password is looked at.
pub(super) fn asker(headers: &HeaderMap, keys: &PortKeys, line: Line) -> Asker {
    let Some(users) = &keys.users else {
        let checked = check(headers, keys.port.password.as_deref());
        return Asker::Decided(checked.map(|()| Who::Anybody));
    };
    let Some(said) = headers.get(AUTHORIZATION) else {
        let failure = Failure::new(Cause::PasswordMissing, "this listener has users");
        let hint = "send user and password as Authorization: Basic";
        return Asker::Decided(Err(failure.hint(hint)));
    };
    match basic(said.as_bytes()) {
        Some(pair) => user((users, line), &pair),
        None => Asker::Decided(Err(Failure::new(
            Cause::PasswordWrong,
            "users are told as Authorization: Basic, with a colon between user and password",
        ))),
    }
}

/// Looks at a user and a password, with a colon between them.
pub(super) fn user((users, line): (&PortUsers, Line), pair: &[u8]) -> Asker {
    let mut parts = pair.splitn(2, |byte| *byte == b':');
    let (user, password) = (parts.next().unwrap_or_default(), parts.next());
    match users.log_in(line, user, password.unwrap_or_default()) {
        Login::Decided(decided) => Asker::Decided(decided.map(Who::User)),
        Login::Coming(coming) => Asker::Coming(coming),
    }
}

/// What Basic authentication says: a user and a password.
fn basic(said: &[u8]) -> Option<Vec<u8>> {
    let (scheme, value) = scheme(said);
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let pair = STANDARD.decode(value).ok()?;
    pair.contains(&b':').then_some(pair)
}

fn scheme(said: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = said.splitn(2, |byte| *byte == b' ');
    let scheme = parts.next().unwrap_or_default();
    (scheme, parts.next().unwrap_or_default().trim_ascii())
}

/// Looks at the header; `password`: what it must say, if anything.
///
/// # Errors
/// It says another, or nothing.
fn check(headers: &HeaderMap, password: Option<&str>) -> Result<(), Failure> {
    let Some(password) = password else {
        return Ok(());
    };
    let Some(said) = headers.get(AUTHORIZATION) else {
        let failure = Failure::new(Cause::PasswordMissing, "this listener has a password");
        return Err(failure.hint("send it as Authorization: Bearer, or Basic of the user default"));
    };
    if is_right(said.as_bytes(), password.as_bytes()) {
        return Ok(());
    }
    Err(Failure::new(
        Cause::PasswordWrong,
        "the password is another one, or the user is not \"default\"",
    ))
}

fn is_right(said: &[u8], password: &[u8]) -> bool {
    let (scheme, value) = scheme(said);
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return is_same(value, password);
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return false;
    }
    let pair = STANDARD.decode(value).unwrap_or_default();
    let mut parts = pair.splitn(2, |byte| *byte == b':');
    parts.next() == Some(USER) && parts.next().is_some_and(|given| is_same(given, password))
}

/// A page in somebody's browser can send requests to a loopback address of his machine, or an inner one of his network, and with them take
/// keys that it never reads. `is_key_by_get`: whether the request would take keys by GET. Browsers send such without `Origin`, for an
/// image of a page, and say nothing of the page to plain addresses of other machines. What they are they say nonetheless.
///
/// # Errors
/// The browser says that it is one.
pub(super) fn no_page(headers: &HeaderMap, is_key_by_get: bool) -> Result<(), Failure> {
    let site = headers.get(FETCH_SITE).map(|site| site.as_bytes());
    // `none`: somebody typed the address.
    let is_page = headers.contains_key(ORIGIN) || site.is_some_and(|site| site != b"none");
    let failure = || {
        Failure::new(
            Cause::BrowserRefused,
            "pages in a browser are given no keys",
        )
    };
    if is_page {
        return Err(failure());
    }
    if is_key_by_get && (headers.contains_key(REFERER) || is_browser(headers)) {
        let hint =
            "a program sends no Referer and another User-Agent than browsers do, or asks by POST";
        return Err(failure().hint(hint));
    }
    Ok(())
}

/// Whether it says the name of a browser.
fn is_browser(headers: &HeaderMap) -> bool {
    let agents = headers.get_all(USER_AGENT).iter();
    let mut agents = agents.map(|agent| agent.as_bytes());
    agents.any(|agent| {
        let mut parts = agent.windows(POWERSHELL.len());
        agent.starts_with(MOZILLA) && !parts.any(|part| part == POWERSHELL)
    })
}

#[cfg(test)]
mod tests {
    use hyper::HeaderMap;
    use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue, ORIGIN, REFERER, USER_AGENT};
    use keywright_core::Cause;

    use super::{FETCH_SITE, check, no_page};

    fn cause(said: Option<&'static str>, password: Option<&str>) -> Option<Cause> {
        let mut headers = HeaderMap::new();
        if let Some(said) = said {
            headers.insert(AUTHORIZATION, HeaderValue::from_static(said));
        }
        check(&headers, password)
            .err()
            .map(|failure| failure.cause())
    }

    #[test]
    fn only_the_password_opens() {
        for said in [
            "Bearer secret",
            "bearer  secret",
            "Basic ZGVmYXVsdDpzZWNyZXQ=",
        ] {
            assert_eq!(cause(Some(said), Some("secret")), None, "{said}");
        }
        for said in [
            "Bearer secreT",
            "Bearer secret1",
            "Bearer",
            "secret",
            "Digest secret",
            // app:secret, default:other, default, and none.
            "Basic YXBwOnNlY3JldA==",
            "Basic ZGVmYXVsdDpvdGhlcg==",
            "Basic ZGVmYXVsdA==",
            "Basic *",
            "",
        ] {
            assert_eq!(
                cause(Some(said), Some("secret")),
                Some(Cause::PasswordWrong),
                "{said}"
            );
        }
        assert_eq!(cause(None, Some("secret")), Some(Cause::PasswordMissing));
        assert_eq!(cause(Some("Bearer x"), None), None);
    }

    #[test]
    fn what_browsers_say_is_seen() {
        const FIREFOX: &str =
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
        const POWERSHELL: &str =
            "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.26100.1";
        let is_refused = |name: HeaderName, value: &'static str, is_key_by_get: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            let refused = no_page(&headers, is_key_by_get).err();
            refused.map(|failure| failure.cause()) == Some(Cause::BrowserRefused)
        };
        for (name, value, is_get_refused, is_post_refused) in [
            (ORIGIN, "null", true, true),
            (FETCH_SITE, "cross-site", true, true),
            (FETCH_SITE, "none", false, false),
            (REFERER, "http://evil.example/", true, false),
            (USER_AGENT, FIREFOX, true, false),
            (USER_AGENT, POWERSHELL, false, false),
            (USER_AGENT, "Mozilla/", true, false),
            (USER_AGENT, "Mozilla", false, false),
            (USER_AGENT, "", false, false),
            (USER_AGENT, "curl/8.14.1", false, false),
            (USER_AGENT, "Java/21.0.7", false, false),
            (USER_AGENT, "Go-http-client/1.1", false, false),
            (USER_AGENT, "python-requests/2.32.3", false, false),
        ] {
            let got = is_refused(name.clone(), value, true);
            assert_eq!(got, is_get_refused, "GET {name}: {value}");
            let got = is_refused(name.clone(), value, false);
            assert_eq!(got, is_post_refused, "POST {name}: {value}");
        }
    }
}
