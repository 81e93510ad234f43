//! Settings of a store that gives ranges: a key port of another program, or a Redis.

use keywright_core::Step;

use super::problems::Problems;
use super::raw::RawStoreSettings;
use super::url::{LOGIN_WITHIN, has_login_within, host, login, not_of_form};
use super::{password, tls};
use crate::engine::redis::{Host, RedisSettings};

/// How such a url begins, and whether that means TLS.
const SCHEMES: [(&str, bool); 2] = [("redis://", false), ("rediss://", true)];
/// Where a key port listens if nobody says otherwise; a Redis too.
const PORT: u16 = 6_379;
/// Hosts at most.
const HOSTS_MAX: usize = 16;
/// Ids of a full range, where nobody says otherwise.
const STEP: i64 = 1_000;
const FORM: &str = "redis://user@host:port,host:port";

/// Whether it is such a url.
pub(super) fn is_one(url: &str) -> bool {
    SCHEMES.iter().any(|(scheme, _)| url.starts_with(scheme))
}

/// Where the store is, without user and password.
pub(super) fn address(settings: &RedisSettings) -> String {
    let hosts: Vec<String> = settings.hosts.iter().map(ToString::to_string).collect();
    let database = match settings.database {
        0 => String::new(),
        database => format!("/{database}"),
    };
    format!("redis://{}{database}", hosts.join(","))
}

/// Ids of a full range.
pub(super) fn step(store: &RawStoreSettings, problems: &mut Problems) -> i64 {
    if store.step.is_some() && !is_one(&store.url) {
        problems.add(
            "store.step",
            "is for redis://: elsewhere each tag has its own",
        );
    }
    let step = store.step.unwrap_or(STEP);
    if let Err(error) = Step::new(step) {
        problems.add("store.step", error.to_string());
    }
    step
}

pub(super) fn settings(store: &RawStoreSettings, problems: &mut Problems) -> Option<RedisSettings> {
    refuse_others(store, problems);
    let mut schemes = SCHEMES.iter();
    let found =
        schemes.find_map(|(scheme, is_tls)| Some((store.url.strip_prefix(scheme)?, *is_tls)));
    if found.is_some_and(|(rest, _)| has_login_within(rest)) {
        problems.add("store.url", LOGIN_WITHIN);
        return None;
    }
    let parsed = found.and_then(|(rest, is_tls)| Some((Url::parse(rest)?, is_tls)));
    let Some((url, is_tls)) = parsed else {
        problems.add("store.url", not_of_form(FORM));
        return None;
    };
    if url.hosts.len() > HOSTS_MAX {
        problems.add("store.url", format!("names more than {HOSTS_MAX} hosts"));
    }
    if store.accept_loss_on_failover && url.hosts.len() > 1 {
        problems.add(
            "store.accept_loss_on_failover",
            "is for one Redis, and url names several hosts: two of them would count each by itself",
        );
    }
    let is_in_url = url.password.is_some();
    let password = password::of_store(store, is_in_url, problems).or(url.password);
    let user = url.user.filter(|user| !user.is_empty());
    if user.is_some() && password.is_none() {
        problems.add("store.url", "names a user, whose password is nowhere");
    }
    let with_tls = RawStoreSettings {
        tls: match is_tls {
            true => "required".to_owned(),
            false => store.tls.clone(),
        },
        ..store.clone()
    };
    let tls = tls::client(&with_tls, problems);
    let count = u64::try_from(url.hosts.len()).unwrap_or(u64::MAX);
    Some(RedisSettings {
        host_ms_max: store.store_ms_max.checked_div(count).unwrap_or(1).max(1),
        hosts: url.hosts,
        user,
        password,
        database: url.database,
        tls,
        accept_loss_on_failover: store.accept_loss_on_failover,
    })
}

fn refuse_others(store: &RawStoreSettings, problems: &mut Problems) {
    if store.any_file_system {
        problems.add("store.any_file_system", "is for a store in a file");
    }
    if store.segment_table.is_some() {
        problems.add("store.segment_table", "a key port has none");
    }
    if store.dialect != RawStoreSettings::default().dialect {
        problems.add("store.dialect", "a key port has no table of another system");
    }
}

/// What is behind the scheme.
struct Url {
    hosts: Vec<Host>,
    database: u32,
    user: Option<String>,
    password: Option<String>,
}

impl Url {
    fn parse(url: &str) -> Option<Self> {
        let (in_front, place) = match url.rsplit_once('@') {
            Some((in_front, place)) => (Some(in_front), place),
            None => (None, url),
        };
        let (user, password) = login(in_front)?;
        let (hosts, database) = match place.split_once('/') {
            Some((hosts, "")) => (hosts, 0),
            Some((hosts, database)) => (hosts, database.parse().ok()?),
            None => (place, 0),
        };
        let hosts: Option<Vec<Host>> = hosts.split(',').map(|text| host(text, PORT)).collect();
        Some(Self {
            hosts: hosts?,
            database,
            user,
            password,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Url;

    #[test]
    fn a_url_names_hosts() {
        let url = Url::parse("kw:a%2Fb@ids-1,10.0.0.2:7001,[::1]:6399").unwrap();
        let hosts: Vec<String> = url.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["ids-1:6379", "10.0.0.2:7001", "[::1]:6399"]);
        assert_eq!(url.user.as_deref(), Some("kw"));
        assert_eq!(url.password.as_deref(), Some("a/b"));
        assert_eq!(Url::parse("h/3").unwrap().database, 3);
        for wrong in [
            "", ",", "h,", "h:x", "h/x", "h/-1", "h/1/2", "a b", "[::x]", "u:%2@h", "h?x=1",
        ] {
            assert!(Url::parse(wrong).is_none(), "{wrong}");
        }
    }
}
