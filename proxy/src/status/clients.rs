//! Who is connected, and whether the server behind a listener can be reached: figures by listener.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A place where clients come in, and the server behind it.
#[derive(Debug)]
pub struct ListenerFigures {
    /// `address:port` or `unix:/path`.
    pub bind: String,
    /// The same.
    pub upstream: String,
    is_up: AtomicU8,
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
}

/// Nobody has asked yet.
const UNKNOWN: u8 = 0;
const DOWN: u8 = 1;
const UP: u8 = 2;
/// The version of a client in passthrough.
const UNREAD: u64 = u64::MAX;

/// What a client's statements go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// The configuration in force.
    Current,
    /// An earlier one: the client is in a transaction, or in a command, or sends nothing.
    Earlier,
    /// None: when it connected there were no rules, so it is in passthrough.
    Nothing,
}

impl Follows {
    /// All of them.
    pub const ALL: [Follows; 3] = [Follows::Current, Follows::Earlier, Follows::Nothing];

    /// The label.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Follows::Current => "current",
            Follows::Earlier => "earlier",
            Follows::Nothing => "none",
        }
    }
}

/// A client that has logged in.
#[derive(Debug)]
pub struct Client {
    /// The number that log lines carry.
    pub(crate) number: u64,
    /// Where it comes from; `None`: over a UNIX socket.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) since: Instant,
    /// The number of its connection on the server; 0: it is not known.
    pub(crate) on_server: u32,
    user: Mutex<Box<[u8]>>,
    version: AtomicU64,
    /// Since when it uses tables on which others wait.
    waited_for: Mutex<Option<Instant>>,
}

impl Client {
    /// It has just logged in. `on_server`: the number of its connection there; 0: it is not known.
    pub fn new(number: u64, address: Option<SocketAddr>, (user, on_server): (&[u8], u32)) -> Self {
        Self {
            number,
            address,
            since: Instant::now(),
            on_server,
            user: Mutex::new(user.into()),
            version: AtomicU64::new(UNREAD),
            waited_for: Mutex::default(),
        }
    }

    /// Since when a switch may wait for it. Of one in passthrough nobody knows what it uses.
    pub(crate) fn waited_for(&self) -> Option<Instant> {
        match self.version.load(Ordering::Relaxed) {
            UNREAD => Some(self.since),
            _ => *locked(&self.waited_for),
        }
    }

    /// Its user, as it was named.
    pub(crate) fn user(&self) -> String {
        String::from_utf8_lossy(&locked(&self.user)).into_owned()
    }

    /// What it goes by, where this version is in force.
    pub(crate) fn follows(&self, in_force: u64) -> Follows {
        match self.version.load(Ordering::Relaxed) {
            UNREAD => Follows::Nothing,
            version if version == in_force => Follows::Current,
            _ => Follows::Earlier,
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ListenerFigures {
    pub(crate) fn new(bind: &str, upstream: &str) -> Self {
        Self {
            bind: bind.to_owned(),
            upstream: upstream.to_owned(),
            is_up: AtomicU8::new(UNKNOWN),
            clients: Mutex::default(),
        }
    }

    /// The server was asked for a connection, and greeted, or did not.
    pub fn tried(&self, is_up: bool) {
        let state = if is_up { UP } else { DOWN };
        self.is_up.store(state, Ordering::Relaxed);
    }

    /// Whether the server greeted when it was last connected to; `None`: it never was.
    #[must_use]
    pub fn is_up(&self) -> Option<bool> {
        match self.is_up.load(Ordering::Relaxed) {
            UP => Some(true),
            DOWN => Some(false),
            _ => None,
        }
    }

    /// Clients, in the order in which they came.
    pub(crate) fn clients(&self) -> Vec<Arc<Client>> {
        locked(&self.clients).values().map(Arc::clone).collect()
    }

    /// A client has logged in. It is listed until the answer is dropped.
    pub fn enter(self: &Arc<Self>, client: Client) -> Entered {
        let client = Arc::new(client);
        locked(&self.clients).insert(client.number, Arc::clone(&client));
        Entered {
            listener: Arc::clone(self),
            client,
        }
    }
}

/// That a client is listed.
#[derive(Debug)]
pub struct Entered {
    listener: Arc<ListenerFigures>,
    client: Arc<Client>,
}

impl Entered {
    /// It follows this version of the rules; `None`: it is in passthrough.
    pub(crate) fn follows(&self, version: Option<u64>) {
        self.client
            .version
            .store(version.unwrap_or(UNREAD), Ordering::Relaxed);
    }

    /// Since when it uses tables on which others wait; `None`: nobody waits for it.
    pub(crate) fn is_waited_for(&self, since: Option<Instant>) {
        *locked(&self.client.waited_for) = since;
    }

    /// It has become another user.
    pub(crate) fn is_user(&self, user: &[u8]) {
        *locked(&self.client.user) = user.into();
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        locked(&self.listener.clients).remove(&self.client.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_listed_until_they_end() {
        let listener = Arc::new(ListenerFigures::new("127.0.0.1:6033", "127.0.0.1:3306"));
        assert_eq!(listener.is_up(), None);
        listener.tried(true);
        listener.tried(false);
        assert_eq!(listener.is_up(), Some(false));
        let second = listener.enter(Client::new(2, None, (b"shop", 0)));
        let first = listener.enter(Client::new(1, None, (b"root", 0)));
        let follows = |in_force| {
            let clients = listener.clients();
            let all = clients.iter().map(|of| (of.number, of.follows(in_force)));
            all.collect::<Vec<_>>()
        };
        assert_eq!(follows(7), [(1, Follows::Nothing), (2, Follows::Nothing)]);
        second.follows(Some(7));
        second.is_user(b"report");
        assert_eq!(follows(7), [(1, Follows::Nothing), (2, Follows::Current)]);
        drop(first);
        assert_eq!(follows(8), [(2, Follows::Earlier)]);
        assert_eq!(
            listener.clients().first().map(|of| of.user()),
            Some("report".to_owned())
        );
        drop(second);
        assert!(listener.clients().is_empty());
    }
}
