//! A listener's options: as written, then validated.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::ServerName;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::admin::Admin;
use crate::config::address;
use crate::config::port::{http, redis};
use crate::config::tls::{self, TlsMode, UpstreamTls, Verify};
use crate::handshake::password::OwnKey;

/// An address at which the program accepts clients. With the protocol `mysql` there is one server behind it, and applications connect to `bind` as they
/// did to the server. With `redis` or `http` it is a [key port](../key-port.md).
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawListener {
    /// The protocol of the clients: `mysql`, `redis` or `http`. An option that names protocols is for these only.
    #[serde(default = "mysql")]
    pub(super) protocol: String,
    /// `address:port` or `unix:/path`. A socket is open to all users of the machine who can reach its directory, as the server's own is.
    pub(super) bind: String,
    /// With `mysql`, required: the server, `address:port` or `unix:/path`.
    pub(super) upstream: Option<String>,
    /// The program's own connection to the server, which reads tables and triggers and sets fences: `mysql://user[:password]@host[:port]`. Without it the
    /// program reads no tables and switches none. With rules it then starts only with `check = "warn"`. In user and password, write `/ : @ ? # %` as
    /// `%2F %3A %40 %3F %23 %25`.
    pub(super) admin: Option<String>,
    /// A file whose first line is the password of `admin`. SIGHUP reads it again.
    pub(super) admin_password_file: Option<String>,
    /// The name of the environment variable that holds the password of `admin`.
    admin_password_env: Option<String>,
    /// If the program cannot read the server's tables: `error`: it does not start; `warn`: it warns and starts.
    #[serde(default = "error")]
    check: String,
    /// Each connection begins with a header of the PROXY protocol (v2), from a load balancer in front of the program. Let nobody else reach `bind`:
    /// whoever does can claim any address.
    #[serde(default)]
    proxy_protocol: bool,
    /// Send the server such a header (v2), so that accounts' hosts and the process list show the clients' addresses. The server must trust this program's
    /// address (MariaDB: `proxy_protocol_networks`). MySQL does not know the protocol.
    #[serde(default)]
    upstream_proxy_protocol: bool,
    /// TLS towards clients: `disabled`, `preferred` (for clients that ask for it; with `mysql` only) or `required`.
    #[serde(default = "disabled")]
    pub(super) tls: String,
    /// The certificate for clients and its chain, PEM.
    pub(super) certificate: Option<String>,
    /// The certificate's key, PEM.
    pub(super) key: Option<String>,
    /// The RSA key for passwords of clients without TLS, where the server's side has TLS, PEM. Default: generated when needed.
    pub(super) rsa_key: Option<String>,
    /// TLS towards the server: `disabled`, `preferred` (if the server offers it; an attacker in between can prevent it) or `required`.
    #[serde(default = "disabled")]
    upstream_tls: String,
    /// The server's certificate must be for `upstream_name` (`name`, the default), for any name (`ca`), or may be anybody's (`none`).
    upstream_verify: Option<String>,
    /// The authorities that must have signed the server's certificate, PEM.
    upstream_ca: Option<String>,
    /// The name in the server's certificate. Default: the host of `upstream`.
    upstream_name: Option<String>,
    /// With `redis` and `http`, required: the names that clients ask for, and where the keys of each come from: `{ orders = "segment:orders" }`. The
    /// values are those of `key` of a `[[rule]]`, except `stride:TAG`. Other names are refused.
    pub(super) keys: Option<BTreeMap<String, String>>,
    /// With `redis` and `http`: a file whose first line is the password that clients must send (`AUTH`; `Authorization`). Without one they
    /// need none.
    pub(super) password_file: Option<String>,
    /// With `redis` and `http`: the name of the environment variable that holds that password.
    pub(super) password_env: Option<String>,
    /// With `redis` and `http`: clients log in as [users](../users.md). The store keeps the users, and what each may do with which names. Default:
    /// `false`. A change needs a restart.
    pub(super) users: Option<bool>,
    /// With `users`: allow passwords in clear over the network, where `bind` is neither a loopback address nor a UNIX socket and `tls` is not `required`.
    /// Default: `false`.
    pub(super) users_without_tls: Option<bool>,
    /// With `redis` and `http`: without `users`, allow a `bind` that is neither a loopback address nor a UNIX socket. Whoever can connect (and has the
    /// password, if there is one) takes keys of every name. Default: `false`.
    pub(super) open_to_the_network_without_users: Option<bool>,
    /// With `redis` and `http`: most connections of this key port. `connections_max` of `[limits]` does not count them. Default: 10000.
    #[schemars(range(min = 1))]
    pub(super) connections_max: Option<u64>,
    /// With `redis`: requests of one connection that are answered before other connections get their turn. Default: 1000.
    #[schemars(range(min = 1, max = u32::MAX))]
    pub(super) pipeline_requests_max: Option<u32>,
    /// With `redis`: longest argument of a request, bytes. A longer one ends the connection. Default: 4096.
    #[schemars(range(min = redis::BYTES_MIN, max = redis::BULK_BYTES_MAX))]
    pub(super) bulk_bytes_max: Option<u32>,
    /// With `redis` and `http`: a client that sends nothing for so long is disconnected, seconds. Default with `redis`: 0, never; with `http`:
    /// 75, at least 1.
    pub(super) idle_s_max: Option<u64>,
    /// With `redis`: most bytes of replies that a client has not read. While there are as many, the program reads no more requests of it. Once
    /// more than 4 KiB wait, about twice all that waits counts in `memory_bytes_max`. Default: 1048576.
    #[schemars(range(min = redis::BYTES_MIN, max = redis::OUTPUT_BYTES_MAX))]
    pub(super) output_bytes_max: Option<usize>,
    /// With `redis` and `http`: a client that reads nothing of its replies for so long is disconnected, milliseconds. Default: 60000.
    #[schemars(range(min = 1))]
    pub(super) unread_ms_max: Option<u64>,
    /// With `redis`: issue keys of [ordered tags](../ordered-tags.md), together with the other programs of the store that have this option. One program
    /// at a time does. The others redirect clients to its `cluster_address`, a `host:port`. For one listener of a program. A change needs a restart.
    pub(super) cluster_address: Option<String>,
    /// With `cluster_address`: how long the active program of ordered tags may be silent before another takes over, milliseconds; 200 to 60000. The
    /// longest of all programs counts. Default: 2000.
    #[schemars(range(min = redis::ORDER_TTL_MS_MIN, max = redis::ORDER_TTL_MS_MAX))]
    pub(super) order_ttl_ms: Option<u64>,
    /// With `http`: longest head of a request (its line and headers), bytes; at least 8192. A longer one gets 431. Default: 16384.
    #[schemars(range(min = http::HEAD_BYTES_MIN, max = http::BYTES_MAX))]
    pub(super) head_bytes_max: Option<usize>,
    /// With `http`: longest body of a request, bytes. A longer one gets 413. Default: 8192.
    #[schemars(range(min = 0, max = http::BYTES_MAX))]
    pub(super) body_bytes_max: Option<usize>,
    /// With `http`: how long the head of a request may take from its first byte, or from the beginning of the connection, and its body after
    /// that, milliseconds. Default: 10000.
    #[schemars(range(min = 1))]
    pub(super) request_ms_max: Option<u64>,
    /// With `http`: most keys of one request. A client of tinyid that asks for more gets this many, other clients get an error. Default: 100000.
    #[schemars(range(min = 1, max = http::KEYS_MAX))]
    pub(super) request_keys_max: Option<u64>,
    /// With `http`: most requests of one connection. Then it is closed. 0: no limit. Default: 0.
    pub(super) keepalive_requests_max: Option<u64>,
    /// With `http`: keys of one segment that a client of tinyid gets (`step` there). They count as used when they are handed out. At most
    /// `range_ids_max` of `[store]`. Default: 1000.
    #[schemars(range(min = 1))]
    pub(super) tinyid_segment_keys: Option<u64>,
    /// With `http`: names of hosts, as `keys.example.com`, that requests may name in `Host`, besides addresses and `localhost`; `["*"]`: any. Default:
    /// none where `bind` is a loopback address and clients need neither TLS nor a password, so that no page in a browser can read there; any
    /// elsewhere.
    pub(super) host_names: Option<Vec<String>>,
}

fn mysql() -> String {
    MYSQL.to_owned()
}

fn error() -> String {
    "error".to_owned()
}

fn disabled() -> String {
    "disabled".to_owned()
}

/// A place to accept clients, and the server behind it.
#[derive(Debug, Clone)]
pub struct Listener {
    /// `address:port` or `unix:/path`.
    pub bind: String,
    /// The same.
    pub upstream: String,
    /// The account of the proxy's own connection to the server.
    pub admin: Option<Admin>,
    /// What it means that the server cannot be looked at.
    pub unchecked: Unchecked,
    /// Whether clients' connections begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Whether the server is sent one.
    pub upstream_proxy_protocol: bool,
    /// What protects the two legs. Unlike the rest it may change while the proxy runs.
    pub protection: Arc<Protection>,
}

/// What it means that a server cannot be looked at: then it is not known how it compares names, which tables have triggers, and
/// whether keys fit in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchecked {
    /// The proxy does not start, and keeps its rules on reload.
    Error,
    /// It goes on as if names were compared with case and there were no triggers.
    Warning,
}

/// What protects the way from the client to the server.
#[derive(Debug)]
pub struct Protection {
    /// TLS towards clients.
    pub client: TlsMode<Arc<ServerConfig>>,
    /// TLS towards the server.
    pub upstream: TlsMode<UpstreamTls>,
    /// The key that clients without TLS encrypt a password for, if it is not generated.
    pub rsa_key: Option<Arc<OwnKey>>,
}

pub(super) const MYSQL: &str = "mysql";

/// Options that are about a server, and whether they are there.
pub(super) fn options_given(raw: &RawListener) -> [(&'static str, bool); 13] {
    [
        ("upstream", raw.upstream.is_some()),
        ("admin", raw.admin.is_some()),
        ("admin_password_file", raw.admin_password_file.is_some()),
        ("admin_password_env", raw.admin_password_env.is_some()),
        ("check", raw.check != error()),
        ("proxy_protocol", raw.proxy_protocol),
        ("upstream_proxy_protocol", raw.upstream_proxy_protocol),
        ("rsa_key", raw.rsa_key.is_some()),
        ("upstream_tls", raw.upstream_tls != disabled()),
        ("upstream_verify", raw.upstream_verify.is_some()),
        ("upstream_ca", raw.upstream_ca.is_some()),
        ("upstream_name", raw.upstream_name.is_some()),
        // A client of Redis cannot ask for it: it is there from the first byte, or not at all.
        ("tls = \"preferred\"", raw.tls == "preferred"),
    ]
}

/// `None`: problems were found.
pub(super) fn listener(raw: RawListener, found: &mut Vec<String>) -> Option<Listener> {
    match &raw.upstream {
        Some(upstream) => found.extend(address::problem(("upstream", "127.0.0.1:3306"), upstream)),
        None => found.push("protocol = \"mysql\" needs upstream".to_owned()),
    }
    let unchecked = match raw.check.as_str() {
        "error" => Unchecked::Error,
        "warn" => Unchecked::Warning,
        other => {
            found.push(format!("check is error or warn, not \"{other}\""));
            Unchecked::Error
        }
    };
    let (file, env) = (
        raw.admin_password_file.as_deref(),
        raw.admin_password_env.as_deref(),
    );
    let admin = match &raw.admin {
        Some(url) => Admin::new(url, file, env)
            .map_err(|problem| found.push(problem))
            .ok(),
        None => {
            let given = [
                ("admin_password_file", file.is_some()),
                ("admin_password_env", env.is_some()),
            ];
            let given = given.into_iter().filter(|(_, is_given)| *is_given);
            found.extend(given.map(|(option, _)| format!("{option} needs admin")));
            None
        }
    };
    let client = towards_clients(&raw, found);
    let upstream = towards_upstream(&raw, found);
    let rsa_key = raw
        .rsa_key
        .as_deref()
        .map(|file| OwnKey::from_file(file).map_err(|error| found.push(error)))
        .and_then(Result::ok);
    Some(Listener {
        bind: raw.bind,
        upstream: raw.upstream?,
        admin,
        unchecked,
        proxy_protocol: raw.proxy_protocol,
        upstream_proxy_protocol: raw.upstream_proxy_protocol,
        protection: Arc::new(Protection {
            client: client?,
            upstream: upstream?,
            rsa_key: rsa_key.map(Arc::new),
        }),
    })
}

/// One of the three words. `None` is a problem, which was noted.
fn wanted(option: &str, word: &str, problems: &mut Vec<String>) -> Option<TlsMode<()>> {
    match word {
        "disabled" => Some(TlsMode::Disabled),
        "preferred" => Some(TlsMode::Preferred(())),
        "required" => Some(TlsMode::Required(())),
        other => {
            problems.push(format!(
                "{option} is disabled, preferred or required, not \"{other}\""
            ));
            None
        }
    }
}

/// Options that do nothing as long as another is off: whoever wrote them expects something of them.
fn useless(option: &str, given: &[(&str, bool)], problems: &mut Vec<String>) {
    for (name, _) in given.iter().filter(|(_, is_given)| *is_given) {
        problems.push(format!(
            "{name} has no effect, since {option} is \"disabled\""
        ));
    }
}

pub(super) fn towards_clients(
    raw: &RawListener,
    problems: &mut Vec<String>,
) -> Option<TlsMode<Arc<ServerConfig>>> {
    let given = [
        ("certificate", raw.certificate.is_some()),
        ("key", raw.key.is_some()),
    ];
    let wanted = wanted("tls", &raw.tls, problems)?;
    if wanted.settings().is_none() {
        useless("tls", &given, problems);
        return Some(TlsMode::Disabled);
    }
    let (Some(certificate), Some(key)) = (&raw.certificate, &raw.key) else {
        for (name, _) in given.iter().filter(|(_, is_given)| !is_given) {
            problems.push(format!("tls is \"{}\" and needs {name}", raw.tls));
        }
        return None;
    };
    match tls::towards_clients(certificate, key) {
        Ok(config) => Some(wanted.map(|()| Arc::new(config))),
        Err(found) => {
            problems.extend(found);
            None
        }
    }
}

fn towards_upstream(raw: &RawListener, problems: &mut Vec<String>) -> Option<TlsMode<UpstreamTls>> {
    let wanted = wanted("upstream_tls", &raw.upstream_tls, problems)?;
    if wanted.settings().is_none() {
        let given = [
            ("upstream_verify", raw.upstream_verify.is_some()),
            ("upstream_ca", raw.upstream_ca.is_some()),
            ("upstream_name", raw.upstream_name.is_some()),
        ];
        useless("upstream_tls", &given, problems);
        return Some(TlsMode::Disabled);
    }
    let verify = match raw.upstream_verify.as_deref().unwrap_or("name") {
        "name" => Verify::Name,
        "ca" => Verify::Authority,
        "none" => Verify::Nothing,
        other => {
            problems.push(format!(
                "upstream_verify is name, ca or none, not \"{other}\""
            ));
            return None;
        }
    };
    let before = problems.len();
    match (verify, &raw.upstream_ca) {
        (Verify::Name | Verify::Authority, None) => problems.push(format!(
            "upstream_tls is \"{}\" and needs upstream_ca, or upstream_verify = \"none\" if anybody may pose as the server",
            raw.upstream_tls
        )),
        (Verify::Nothing, Some(_)) => {
            problems.push("upstream_ca has no effect, since upstream_verify is \"none\"".to_owned());
        }
        (Verify::Name | Verify::Authority, Some(_)) | (Verify::Nothing, None) => {}
    }
    if raw.upstream_name.is_some() && verify != Verify::Name {
        problems
            .push("upstream_name has no effect, since upstream_verify is not \"name\"".to_owned());
    }
    let name = server_name(raw, verify).map_err(|problem| problems.push(problem));
    if problems.len() > before {
        return None;
    }
    match (
        tls::towards_upstream(verify, raw.upstream_ca.as_deref()),
        name,
    ) {
        (Ok(config), Ok(name)) => Some(wanted.map(|()| UpstreamTls {
            config: Arc::new(config),
            name,
        })),
        (Err(problem), _) => {
            problems.push(problem);
            None
        }
        (Ok(_), Err(())) => None,
    }
}

/// What the certificate must be for: `upstream_name`, else the host of `upstream`.
fn server_name(raw: &RawListener, verify: Verify) -> Result<ServerName<'static>, String> {
    let upstream = raw.upstream.as_deref().unwrap_or_default();
    let host = match &raw.upstream_name {
        Some(name) => name.as_str(),
        None => upstream.rsplit_once(':').map_or("", |(host, _)| host),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match ServerName::try_from(host.to_owned()) {
        Ok(name) => Ok(name),
        // The name is not looked at, and a socket has none; the protocol wants one.
        Err(_) if verify != Verify::Name => Ok(ServerName::IpAddress(
            std::net::IpAddr::from([127, 0, 0, 1]).into(),
        )),
        Err(_) if raw.upstream_name.is_some() => {
            Err(format!("upstream_name \"{host}\" is no name of a host"))
        }
        Err(_) => Err(format!(
            "upstream \"{upstream}\" is no name that a certificate could have: give upstream_name"
        )),
    }
}
