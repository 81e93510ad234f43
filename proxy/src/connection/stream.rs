//! TCP and UNIX sockets, with and without TLS, as one.

use std::future::pending;
use std::io;
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ServerConfig;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::config::tls::UpstreamTls;
use crate::connection::keepalive::keep_alive;

/// Linux's MSG_MORE: nothing goes out before the rest, or the end.
const MSG_MORE: i32 = 0x8000;
/// Linux's MSG_NOSIGNAL: an error instead of SIGPIPE.
const MSG_NOSIGNAL: i32 = 0x4000;
/// The peer's end without what is to be read before it. Sockets are not registered for bytes out of band, so that the end is all that comes of it.
const ENDED: Interest = Interest::PRIORITY;

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

    /// Waits for what a statement of this client needs before anything of it goes out; `None`: the client has ended meanwhile. The server's connection goes with
    /// it, as the server itself ends a statement that waits for a table's lock for a client that is gone: clients that give up and come again would else
    /// take up more and more of its connections. A client that has only closed its sending side looks the same.
    pub(crate) async fn while_there<T>(&self, awaited: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.ended() => None,
            came = awaited => Some(came),
        }
    }

    /// Returns when the peer has ended, or the connection broke. What is there to be read before stays there, and wakes nobody. With TLS it is the end of
    /// the connection that it is spoken on.
    async fn ended(&self) {
        // An error is the runtime's end.
        let _ = match self.innermost() {
            Stream::Tcp(stream) => stream.ready(ENDED).await,
            Stream::Unix(stream) => stream.ready(ENDED).await,
            Stream::Tls(_) => pending().await,
        };
    }

    /// Tells a server that nothing more comes, and goes on reading. All that was written must have been flushed.
    ///
    /// TLS says no goodbye, as drivers say none. A server that executes a statement asks the socket whether its client is still there, and bytes that it
    /// has not read count as a client: with a goodbye it would go on, and wait for a table's lock, for as long as that takes.
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) fn end_sending(&self) -> io::Result<()> {
        match self.innermost() {
            Stream::Tcp(stream) => SockRef::from(stream).shutdown(Shutdown::Write),
            Stream::Unix(stream) => SockRef::from(stream).shutdown(Shutdown::Write),
            // There is always one that TLS is spoken on.
            Stream::Tls(_) => Ok(()),
        }
    }

    /// The connection that TLS is spoken on, or this one.
    fn innermost(&self) -> &Stream {
        let mut plain = self;
        while let Stream::Tls(stream) = plain {
            plain = stream.get_ref().0;
        }
        plain
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
