//! Tags that PostgreSQL databases move to the store, or back.

use std::sync::Arc;

use keywright_core::Tag;

use super::Keys;
use crate::failure::Failure;
use crate::moving::{Comer, Heir, Leaver};
use crate::store::moved_rows::{CloseTag, MovedTag, OpenTag, ReadHeir};

impl Keys {
    /// Whether a tag would be opened for a database; nothing is changed.
    ///
    /// # Errors
    /// Why not; the store cannot be used.
    pub(crate) async fn may_open(
        &self,
        tag: &Tag,
        comer: Comer,
        lost: Option<u64>,
    ) -> Result<(), Failure> {
        self.refuse_other_systems(tag)?;
        let look = self.open_tag(tag, comer, "", (lost, true));
        self.run(look).await?.map(drop)
    }

    /// Opens a tag for a database that issues natively no more.
    ///
    /// # Errors
    /// Ids could come twice; the store cannot be used.
    pub(crate) async fn open_moved(
        &self,
        tag: &Tag,
        comer: Comer,
        place: &str,
        lost: Option<u64>,
    ) -> Result<MovedTag, Failure> {
        self.refuse_other_systems(tag)?;
        let open = self.open_tag(tag, comer, place, (lost, false));
        self.run(open).await?
    }

    fn open_tag(
        &self,
        tag: &Tag,
        comer: Comer,
        place: &str,
        (lost, only_look): (Option<u64>, bool),
    ) -> OpenTag {
        OpenTag {
            store: Arc::clone(&self.0.store),
            tag: tag.clone(),
            comer,
            place: place.to_owned(),
            lost,
            only_look,
        }
    }

    /// Closes a tag for everybody, and names its heir.
    ///
    /// # Errors
    /// It has another; the store has gone back; the store cannot be used.
    pub(crate) async fn close_moved(
        &self,
        tag: &Tag,
        (leaver, key_space): (Leaver, Option<u64>),
        place: &str,
        lost: Option<u64>,
    ) -> Result<MovedTag, Failure> {
        self.refuse_other_systems(tag)?;
        let close = CloseTag {
            store: Arc::clone(&self.0.store),
            tag: tag.clone(),
            leaver,
            place: place.to_owned(),
            key_space,
            lost,
        };
        self.run(close).await?
    }

    /// Which database issues a tag's ids natively, so that nobody reserves of it.
    ///
    /// # Errors
    /// There is no such tag; the store cannot be used.
    pub(crate) async fn heir_of(&self, tag: &Tag) -> Result<Option<Heir>, Failure> {
        self.refuse_other_systems(tag)?;
        let look = ReadHeir {
            store: Arc::clone(&self.0.store),
            tag: tag.clone(),
        };
        self.run(look).await?
    }
}
