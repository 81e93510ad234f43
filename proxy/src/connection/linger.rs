//! The end of a client's connection.

use std::io;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::connection::stream::Stream;

/// How long a client that is to go may take to read its last bytes and to go, milliseconds.
const LINGER_MS_MAX: u64 = 500;
/// So much of what it still sends is taken at a time, bytes.
const REST_BYTES: usize = 1 << 10;
const LINGER: Duration = Duration::from_millis(LINGER_MS_MAX);

/// Tells a client that nothing more comes, and takes what it still sends: a socket that is closed with bytes unread resets the
/// connection, and the client never reads why.
///
/// # Errors
/// The connection broke.
pub(crate) async fn linger(mut client: Stream) -> io::Result<()> {
    let gone = async {
        client.shutdown().await?;
        take_the_rest(&mut client).await
    };
    timeout(LINGER, gone).await.unwrap_or(Ok(()))
}

/// Ends the connection of a client that does not read: nothing that is said would reach it, and what it sends is not worth taking.
///
/// # Errors
/// The socket refused.
pub(crate) fn abandon(client: Stream) -> io::Result<()> {
    client.tcp().map_or(Ok(()), TcpStream::set_zero_linger)
}

/// Ends a client's connection as the server has ended its own: by a reset, which drivers report otherwise than an orderly end.
///
/// A reset takes along what has not arrived. So the client gets time for its last bytes as when it is told in order, unless the
/// connection is at rest: nothing was sent for longer than that. One that has no room for them is told in order, and so is one on
/// a UNIX socket, which knows no reset. TLS says no goodbye before a reset, on a server's own connections neither.
///
/// # Errors
/// The connection broke.
pub(crate) async fn reset(mut client: Stream, is_at_rest: bool) -> io::Result<()> {
    if client.tcp().is_some()
        && !is_at_rest
        && let Ok(gone) = timeout(LINGER, take_the_rest(&mut client)).await
    {
        gone?;
        return linger(client).await;
    }
    if let Some(socket) = client.tcp()
        && has_sent_all(socket).await.unwrap_or(false)
    {
        return socket.set_zero_linger();
    }
    linger(client).await
}

/// Reads until the other side has ended, and keeps nothing of it.
async fn take_the_rest(client: &mut Stream) -> io::Result<()> {
    let mut nowhere = [0; REST_BYTES];
    while client.read(&mut nowhere).await? > 0 {}
    Ok(())
}

/// Waits until all that was written to a connection is on its way; false if it takes too long.
async fn has_sent_all(socket: &TcpStream) -> io::Result<bool> {
    let options = SockRef::from(socket);
    // The socket takes more only when nothing waits in it, and is asked for that when it is registered anew.
    options.set_tcp_notsent_lowat(1)?;
    let again = TcpStream::from_std(options.try_clone()?.into())?;
    let has_sent = timeout(LINGER, again.writable()).await.is_ok();
    options.set_tcp_notsent_lowat(0)?;
    Ok(has_sent)
}
