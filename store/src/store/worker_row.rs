//! The row of a worker id gets an owner, where it is as it was found.

use super::{Link, StoreError, values};

/// What it says from then on.
pub(super) struct NewOwner<'a> {
    pub(super) owner: &'a str,
    /// For people.
    pub(super) holder: &'a str,
    pub(super) epoch: u64,
    pub(super) bound_ms: i64,
    pub(super) layout: String,
    /// The server of the store that it was taken on.
    pub(super) server: &'a str,
    /// How long nobody else takes it over, milliseconds.
    pub(super) lease_ms: u64,
}

impl NewOwner<'_> {
    /// `found`: epoch and bound of the row; where there was none it is made.
    ///
    /// # Errors
    /// It is not as it was found.
    pub(super) async fn write(
        self,
        link: &mut Link,
        (space, worker_id): (&str, u32),
        found: Option<(u64, i64)>,
    ) -> Result<(), StoreError> {
        let expiry = link.words().in_ms();
        let mut values = values![
            self.owner,
            self.holder,
            self.epoch,
            self.bound_ms,
            self.layout,
            self.server,
            self.lease_ms,
            space,
            worker_id,
        ];
        let statement = match found {
            Some((epoch, bound_ms)) => {
                values.extend(values![epoch, bound_ms]);
                format!(
                    "UPDATE keywright_worker SET owner = ?, holder = ?, epoch = ?, hi_ms = ?, layout = ?, server = ?, \
                     expires_at = {expiry} WHERE space = ? AND worker_id = ? AND epoch = ? AND hi_ms = ?"
                )
            }
            None => format!(
                "INSERT INTO keywright_worker (owner, holder, epoch, hi_ms, layout, server, expires_at, space, worker_id) \
                 VALUES (?, ?, ?, ?, ?, ?, {expiry}, ?, ?)"
            ),
        };
        link.change_one(statement, values).await
    }
}
