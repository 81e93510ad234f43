//! TCP and UNIX sockets, with and without TLS, as one.

use std::fs::Permissions;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ServerConfig;
use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::config::tls::UpstreamTls;
use crate::connection::keepalive::keep_alive;

/// Who may connect to a UNIX socket: everybody, since clients run as users of their own.
const SOCKET_MODE: u32 = 0o777;
/// Linux's MSG_MORE: nothing goes out before the rest, or the end.
const MSG_MORE: i32 = 0x8000;
/// Linux's MSG_NOSIGNAL: an error instead of SIGPIPE.
const MSG_NOSIGNAL: i32 = 0x4000;

/// A connection to a client or an upstream.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a UNIX socket.
    Unix(UnixStream),
    /// Over TLS on one of these.
    Tls(Box<TlsStream<Stream>>),
}

impl Stream {
    /// Speaks TLS as the server of this connection.
    ///
    /// # Errors
    /// The other side broke it off, or cannot do what we insist on.
    pub async fn accept_tls(self, config: &Arc<ServerConfig>) -> io::Result<Stream> {
        let acceptor = TlsAcceptor::from(Arc::clone(config));
        let stream = acceptor.accept(self).await?;
        Ok(Stream::Tls(Box::new(stream.into())))
    }

    /// Speaks TLS as its client.
    ///
    /// # Errors
    /// As [`Stream::accept_tls`], or the server is not whom it should be.
    pub async fn connect_tls(self, upstream_tls: &UpstreamTls) -> io::Result<Stream> {
        let connector = TlsConnector::from(Arc::clone(&upstream_tls.config));
        let stream = connector.connect(upstream_tls.name.clone(), self).await?;
        Ok(Stream::Tls(Box::new(stream.into())))
    }

    /// Whether something may be there to be read, which costs no system call. What TLS has taken off the socket is not known here.
    pub(crate) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => stream.poll_read_ready(context),
            Stream::Unix(stream) => stream.poll_read_ready(context),
            Stream::Tls(_) => Poll::Ready(Ok(())),
        }
    }

    /// Whether all was read up to the peer's end, which is known by then: to read the end itself would be one more system call.
    pub(crate) fn is_at_end(&self, context: &mut Context<'_>) -> bool {
        match self {
            Stream::Tcp(stream) => is_closed(stream.ready(Interest::READABLE), context),
            Stream::Unix(stream) => is_closed(stream.ready(Interest::READABLE), context),
            Stream::Tls(_) => false,
        }
    }

    /// Whether what is sent is encrypted.
    pub fn has_tls(&self) -> bool {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => false,
            Stream::Tls(_) => true,
        }
    }

    /// Whether what is sent stays on this machine, and the other side can see which user of it we are.
    pub fn is_local(&self) -> bool {
        match self {
            Stream::Tcp(_) => false,
            Stream::Unix(_) => true,
            Stream::Tls(stream) => stream.get_ref().0.is_local(),
        }
    }

    /// The TCP connection that it is or is spoken on.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Stream::Tcp(stream) => Some(stream),
            Stream::Unix(_) => None,
            Stream::Tls(stream) => stream.get_ref().0.tcp(),
        }
    }

    /// Has the system ask a peer that was silent for so long whether it is there, seconds; 0: never.
    pub(crate) fn keep_alive(&self, after_s: u32) -> io::Result<()> {
        self.tcp()
            .map_or(Ok(()), |stream| keep_alive(&SockRef::from(stream), after_s))
    }

    /// Writes the last bytes before the connection is closed: over TCP they wait for its end, and go out in the same segment.
    pub(crate) fn poll_write_last(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Stream::Tcp(stream) = self else {
            return Pin::new(self).poll_write(context, bytes);
        };
        let flags = MSG_MORE | MSG_NOSIGNAL;
        loop {
            ready!(stream.poll_write_ready(context))?;
            let socket = SockRef::from(&*stream);
            let send = || socket.send_with_flags(bytes, flags);
            match stream.try_io(Interest::WRITABLE, send) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    /// Connects to `address:port` or `unix:/path`. Whether somebody listens at an address the first read or write may be the one to
    /// tell: a server speaks first, and a wait for the connection alone would wake the task once more.
    ///
    /// # Errors
    /// Nobody listens there.
    pub async fn connect(target: &str) -> io::Result<Stream> {
        if let Some(path) = target.strip_prefix("unix:") {
            return Ok(Stream::Unix(UnixStream::connect(path).await?));
        }
        let stream = match target.parse() {
            Ok(address) => TcpStream::from_std(mio::net::TcpStream::connect(address)?.into())?,
            // Of a name's addresses the first that answers is taken.
            Err(_) => TcpStream::connect(target).await?,
        };
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }
}

/// Whether nothing is to be read any more: what is there to be read is said beside the end.
fn is_closed(ready: impl Future<Output = io::Result<Ready>>, context: &mut Context<'_>) -> bool {
    let ready = pin!(ready).poll(context);
    matches!(ready, Poll::Ready(Ok(Ready::READ_CLOSED)))
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, into),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, into),
            Stream::Tls(stream) => {
                match ready!(Pin::new(stream.as_mut()).poll_read(context, into)) {
                    // Peers leave without TLS's own goodbye. Packets say how long they are, so nothing is cut unseen.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        Poll::Ready(Ok(()))
                    }
                    outcome => Poll::Ready(outcome),
                }
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}

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
                if is_left_over(path) {
                    std::fs::remove_file(path)?;
                }
                let bound = std::os::unix::net::UnixListener::bind(path)?;
                std::fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
                bound.set_nonblocking(true)?;
                Ok(Bound::Unix(bound))
            }
            None => {
                let bound = std::net::TcpListener::bind(target)?;
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
        return match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
            Err(_) => Ok(()),
        };
    }
    bind_one_of(target.to_socket_addrs()?)
}

/// That this machine has the address, whoever listens at its port.
///
/// # Errors
/// It has none such, or the name leads nowhere.
pub(crate) fn is_address_here(target: &str) -> io::Result<()> {
    if target.starts_with("unix:") {
        return Ok(());
    }
    let addresses = target.to_socket_addrs()?;
    bind_one_of(addresses.map(|address| SocketAddr::new(address.ip(), 0)))
}

/// One of them is enough.
fn bind_one_of(addresses: impl Iterator<Item = SocketAddr>) -> io::Result<()> {
    let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in addresses {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        outcome = socket.bind(&address.into());
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Whether a socket was left there by a process that is gone.
fn is_left_over(path: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && std::os::unix::net::UnixStream::connect(path).is_err_and(refused)
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
    use std::os::unix::fs::PermissionsExt;

    use super::Bound;

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
