//! Settings of a store on a MySQL or MariaDB server.

use std::path::PathBuf;

use mysql_async::{Opts, OptsBuilder, SslOpts};

use super::url::not_of_form;
use super::{Problems, RawStoreSettings, password, tls};

const SCHEME: &str = "mysql://";
const FORM: &str = "mysql://user@host:port/schema";

/// Without user and password.
pub(super) fn address(opts: &Opts) -> String {
    match opts.socket() {
        Some(socket) => format!("unix:{socket}"),
        None => format!("{}:{}", opts.ip_or_hostname(), opts.tcp_port()),
    }
}

/// Options of the driver's URLs that say how TLS is spoken.
const TLS_OPTIONS: [&str; 4] = [
    "require_ssl",
    "verify_ca",
    "verify_identity",
    "built_in_roots",
];

/// The names of the options in a URL, as they are written.
fn option_names(url: &str) -> impl Iterator<Item = &str> {
    let without_fragment = url.split('#').next().unwrap_or_default();
    let options = without_fragment.split_once('?').map(|(_, options)| options);
    let options = options.unwrap_or_default().split('&');
    options.map(|option| option.split('=').next().unwrap_or_default())
}

/// The options about TLS that a `mysql://` URL names.
pub fn tls_options_in(url: &str) -> Vec<&'static str> {
    let is_named = |option: &&str| option_names(url).any(|name| name == *option);
    TLS_OPTIONS.into_iter().filter(is_named).collect()
}

/// Whether a password of a `mysql://` URL goes on behind its first `/` or `#`, which ends the login: the driver takes what stands before it for the host,
/// and what follows for the schema, or for nothing. Messages show both. In a schema's name an `@` is `%40`.
pub fn has_login_in_path(url: &str) -> bool {
    let place = url.split_once('?').map_or(url, |(place, _)| place);
    let behind_scheme = place.split_once("://").map_or("", |(_, behind)| behind);
    let path = behind_scheme.split_once(['/', '#']);
    path.is_some_and(|(_, path)| path.contains('@'))
}

/// What the store says itself, whatever stands in the URL.
fn refuse_overwritten(url: &str, opts: &Opts, problems: &mut Problems) {
    let mut of_tls = tls_options_in(url);
    // However its name is written.
    if opts.ssl_opts().is_some() && !of_tls.contains(&"require_ssl") {
        of_tls.push("require_ssl");
    }
    for option in of_tls {
        problems.add("store.url", format!("{option} is said by store.tls"));
    }
    if opts.client_found_rows() {
        problems.add(
            "store.url",
            "client_found_rows=true is for no store: rows that a write changes are counted",
        );
    }
    let prefers_socket = opts.prefer_socket() && option_names(url).any(|it| it == "prefer_socket");
    if prefers_socket {
        problems.add(
            "store.url",
            "prefer_socket=true is for no store: name its socket (?socket=/path)",
        );
    }
}

pub(super) fn connection(store: &RawStoreSettings, problems: &mut Problems) -> Option<Opts> {
    let opts = match Opts::from_url(&store.url) {
        Ok(opts) if !has_login_in_path(&store.url) => opts,
        // The error may quote the URL, and with it the password.
        Ok(_) | Err(_) => {
            let problem = match store.url.starts_with(SCHEME) {
                true => not_of_form(FORM),
                false => format!(
                    "is not of the form {FORM}, postgres://user@host:port/database, etcd://host:port/prefix, file:/path or redis://host:port"
                ),
            };
            problems.add("store.url", problem);
            return None;
        }
    };
    if opts.db_name().is_none_or(str::is_empty) {
        problems.add("store.url", "names no schema");
    }
    if opts.user().is_none_or(str::is_empty) {
        problems.add("store.url", "names no user");
    }
    refuse_overwritten(&store.url, &opts, problems);
    if store.any_file_system && store.kept_ranges_file.is_none() {
        problems.add("store.any_file_system", "is for a store in a file");
    }
    let mut builder = OptsBuilder::from_opts(opts.clone())
        .prefer_socket(false)
        .client_found_rows(false)
        .setup(setup_statements(store.store_ms_max));
    let in_url = opts.pass().is_some();
    if let Some(password) = password::of_store(store, in_url, problems) {
        builder = builder.pass(Some(password));
    }
    let tls = tls::is_required(store, problems).then(|| ssl_opts(store));
    Some(builder.ssl_opts(tls).into())
}

fn ssl_opts(store: &RawStoreSettings) -> SslOpts {
    match &store.tls_ca_file {
        Some(file) => SslOpts::default()
            .with_root_certs(vec![PathBuf::from(file).into()])
            .with_disable_built_in_roots(true),
        None => SslOpts::default(),
    }
}

/// What every session sets first, in no particular order.
///
/// A lock that somebody holds is waited for no longer than a transaction may last. A transaction in which nothing is said
/// for several times as long is one whose program was stopped or lost: the server undoes it, so that its locks do not stand
/// in the way of other programs for the hours that servers wait by default. MariaDB has a time limit for exactly that, which
/// leaves sessions alone that are idle between two transactions; MySQL ends those too, and they are opened again.
///
/// Rows that are not there yet are locked only from REPEATABLE READ on, and leases of two layouts are kept apart by that.
fn setup_statements(store_ms_max: u64) -> Vec<String> {
    const CONVERSATIONS: u64 = 3;
    let lock_s = store_ms_max.div_ceil(1000);
    let idle_s = lock_s * CONVERSATIONS;
    // Of versioned comments from 50700 on MariaDB reads none before 100000.
    let idle = format!(
        "/*M!100300 , idle_transaction_timeout = {idle_s}, idle_write_transaction_timeout = {idle_s}, \
         idle_readonly_transaction_timeout = {idle_s} */ /*!50700 , wait_timeout = {idle_s} */"
    );
    vec![
        format!(
            "SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = {lock_s} {idle}"
        ),
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use crate::settings::{RawSnowflakeSettings, RawStoreSettings, StoreSettings};

    #[test]
    fn options_of_a_mysql_url_that_would_be_overwritten_are_refused() {
        let told = |options: &str, tls: &str| {
            let store = RawStoreSettings {
                tls: tls.to_owned(),
                url: format!("mysql://keywright@db/keywright{options}"),
                ..RawStoreSettings::default()
            };
            let checked = StoreSettings::new(&store, &RawSnowflakeSettings::default());
            checked.map(|_| ()).map_err(|error| error.to_string())
        };
        for tls in ["disabled", "required"] {
            for (options, problem) in [
                ("?require_ssl=true", "require_ssl is said by store.tls"),
                ("?require_ssl=false", "require_ssl is said by store.tls"),
                ("?require%5Fssl=true", "require_ssl is said by store.tls"),
                (
                    "?prefer_socket=false&verify_ca=false",
                    "verify_ca is said by store.tls",
                ),
                (
                    "?verify_identity=false",
                    "verify_identity is said by store.tls",
                ),
                (
                    "?built_in_roots=false",
                    "built_in_roots is said by store.tls",
                ),
                (
                    "?client_found_rows=true",
                    "client_found_rows=true is for no store: rows that a write changes are counted",
                ),
                (
                    "?prefer_socket=true",
                    "prefer_socket=true is for no store: name its socket (?socket=/path)",
                ),
            ] {
                let expected = Err(format!("store.url: {problem}"));
                assert_eq!(told(options, tls), expected, "{options}");
            }
            for fine in [
                "",
                "?socket=/run/db.sock",
                "?prefer_socket=false&compression=fast&client_found_rows=false",
                "?tcp_nodelay=true#require_ssl=true",
            ] {
                assert_eq!(told(fine, tls), Ok(()), "{fine}");
            }
        }
    }
}
