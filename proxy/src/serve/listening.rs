//! Where the program listens: on sockets that it inherited, and on those that it binds.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, Result};
use listenfd::ListenFd;

use crate::config::Config;
use crate::connection::acceptor::{Acceptor, Bound, can_be_bound, is_address_here};

/// What sockets are for.
const LISTENING: &str = "listening";
const METRICS: &str = "serving metrics";

/// Listening sockets that the program was handed when it was started (`LISTEN_FDS`): by a service manager, or by the program that it
/// takes over from.
#[derive(Debug, Default)]
pub struct InheritedSockets(Vec<Bound>);

impl InheritedSockets {
    /// Those that the environment names. To be called while the program has one thread: variables are removed.
    ///
    /// # Errors
    /// What was handed over is no listening socket.
    pub fn from_env() -> Result<InheritedSockets> {
        let mut inherited = ListenFd::from_env();
        let count = inherited.len();
        let socket = |index| {
            let bound = match inherited.take_unix_listener(index) {
                Ok(Some(bound)) => Bound::Unix(bound),
                Ok(None) | Err(_) => {
                    let taken = inherited.take_tcp_listener(index)?;
                    Bound::Tcp(taken.ok_or(io::ErrorKind::NotFound)?)
                }
            };
            bound.never_wait()?;
            io::Result::Ok(bound)
        };
        let sockets = (0..count).map(socket).collect::<io::Result<_>>();
        sockets
            .map(InheritedSockets)
            .context("listening on what LISTEN_FDS names")
    }

    /// The socket of `address:port` or `unix:/path`: the one that was handed over, else a new one. Silent clients are asked whether they
    /// are there after so long, seconds; 0: never.
    fn bind(&mut self, target: &str, keepalive_s: u32) -> io::Result<Bound> {
        let bound = match self.0.iter().position(|bound| bound.is_at(target)) {
            Some(index) => self.0.swap_remove(index),
            None => Bound::bind(target)?,
        };
        bound.hand_down(keepalive_s)?;
        Ok(bound)
    }

    /// That what the configuration names can be bound, where it was not handed over. Nobody can connect to it by that yet.
    ///
    /// # Errors
    /// An address is in use, or not ours to bind.
    pub fn see_that_the_rest_can_be_bound(&self, config: &Config) -> Result<()> {
        for (what, bind) in all_of(config) {
            if !self.0.iter().any(|bound| bound.is_at(bind)) {
                can_be_bound(bind).map_err(|error| not_bound(what, bind, &error))?;
            }
        }
        Ok(())
    }

    /// Addresses of those that are left.
    pub fn left(&self) -> Vec<String> {
        self.0.iter().map(Bound::name).collect()
    }
}

/// All sockets that are listened on.
#[derive(Debug)]
pub struct Listening {
    metrics: Option<Bound>,
    /// As [`Config::binds`] names them.
    listeners: Vec<Bound>,
}

/// Those that one thread accepts from.
pub(crate) struct Acceptors {
    pub(crate) metrics: Option<Acceptor>,
    /// With their places among [`Config::binds`].
    pub(crate) listeners: Vec<(usize, Acceptor)>,
}

impl Listening {
    /// On what the configuration names. Clients wait until they are accepted.
    ///
    /// # Errors
    /// An address cannot be bound.
    pub fn begin(config: &Config, inherited: &mut InheritedSockets) -> Result<Listening> {
        // First, so that /readyz can be asked as soon as clients get through.
        let metrics = config.metrics.as_deref().map(|bind| {
            let bound = inherited.bind(bind, 0);
            bound.map_err(|error| not_bound(METRICS, bind, &error))
        });
        let metrics = metrics.transpose()?;
        let listeners = config.binds().map(|bind| {
            let bound = inherited.bind(bind, config.keepalive_s);
            bound.map_err(|error| not_bound(LISTENING, bind, &error))
        });
        Ok(Listening {
            metrics,
            listeners: listeners.collect::<Result<_>>()?,
        })
    }

    /// All of them, to be handed on.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.metrics.iter().chain(&self.listeners).map(Bound::as_fd)
    }

    /// Those of them that the thread with this number accepts from, of so many threads, for the runtime at hand. Each has one thread,
    /// which gives clients to all: where several wait at one socket, a client that comes wakes them all.
    pub(crate) fn here(&self, thread: usize, threads: usize) -> io::Result<Acceptors> {
        let metrics = self.metrics.as_ref().filter(|_| thread == 0);
        let listeners = self.listeners.iter().enumerate();
        let ours = listeners.filter(|(index, _)| index.checked_rem(threads) == Some(thread));
        Ok(Acceptors {
            metrics: metrics.map(Bound::here).transpose()?,
            listeners: ours
                .map(|(index, bound)| Ok((index, bound.here()?)))
                .collect::<io::Result<_>>()?,
        })
    }
}

/// What the configuration names to be bound, and what for.
fn all_of(config: &Config) -> impl Iterator<Item = (&'static str, &str)> {
    let listeners = config.binds().map(|bind| (LISTENING, bind));
    let metrics = config.metrics.as_deref().map(|bind| (METRICS, bind));
    metrics.into_iter().chain(listeners)
}

/// Why the program would not start on this machine: addresses that it does not have, and paths where a file is in the way of a socket. Whether a port
/// or a socket is free is not asked, since it may be the program itself that has it; nor whether a socket's directory is there, since a service manager
/// may make it with the start.
#[must_use]
pub fn addresses_missing(config: &Config) -> Vec<String> {
    let missing = all_of(config).filter_map(|(what, bind)| {
        let error = is_address_here(bind).err()?;
        Some(not_bound(what, bind, &error).to_string())
    });
    missing.collect()
}

/// Why a socket is not there, with what to look at.
fn not_bound(what: &str, bind: &str, error: &io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse if bind.starts_with("unix:") => {
            " (another program has it: ss -lxp shows which; where that is a keywright, SIGUSR2 has a new one take over)"
        }
        io::ErrorKind::AddrInUse => {
            " (another program has it: ss -ltnp shows which; where that is a keywright, SIGUSR2 has a new one take over)"
        }
        io::ErrorKind::AddrNotAvailable => {
            " (this machine has no such address: ip addr shows which it has)"
        }
        io::ErrorKind::PermissionDenied => {
            " (ports below 1024 are root's, and a socket's directory must be writable for the program)"
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => " (is its directory there?)",
        io::ErrorKind::AlreadyExists => " (remove it, or name another path)",
        _ => "",
    };
    anyhow::anyhow!("{what} on {bind}: {error}{hint}")
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use socket2::SockRef;

    use super::{Bound, InheritedSockets, addresses_missing};
    use crate::config::Config;
    use crate::connection::acceptor::Accepted;

    #[test]
    fn addresses_of_other_machines_are_missing_and_ports_in_use_are_not() -> anyhow::Result<()> {
        let in_use = Bound::bind("127.0.0.1:0")?;
        let port = |bind: &str| {
            format!(
                "[[listener]]\nprotocol = \"redis\"\nbind = \"{bind}\"\nusers = true\nusers_without_tls = true\nkeys = {{ id = \"uuid_v7\" }}\n"
            )
        };
        // RFC 5737: nobody has it.
        let ports = [port(&in_use.name()), port("192.0.2.1:6399")].concat();
        let store = "[store]\nurl = \"mysql://keywright@127.0.0.1:3306/keywright\"\n";
        let missing = addresses_missing(&Config::parse(&format!("{store}{ports}"))?);
        let [told] = missing.as_slice() else {
            panic!("{missing:?}");
        };
        assert!(told.starts_with("listening on 192.0.2.1:6399: "), "{told}");
        assert!(told.contains("this machine has no such address"), "{told}");
        Ok(())
    }

    #[test]
    fn paths_where_no_socket_can_be_are_told() -> anyhow::Result<()> {
        let name = format!("keywright-paths-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory)?;
        let path = |name: &str| format!("unix:{}", directory.join(name).display());
        let in_use = Bound::bind(&path("in-use"))?;
        std::fs::write(directory.join("file"), "")?;
        let port = |name: &str| {
            let bind = path(name);
            format!(
                "[[listener]]\nprotocol = \"redis\"\nbind = \"{bind}\"\nkeys = {{ id = \"uuid_v7\" }}\n"
            )
        };
        let store = "[store]\nurl = \"mysql://keywright@127.0.0.1:3306/keywright\"\n";
        let (no_directory, no_socket) = (
            Some("is its directory there?"),
            Some("something that is no socket is there"),
        );
        // What is told before the start, and why the program then does not start.
        for (name, part, refusal) in [
            ("new", None, None),
            ("in-use", None, Some("another program has it")),
            // It may be made with the start, as a unit's RuntimeDirectory is.
            ("nowhere/socket", None, no_directory),
            ("file/socket", no_directory, no_directory),
            ("file", no_socket, no_socket),
        ] {
            let config = Config::parse(&format!("{store}{}", port(name)))?;
            let told = addresses_missing(&config);
            match (told.as_slice(), part) {
                ([], None) => {}
                ([told], Some(part)) => assert!(told.contains(part), "{told}"),
                _ => panic!("{name}: {told:?}"),
            }
            let inherited = InheritedSockets::default();
            match (inherited.see_that_the_rest_can_be_bound(&config), refusal) {
                (Ok(()), None) => {}
                (Err(error), Some(refusal)) => {
                    assert!(error.to_string().contains(refusal), "{error}");
                }
                (outcome, _) => panic!("{name}: {outcome:?}"),
            }
            assert_eq!(Bound::bind(&path(name)).is_ok(), name == "new", "{name}");
        }
        drop(in_use);
        std::fs::remove_dir_all(directory)?;
        Ok(())
    }

    /// Whoever checks may be another user than the program runs as. Root may look everywhere.
    #[test]
    fn a_directory_where_nobody_may_look_is_not_told() -> anyhow::Result<()> {
        let name = format!("keywright-shut-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory)?;
        std::fs::set_permissions(&directory, Permissions::from_mode(0o000))?;
        let bind = format!("unix:{}", directory.join("socket").display());
        let file = format!(
            "[store]\nurl = \"mysql://keywright@127.0.0.1:3306/keywright\"\n\
             [[listener]]\nprotocol = \"redis\"\nbind = \"{bind}\"\nkeys = {{ id = \"uuid_v7\" }}\n"
        );
        let told = addresses_missing(&Config::parse(&file)?);
        assert!(told.is_empty(), "{told:?}");
        std::fs::remove_dir(directory)?;
        Ok(())
    }

    /// No call for each client, and no setting of whoever made the socket.
    #[tokio::test]
    async fn clients_take_over_what_is_set_on_the_socket_that_they_come_to() -> std::io::Result<()>
    {
        for keepalive_s in [20, 0] {
            let handed_over = Bound::bind("127.0.0.1:0")?;
            handed_over.hand_down(40)?;
            let address = handed_over.name();
            let mut inherited = InheritedSockets(vec![handed_over]);
            let bound = inherited.bind(&address, keepalive_s)?;
            let _client = std::net::TcpStream::connect(&address)?;
            let accepted = bound.here()?.accept().await?;
            let Accepted::Tcp(accepted, from) = accepted else {
                panic!("{accepted:?}");
            };
            assert_eq!(from, accepted.peer_addr()?);
            let socket = SockRef::from(&accepted);
            assert!(socket.tcp_nodelay()?);
            assert!(socket.nonblocking()?);
            assert_eq!(socket.keepalive()?, keepalive_s != 0);
            if keepalive_s != 0 {
                assert_eq!(socket.tcp_keepalive_time()?, Duration::from_secs(20));
                assert_eq!(socket.tcp_keepalive_interval()?, Duration::from_secs(5));
                assert_eq!(socket.tcp_keepalive_retries()?, 4);
            }
        }
        Ok(())
    }

    #[test]
    fn sockets_that_were_handed_over_are_found_by_their_addresses() -> std::io::Result<()> {
        let file = format!("keywright-handed-{}.socket", std::process::id());
        let path = std::env::temp_dir().join(file);
        let unix = format!("unix:{}", path.display());
        let (tcp, other) = (Bound::bind("127.0.0.1:0")?, Bound::bind("127.0.0.1:0")?);
        let (address, left) = (tcp.name(), other.name());
        let mut inherited = InheritedSockets(vec![other, Bound::bind(&unix)?, tcp]);
        let port = address.trim_start_matches("127.0.0.1:");
        // Anew neither could be bound.
        let found = inherited.bind(&format!("localhost:{port}"), 0)?;
        assert_eq!(found.name(), address);
        assert_eq!(inherited.bind(&unix, 0)?.name(), unix);
        assert_eq!(inherited.left(), [left]);
        // It was taken, and is in use.
        assert!(inherited.bind(&address, 0).is_err());
        let new = inherited.bind("127.0.0.1:0", 0)?.name();
        assert!(!inherited.left().contains(&new));
        std::fs::remove_file(path)
    }
}
