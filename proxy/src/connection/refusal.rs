//! What a client is told that is not served.

use keywright_core::Cause;
use tokio::io::AsyncWriteExt;

use crate::connection::linger::linger;
use crate::connection::stream::Stream;

/// Tells a client why it is not served. Before the greeting there is no SQLSTATE in an error.
pub(crate) async fn refuse(mut client: Stream, cause: Cause, message: &str) -> std::io::Result<()> {
    let mut payload = vec![0xFF];
    payload.extend(cause.mysql_errno().to_le_bytes());
    payload.extend_from_slice(message.as_bytes());
    payload.truncate(usize::from(u8::MAX));
    let len = u8::try_from(payload.len()).unwrap_or(u8::MAX);
    payload.splice(..0, [len, 0, 0, 0]);
    client.write_all(&payload).await?;
    linger(client).await
}
