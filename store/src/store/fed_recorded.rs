//! What the store has recorded of time that databases are handed.

use keywright_core::key_space_mark;

use super::{Link, Row, StoreError, column};

/// What the store has recorded for all databases that are handed time.
pub(super) struct Recorded {
    pub(super) key_space: String,
    /// What databases keep of it.
    pub(super) mark: u64,
    pub(super) unknown_ms: i64,
    pub(super) unknown_server: String,
    pub(super) ahead_ms: i64,
}

impl Recorded {
    /// Whether what was handed over under this mark was of this store; 0: nobody knows of which.
    pub(super) fn is_of(&self, mark: u64) -> bool {
        mark == self.mark || mark == 0
    }

    /// What may be forgotten is past then.
    pub(super) fn unknown_until_ms(&self) -> i64 {
        self.unknown_ms.saturating_add(self.ahead_ms)
    }

    pub(super) async fn read(link: &mut Link) -> Result<Option<Self>, StoreError> {
        let select = "SELECT key_space_id, unknown_ms, unknown_server, ahead_ms FROM keywright_worker_ids WHERE id = 1";
        let row = link.first(select, Vec::new()).await?;
        let read = |row: &Row| {
            let key_space: String = column(row, "key_space_id")?;
            let bits = u128::from_str_radix(&key_space, 16).map_err(|_| StoreError::Column {
                column: "key_space_id".to_owned(),
                value: key_space.clone(),
            })?;
            Ok(Self {
                key_space,
                mark: key_space_mark(bits),
                unknown_ms: column(row, "unknown_ms")?,
                unknown_server: column(row, "unknown_server")?,
                ahead_ms: column(row, "ahead_ms")?,
            })
        };
        row.as_ref().map(read).transpose()
    }
}
