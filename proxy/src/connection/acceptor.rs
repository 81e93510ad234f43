//! Sockets that listen, over TCP and UNIX sockets as one: bound once, accepted from by any thread.

use std::fs::{File, Permissions};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpStream, UnixStream};

use crate::connection::keepalive::keep_alive;
use crate::connection::stream::Stream;

/// Who may connect to a UNIX socket: everybody, since clients run as users of their own.
const SOCKET_MODE: u32 = 0o777;
/// Connections over TCP that wait until they are accepted; the system allows fewer where `net.core.somaxconn` is less. Those beyond come again after a
/// second, and more.
const WAITING_CONNECTIONS_MAX: i32 = 4_096;

/// A bound socket, to be accepted from by several threads.
#[derive(Debug)]
pub enum Bound {
    /// Over TCP.
    Tcp(std::net::TcpListener),
    /// Over a UNIX socket.
    Unix(std::os::unix::net::UnixListener),
}

impl Bound {
    /// Binds `address:port` or `unix:/path`. A socket file that nobody listens on is replaced; a new one is for every user of
    /// this machine who reaches its directory, as the servers' own are.
    ///
    /// # Errors
    /// It is in use, or not ours to bind.
    pub fn bind(target: &str) -> io::Result<Bound> {
        match target.strip_prefix("unix:") {
            Some(path) => {
                can_be_a_socket(path)?;
                if is_left_over(path) {
                    std::fs::remove_file(path)?;
                }
                let bound = std::os::unix::net::UnixListener::bind(path)?;
                open_to_everybody(path)?;
                bound.set_nonblocking(true)?;
                Ok(Bound::Unix(bound))
            }
            None => {
                let bound = std::net::TcpListener::bind(target)?;
                // Anew: it waits with 128. A socket that is handed over has what whoever made it wanted.
                SockRef::from(&bound).listen(WAITING_CONNECTIONS_MAX)?;
                bound.set_nonblocking(true)?;
                Ok(Bound::Tcp(bound))
            }
        }
    }

    /// Has it never wait for a client, as a runtime needs it; whoever made it may have left it otherwise.
    pub(crate) fn never_wait(&self) -> io::Result<()> {
        match self {
            Bound::Tcp(bound) => bound.set_nonblocking(true),
            Bound::Unix(bound) => bound.set_nonblocking(true),
        }
    }

    /// Sets what accepted connections are to have, which they take over from it: packets go out at once, and a silent client is asked
    /// whether it is there after so long, seconds; 0: never. Whoever made it may have set something else.
    pub(crate) fn hand_down(&self, keepalive_s: u32) -> io::Result<()> {
        match self {
            Bound::Tcp(bound) => {
                let socket = SockRef::from(bound);
                socket.set_tcp_nodelay(true)?;
                keep_alive(&socket, keepalive_s)
            }
            Bound::Unix(_) => Ok(()),
        }
    }

    /// Whether it is what [`Bound::bind`] would bind.
    pub(crate) fn is_at(&self, target: &str) -> bool {
        match (self, target.strip_prefix("unix:")) {
            (Bound::Unix(bound), Some(path)) => bound
                .local_addr()
                .is_ok_and(|address| address.as_pathname() == Some(Path::new(path))),
            (Bound::Tcp(bound), None) => match (bound.local_addr(), target.to_socket_addrs()) {
                (Ok(address), Ok(mut wanted)) => wanted.any(|wanted| wanted == address),
                (Err(_), _) | (_, Err(_)) => false,
            },
            (Bound::Unix(_), None) | (Bound::Tcp(_), Some(_)) => false,
        }
    }

    /// Its address, for people.
    pub(crate) fn name(&self) -> String {
        let unknown = |error: io::Error| format!("a socket ({error})");
        match self {
            Bound::Tcp(bound) => bound
                .local_addr()
                .map_or_else(unknown, |address| address.to_string()),
            Bound::Unix(bound) => bound.local_addr().map_or_else(unknown, |address| {
                let path = address.as_pathname().unwrap_or(Path::new(""));
                format!("unix:{}", path.display())
            }),
        }
    }

    /// The same socket for this thread's runtime.
    ///
    /// # Errors
    /// Too many open files.
    pub fn here(&self) -> io::Result<Acceptor> {
        Ok(match self {
            Bound::Tcp(bound) => {
                let listener = mio::net::TcpListener::from_std(bound.try_clone()?);
                Acceptor::Tcp(readable(listener)?)
            }
            Bound::Unix(bound) => {
                let listener = mio::net::UnixListener::from_std(bound.try_clone()?);
                Acceptor::Unix(readable(listener)?)
            }
        })
    }
}

impl AsFd for Bound {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Bound::Tcp(bound) => bound.as_fd(),
            Bound::Unix(bound) => bound.as_fd(),
        }
    }
}

/// That [`Bound::bind`] would bind it. Nobody can connect to it by that yet.
///
/// # Errors
/// It is in use, or not ours to bind.
pub(crate) fn can_be_bound(target: &str) -> io::Result<()> {
    if let Some(path) = target.strip_prefix("unix:") {
        can_be_a_socket(path)?;
        return match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
            Err(_) => Ok(()),
        };
    }
    bind_one_of(addresses_of(target)?)
}

/// That this machine has the address, whoever listens at its port, or that nothing is in the way of a socket at the path: its directory may
/// be made with the start of the program only, as a service manager makes it, and may be one where whoever asks may not look.
///
/// # Errors
/// It has none such, the name leads nowhere, or a file that is no socket is at the path, or in the place of a directory.
pub(crate) fn is_address_here(target: &str) -> io::Result<()> {
    if let Some(path) = target.strip_prefix("unix:") {
        let may_be_there_later = |kind| {
            matches!(
                kind,
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            )
        };
        return match can_be_a_socket(path) {
            Err(error) if may_be_there_later(error.kind()) => Ok(()),
            outcome => outcome,
        };
    }
    let addresses = addresses_of(target)?;
    bind_one_of(addresses.map(|mut address| {
        address.set_port(0);
        address
    }))
}

fn addresses_of(target: &str) -> io::Result<impl Iterator<Item = SocketAddr>> {
    target.to_socket_addrs().map_err(|error| {
        let told = format!("it is no address, and as a name leads to none: {error}");
        io::Error::new(error.kind(), told)
    })
}

/// One of them is enough.
fn bind_one_of(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<()> {
    let bind = |address: SocketAddr| {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())
    };
    let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in addresses {
        outcome = bind(address);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// That a socket is at the path, or could be.
fn can_be_a_socket(path: &str) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(file) if file.file_type().is_socket() => Ok(()),
        Ok(_) => {
            let what = "something that is no socket is there";
            Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The root has none, and is there.
            let directory = Path::new(path).parent().unwrap_or(Path::new("/"));
            directory.metadata().map(drop)
        }
        Err(error) => Err(error),
    }
}

/// Whether a socket was left there by a process that is gone.
fn is_left_over(path: &str) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && std::os::unix::net::UnixStream::connect(path).is_err_and(refused)
}

/// Changes the mode of the socket that was just bound there. Whatever somebody has put in its place since, such as a link to another file, stays as it is.
fn open_to_everybody(path: &str) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.file_type().is_socket() {
        let what = "somebody has put something else in the place of the socket";
        return Err(io::Error::other(what));
    }
    let mode = Permissions::from_mode(SOCKET_MODE);
    let here = format!("/proc/self/fd/{}", file.as_raw_fd());
    match std::fs::set_permissions(here, mode.clone()) {
        // There is no /proc.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::set_permissions(path, mode)
        }
        outcome => outcome,
    }
}

/// A listener that is waited for in the runtime at hand.
#[expect(
    deprecated,
    reason = "its successor is unsafe, since a descriptor might be closed early; listeners own theirs"
)]
fn readable<T: AsRawFd>(listener: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(listener, Interest::READABLE)
}

/// Accepts clients on one thread.
#[derive(Debug)]
pub enum Acceptor {
    /// Over TCP.
    Tcp(AsyncFd<mio::net::TcpListener>),
    /// Over a UNIX socket.
    Unix(AsyncFd<mio::net::UnixListener>),
}

impl Acceptor {
    /// The next client, for any thread: no runtime knows of it yet.
    ///
    /// # Errors
    /// Too many open files.
    pub async fn accept(&self) -> io::Result<Accepted> {
        Ok(match self {
            Acceptor::Tcp(listener) => {
                let accept = |listener: &mio::net::TcpListener| listener.accept();
                let (stream, address) = listener.async_io(Interest::READABLE, accept).await?;
                Accepted::Tcp(stream.into(), address)
            }
            Acceptor::Unix(listener) => {
                let accept = |listener: &mio::net::UnixListener| listener.accept();
                let (stream, _) = listener.async_io(Interest::READABLE, accept).await?;
                Accepted::Unix(stream.into())
            }
        })
    }
}

/// A client that no thread serves yet.
#[derive(Debug)]
pub enum Accepted {
    /// Over TCP, from there.
    Tcp(std::net::TcpStream, SocketAddr),
    /// Over a UNIX socket.
    Unix(std::os::unix::net::UnixStream),
}

impl Accepted {
    /// Where it comes from; `None` for a UNIX socket.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Accepted::Tcp(_, address) => Some(*address),
            Accepted::Unix(_) => None,
        }
    }

    /// The connection for this thread's runtime.
    ///
    /// # Errors
    /// It is broken, or there are too many.
    pub fn here(self) -> io::Result<Stream> {
        Ok(match self {
            Accepted::Tcp(stream, _) => Stream::Tcp(TcpStream::from_std(stream)?),
            Accepted::Unix(stream) => Stream::Unix(UnixStream::from_std(stream)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::net::TcpStream;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Duration;

    use super::{Bound, open_to_everybody};

    /// Where others may write into the directory, one may come between.
    #[test]
    fn what_a_link_leads_to_keeps_its_mode() -> std::io::Result<()> {
        let name = format!("keywright-link-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory)?;
        let (file, link) = (directory.join("file"), directory.join("link"));
        std::fs::write(&file, "")?;
        std::fs::set_permissions(&file, Permissions::from_mode(0o600))?;
        symlink(&file, &link)?;
        for path in [&link, &file] {
            assert!(open_to_everybody(&path.display().to_string()).is_err());
        }
        let mode = file.metadata()?.permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{mode:o}");
        std::fs::remove_dir_all(directory)
    }

    /// As after a break of the network, when everybody connects again.
    #[test]
    fn clients_that_come_all_at_once_wait_until_they_are_accepted() -> std::io::Result<()> {
        const CLIENTS: usize = 300;
        let of_system = std::fs::read_to_string("/proc/sys/net/core/somaxconn")?;
        let clients = of_system
            .trim()
            .parse()
            .map_or(CLIENTS, |most: usize| most.min(CLIENTS));
        let bound = Bound::bind("127.0.0.1:0")?;
        let Bound::Tcp(listener) = &bound else {
            panic!("{bound:?}");
        };
        let address = listener.local_addr()?;
        // One that finds no place is not answered.
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(30));
        let waiting: Vec<TcpStream> = (0..clients).map(connect).collect::<Result<_, _>>()?;
        assert_eq!(waiting.len(), clients);
        Ok(())
    }

    #[test]
    fn a_socket_is_for_every_user_also_where_one_was_left_over() -> std::io::Result<()> {
        let name = format!("keywright-{}.socket", std::process::id());
        let path = std::env::temp_dir().join(name);
        let target = format!("unix:{}", path.display());
        for _ in 0..2 {
            let bound = Bound::bind(&target)?;
            let mode = path.metadata()?.permissions().mode();
            assert_eq!(mode & 0o777, 0o777, "{mode:o}");
            assert!(Bound::bind(&target).is_err(), "somebody listens there");
            drop(bound);
        }
        std::fs::remove_file(path)
    }
}
