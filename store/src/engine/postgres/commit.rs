//! Whether a transaction was committed.
//!
//! COMMIT of a transaction that has failed answers ROLLBACK, which is no error to the driver; so a SELECT goes before it, which fails then. A
//! commit whose wait for a synchronous standby was cancelled succeeds with a warning; the driver hands warnings to whoever drives the
//! connection, before the answer to which they belong.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::error::Severity;
use tokio_postgres::{AsyncMessage, Client, Connection};

use crate::engine::error::StoreError;

/// Drives a connection until it ends, and counts warnings.
pub(super) async fn watch<S, T>(mut connection: Connection<S, T>, warnings: Arc<AtomicU64>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => {
                if notice.parsed_severity() == Some(Severity::Warning) {
                    warnings.fetch_add(1, Ordering::AcqRel);
                    tracing::warn!(
                        code = notice.code().code(),
                        "the store warns: {}",
                        notice.message()
                    );
                }
            }
            Ok(_) => {}
            // Whoever asked something of it is told.
            Err(_) => return,
        }
    }
}

/// Any error, a warning too, leaves it open what became of the transaction.
pub(super) async fn commit(client: &Client, warnings: &AtomicU64) -> Result<(), StoreError> {
    let before = warnings.load(Ordering::Acquire);
    client.simple_query("SELECT 1; COMMIT").await?;
    match warnings.load(Ordering::Acquire) == before {
        true => Ok(()),
        false => Err(StoreError::Warned),
    }
}
