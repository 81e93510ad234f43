//! How the program itself reaches a listener's server.

use std::fmt;
use std::path::Path;

use keywright_store::{PasswordFrom, URL_ESCAPES, has_login_in_path, innermost, tls_options_in};
use mysql_async::{Opts, OptsBuilder, SslOpts};

/// An account on a listener's server. Neither its messages nor its debugging output show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Admin(Opts);

impl Admin {
    /// Out of the options `admin`, `admin_password_file` and `admin_password_env`.
    ///
    /// # Errors
    /// What is wrong with them, with the option's name.
    pub fn new(url: &str, file: Option<&str>, env: Option<&str>) -> Result<Admin, String> {
        // The error may quote the URL, and with it the password. A / in a password ends the login: what stands before it is taken for host and port,
        // if it can be.
        let is_whole =
            |opts: &Opts| !has_login_in_path(url) && (opts.user().is_some() || !url.contains('@'));
        let opts = Opts::from_url(url).ok().filter(is_whole).ok_or_else(|| {
            format!("admin is not of the form mysql://user@host:port ({URL_ESCAPES})")
        })?;
        // The driver says nothing of it, and connects without TLS.
        let of_tls = tls_options_in(url).into_iter();
        let of_tls: Vec<&str> = of_tls.filter(|option| *option != "require_ssl").collect();
        if opts.ssl_opts().is_none() && !of_tls.is_empty() {
            return Err(format!(
                "admin: {} needs require_ssl=true",
                of_tls.join(", ")
            ));
        }
        let password = PasswordFrom {
            in_url: opts.pass().is_some(),
            file: file.map(Path::new),
            env,
        };
        let password = password.read();
        let password = password.map_err(|(option, what)| format!("admin_{option}: {what}"))?;
        // Left to itself the driver goes over to the socket that a server on this machine names: there it may be another account, with
        // other rights, and another server where the address is forwarded.
        let mut opts = OptsBuilder::from_opts(opts).prefer_socket(false);
        if password.is_some() {
            opts = opts.pass(password);
        }
        Ok(Admin(opts.into()))
    }

    /// What the driver connects with.
    pub(crate) fn opts(&self) -> Opts {
        self.0.clone()
    }

    /// The same account at another address: `host:port` or `unix:/path`.
    pub(crate) fn opts_at(&self, address: &str) -> Option<Opts> {
        let opts = OptsBuilder::from_opts(self.0.clone());
        let opts = match address.strip_prefix("unix:") {
            // The driver fails to speak TLS there, and nobody can listen in.
            Some(path) => opts.socket(Some(path)).ssl_opts(None::<SslOpts>),
            None => {
                let (host, port) = address.rsplit_once(':')?;
                let host = host.trim_start_matches('[').trim_end_matches(']');
                opts.socket(None::<String>)
                    .ip_or_hostname(host)
                    .tcp_port(port.parse().ok()?)
            }
        };
        Some(opts.into())
    }

    /// Whether it is for that address as it is written.
    pub(crate) fn leads_to(&self, address: &str) -> bool {
        let other = self.opts_at(address).map(Admin);
        other.is_some_and(|other| self.is_same_place(&other))
    }

    /// Why nobody is logged in, with what to look at.
    pub(crate) fn not_reached(&self, error: &mysql_async::Error) -> String {
        let hint = match error {
            mysql_async::Error::Server(_) => " (check admin and its password)",
            mysql_async::Error::Driver(_)
            | mysql_async::Error::Io(_)
            | mysql_async::Error::Other(_)
            | mysql_async::Error::Url(_) => {
                " (is the server there, and the address in admin right?)"
            }
        };
        format!("connecting as {self}: {}{hint}", innermost(error))
    }

    /// Whether both are for one place, whoever logs in there.
    pub(crate) fn is_same_place(&self, other: &Admin) -> bool {
        let place = |of: &Admin| {
            let socket = of.0.socket().map(str::to_owned);
            (socket, of.0.ip_or_hostname().to_owned(), of.0.tcp_port())
        };
        place(self) == place(other)
    }
}

impl fmt::Display for Admin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.0.user().unwrap_or_default();
        match self.0.socket() {
            Some(socket) => write!(out, "{user} over {socket}"),
            None => write!(
                out,
                "{user} to {}:{}",
                self.0.ip_or_hostname(),
                self.0.tcp_port()
            ),
        }
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Admin({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::Admin;

    #[test]
    fn what_a_password_in_the_url_must_not_have_is_told() {
        for password in ["s/w", "1/2", "s?w", "s#w", "1@2/3", "1@2#3"] {
            let told = Admin::new(&format!("mysql://kw:{password}@db"), None, None).unwrap_err();
            assert!(told.starts_with("admin is not of the form "), "{told}");
            assert!(told.contains("write / : @ ? # % as %2F"), "{told}");
            assert!(!told.contains(password), "{told}");
        }
        let admin = Admin::new("mysql://k%3Aw:%2F%3A%40%3F%23%25@db", None, None).unwrap();
        assert_eq!(admin.opts().user(), Some("k:w"));
        assert_eq!(admin.opts().pass(), Some("/:@?#%"));
    }

    /// The options of other accounts are called otherwise.
    #[test]
    fn a_password_in_two_places_is_told_with_the_options_of_admin() {
        let told = Admin::new("mysql://kw@db", Some("/a/file"), Some("OF_ADMIN")).unwrap_err();
        assert!(told.starts_with("admin_password_env: "), "{told}");
        assert!(!told.contains(" password_file"), "{told}");
    }

    #[test]
    fn at_a_socket_no_tls_is_spoken() {
        let url = "mysql://admin@db:3306/?require_ssl=true&verify_ca=false";
        let admin = Admin::new(url, None, None).unwrap();
        for (address, has_tls) in [("unix:/run/mysqld.sock", false), ("127.0.0.1:3307", true)] {
            let opts = admin.opts_at(address).unwrap();
            assert_eq!(opts.ssl_opts().is_some(), has_tls, "{address}");
        }
    }

    #[test]
    fn what_is_said_of_tls_takes_tls() {
        let told = |options: &str| {
            let url = format!("mysql://admin@db:3306/?{options}");
            Admin::new(&url, None, None).map(|admin| admin.opts().ssl_opts().is_some())
        };
        assert_eq!(told("prefer_socket=false"), Ok(false));
        assert_eq!(told("require_ssl=true"), Ok(true));
        assert_eq!(told("require_ssl=true&verify_ca=false"), Ok(true));
        for (options, named) in [
            ("verify_ca=true", "verify_ca"),
            (
                "require_ssl=false&verify_identity=true&built_in_roots=false",
                "verify_identity, built_in_roots",
            ),
        ] {
            let expected = format!("admin: {named} needs require_ssl=true");
            assert_eq!(told(options), Err(expected));
        }
    }
}
