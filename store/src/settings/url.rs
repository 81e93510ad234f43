//! Parts of urls.

use std::net::Ipv6Addr;

use crate::engine::redis::Host;

/// `host`, `host:port`, `[::1]:port`.
pub(super) fn host(text: &str, default_port: u16) -> Option<Host> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()?),
        Some(_) | None => (text, default_port),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let bare = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_fine = match bare {
        Some(bare) => bare.parse::<Ipv6Addr>().is_ok(),
        None => !name.is_empty() && name.bytes().all(is_plain),
    };
    is_fine.then(|| Host {
        name: bare.unwrap_or(name).to_owned(),
        port,
    })
}

/// What a login must not have as it is: behind the form of a url that cannot be read.
pub const URL_ESCAPES: &str = "in user and password, write / : @ ? # % as %2F %3A %40 %3F %23 %25, or give the password in a file";

/// That a url is not of its form, for which a password in it may be to blame. The url itself is not told.
pub(super) fn not_of_form(form: &str) -> String {
    format!("is not of the form {form} ({URL_ESCAPES})")
}

/// What is wrong with a url of [`has_login_within`].
pub(super) const LOGIN_WITHIN: &str = "has a comma before its last @: user and password stand once, in front of the first host, and a comma in them is %2C";

/// Whether a list of hosts has a login anywhere but in front. All before its last `@` would be taken for the login, and the hosts there for a part of it.
pub(super) fn has_login_within(place: &str) -> bool {
    let in_front = place.rsplit_once('@').map(|(in_front, _)| in_front);
    in_front.is_some_and(|in_front| in_front.contains(','))
}

/// User and password before a host, if the url has them.
pub(super) type Login = (Option<String>, Option<String>);

/// `user`, `user:password`, `:password`.
pub(super) fn login(text: Option<&str>) -> Option<Login> {
    match text.map(|login| login.split_once(':').ok_or(login)) {
        Some(Ok((user, password))) => Some((Some(unescaped(user)?), Some(unescaped(password)?))),
        Some(Err(user)) => Some((Some(unescaped(user)?), None)),
        None => Some((None, None)),
    }
}

/// `%` and two hexadecimal digits stand for a byte.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::has_login_within;

    #[test]
    fn a_login_stands_in_front_of_all_hosts() {
        for fine in [
            "h",
            "h,i",
            "u@h,i",
            "u:p@h:1,i:2",
            ":p@h,i",
            "u:p@q@h,i",
            "u:p%2Cq@h",
        ] {
            assert!(!has_login_within(fine), "{fine}");
        }
        for wrong in ["u:p@h,u:p@i", "h,u:p@i", "h:1,u:p@i:2", "u:p,q@h", "h,@i"] {
            assert!(has_login_within(wrong), "{wrong}");
        }
    }
}
