//! The end of a client's connection.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::stream::Stream;

/// How long a client that is to go may take to read its last bytes and to go, milliseconds.
const LINGER_MS_MAX: u64 = 500;

/// Tells a client that nothing more comes, and takes what it still sends: a socket that is closed with bytes unread resets the
/// connection, and the client never reads why.
///
/// # Errors
/// The connection broke.
pub(crate) async fn linger(mut client: Stream) -> io::Result<()> {
    let gone = async {
        client.shutdown().await?;
        let sent = tokio::io::copy(&mut client, &mut tokio::io::sink()).await;
        sent.map(drop)
    };
    timeout(Duration::from_millis(LINGER_MS_MAX), gone)
        .await
        .unwrap_or(Ok(()))
}
