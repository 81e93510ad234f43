//! Settings of a store on a PostgreSQL server.

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::problems::Problems;
use super::raw::RawStoreSettings;
use super::url::not_of_form;
use super::{password, tls};
use crate::engine::postgres::{self, PostgresSettings};

/// How such a url begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
const FORM: &str = "postgres://user@host:port/database";

/// Whether it is such a url.
pub(super) fn is_one(url: &str) -> bool {
    SCHEMES.iter().any(|scheme| url.starts_with(scheme))
}

pub(super) fn connection(
    store: &RawStoreSettings,
    problems: &mut Problems,
) -> Option<PostgresSettings> {
    // The error may quote the URL, and with it the password.
    let config = store.url.parse::<Config>().ok();
    let is_whole = |config: &Config| !has_login_in_host(config) && !has_login_behind(&store.url);
    let Some(mut config) = config.filter(is_whole) else {
        problems.add("store.url", not_of_form(FORM));
        return None;
    };
    if config.get_dbname().is_none_or(str::is_empty) {
        problems.add("store.url", "names no database");
    }
    if config.get_user().is_none_or(str::is_empty) {
        problems.add("store.url", "names no user");
    }
    if config.get_hosts().is_empty() {
        problems.add("store.url", "names no host");
    }
    if config.get_ssl_mode() != SslMode::Prefer {
        problems.add("store.url", "sslmode is said by store.tls");
    }
    refuse_others(store, problems);
    let in_url = config.get_password().is_some();
    if let Some(password) = password::of_store(store, in_url, problems) {
        config.password(password);
    }
    let tls = tls::client(store, problems);
    postgres::set(&mut config, tls.is_some(), store.store_ms_max);
    const CONVERSATIONS: u64 = 3;
    Some(PostgresSettings {
        config,
        tls,
        lock_ms_max: store.store_ms_max,
        idle_ms_max: store.store_ms_max.saturating_mul(CONVERSATIONS),
    })
}

/// Whether a password goes on behind its first `@`: the driver takes what follows for the host, which messages show.
fn has_login_in_host(config: &Config) -> bool {
    config.get_hosts().iter().any(|host| match host {
        Host::Tcp(name) => name.contains('@'),
        Host::Unix(_) => false,
    })
}

/// The same where a `/` stands behind that `@`: the driver takes what follows for the database, which messages show, too. In its name an `@` is `%40`.
fn has_login_behind(url: &str) -> bool {
    let behind = url.split_once('@').map_or("", |(_, behind)| behind);
    let place = behind.split_once('?').map_or(behind, |(place, _)| place);
    place.contains('@')
}

fn refuse_others(store: &RawStoreSettings, problems: &mut Problems) {
    if store.any_file_system && store.kept_ranges_file.is_none() {
        problems.add("store.any_file_system", "is for a store in a file");
    }
    if store.segment_table.is_some() {
        problems.add("store.segment_table", "a store in PostgreSQL has none");
    }
    if store.dialect != RawStoreSettings::default().dialect {
        problems.add(
            "store.dialect",
            "a store in PostgreSQL has tags of its own only",
        );
    }
}
