//! Keys of tags that hide their volume: what the tag's row says of one, and the secret itself, in a table of its own that a dump can
//! leave out.

use keywright_core::cause::Cause;
use keywright_core::hiding::{HideBits, HideKey, Hiding};
use pgrx::pg_sys;

use crate::catalog::damage;
use crate::catalog::statements::{change, change_one, unchanged};
use crate::failure::Failure;
use crate::server::query::{self, Row};

/// What a row of keywright.tag says of the permutation that its numbers go through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// How wide its ids are.
    pub bits: HideBits,
    /// What tells its key from others.
    pub fingerprint: String,
}

impl Hidden {
    /// Out of the columns hide_bits and hide_fingerprint.
    ///
    /// # Errors
    /// Not what keywright writes.
    pub fn of_row(row: &Row, [bits, fingerprint]: [i32; 2]) -> Result<Option<Self>, Failure> {
        match (row.get::<i32>(bits), row.get::<String>(fingerprint)) {
            (None, None) => Ok(None),
            (Some(bits), Some(fingerprint)) => {
                let bits = HideBits::new(bits.into());
                let bits = bits.map_err(|error| damage::damaged(&error.to_string()))?;
                Ok(Some(Self { bits, fingerprint }))
            }
            (None, Some(_)) | (Some(_), None) => Err(damage::damaged(
                "a tag has one of hide_bits and hide_fingerprint",
            )),
        }
    }

    /// As a permutation is recorded.
    pub fn of(hiding: &Hiding) -> Self {
        Self {
            bits: hiding.bits(),
            fingerprint: hiding.fingerprint().to_string(),
        }
    }

    /// The permutation that this key chooses, if it is the one that was recorded.
    pub fn hiding(&self, key: &HideKey) -> Option<Hiding> {
        let hiding = Hiding::new(key, self.bits);
        (Self::of(&hiding) == *self).then_some(hiding)
    }
}

/// The secret that is kept for the tag with this id.
pub fn find(id: i32, owner: pg_sys::Oid) -> Option<HideKey> {
    let secret = "SELECT hide_key FROM keywright.tag_secret WHERE tag_id OPERATOR(pg_catalog.=) $1";
    let bytes = query::one_row_as(owner, secret, &[id.into()], |row| row.get::<Vec<u8>>(1));
    HideKey::of(&bytes.flatten()?).ok()
}

/// Keeps the secret of the tag with this id, as the role in force.
///
/// # Errors
/// Somebody else changed it since this transaction began, or keeps it from being written.
pub fn keep(id: i32, key: &HideKey) -> Result<(), Failure> {
    change_one(
        "tag_secret",
        "INSERT INTO keywright.tag_secret (tag_id, hide_key) VALUES ($1, $2) \
         ON CONFLICT (tag_id) DO UPDATE SET hide_key = EXCLUDED.hide_key",
        &[id.into(), key.bytes().into()],
    )
}

/// Forgets the secret of the tag with this id, as the role in force.
///
/// # Errors
/// As [`keep`].
pub fn forget(id: i32) -> Result<(), Failure> {
    const OF_TAG: &str = "FROM keywright.tag_secret WHERE tag_id OPERATOR(pg_catalog.=) $1";
    change("tag_secret", &format!("DELETE {OF_TAG}"), &[id.into()])?;
    // Most tags have none; one that is still there was kept from being deleted.
    let row = format!("SELECT true {OF_TAG}");
    if query::one_row(&row, &[id.into()], |_| ()).is_none() {
        return Ok(());
    }
    let what = "the key of a tag that hides its volume";
    Err(unchanged("tag_secret", &row, &[id.into()], what))
}

/// The permutation of the tag with this id.
///
/// # Errors
/// Its secret is not there, or another.
pub fn hiding(tag: &str, id: i32, hidden: &Hidden, owner: pg_sys::Oid) -> Result<Hiding, Failure> {
    let mismatch = |what: &str| {
        Failure::new(
            Cause::HideKeyMismatch,
            format!("the key that hides the volume of tag \"{tag}\" is {what}"),
        )
        .detail(format!("The fingerprint of the tag is {}.", hidden.fingerprint))
        .hint(format!(
            "Where the tag was made, SELECT keywright.hide_key('{tag}') shows the key; run SELECT keywright.set_hide_key('{tag}', that_key) here."
        ))
    };
    let key = find(id, owner).ok_or_else(|| mismatch("missing"))?;
    hidden
        .hiding(&key)
        .ok_or_else(|| mismatch("another than it was made with"))
}
