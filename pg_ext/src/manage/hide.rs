//! Tags that hide their volume: which permutation a tag gets, and that it keeps it; its secret shown and brought back; the number
//! behind an id.

use keywright_core::cause::Cause;
use keywright_core::hiding::{HideBits, HideKey, Hiding};
use keywright_core::tag::Tag;
use pgrx::{pg_extern, pg_sys};

use crate::cache::{self, permutations};
use crate::catalog::extension::Extension;
use crate::catalog::secrets::{self, Hidden};
use crate::catalog::tag_rows::{self, Known};
use crate::catalog::{cached, suggest};
use crate::failure::{Failure, OrRaise};
use crate::refill::tag_siblings;
use crate::server::{changes, process, random};
use crate::shmem::key::{Source, TagKey};
use crate::{arguments, guard};

const KEY_HINT: &str = "Give 16 random bytes, or leave hide_key out: the server draws one.";

/// What somebody wants of a tag: ids of so many bits, with a key of theirs or one that is drawn.
#[derive(Clone, Copy)]
pub struct HideRequest {
    bits: HideBits,
    key: Option<HideKey>,
}

/// A permutation and its secret.
pub struct Chosen {
    /// The secret.
    pub key: HideKey,
    /// What it makes of numbers.
    pub hiding: Hiding,
}

impl HideRequest {
    /// Out of the arguments of create_tag; `None` if ids are to be the numbers.
    ///
    /// # Errors
    /// There are no such bits, or the key is none, or stands alone.
    pub fn of(bits: Option<i32>, key: Option<&[u8]>) -> Result<Option<Self>, Failure> {
        let key = key.map(key_of).transpose()?;
        let Some(bits) = bits else {
            return match key {
                None => Ok(None),
                Some(_) => Err(Failure::new(
                    Cause::ArgumentNull,
                    "hide_key needs hide_bits, the bits that ids shall have",
                )
                .hint("Say hide_bits => 63, 53 or 31.")),
            };
        };
        let bits = HideBits::new(bits.into()).map_err(|error| {
            Failure::new(Cause::ArgumentOutOfRange, error.to_string()).hint(
                "63 for bigint, 53 for programs whose numbers are doubles, as in JavaScript, 31 for integer.",
            )
        })?;
        Ok(Some(Self { bits, key }))
    }

    /// How wide ids shall be.
    pub fn bits(&self) -> HideBits {
        self.bits
    }

    /// The permutation, with a secret that is drawn if none was named.
    pub fn chosen(self) -> Chosen {
        let key = self.key.unwrap_or_else(|| HideKey::new(random::bytes()));
        let hiding = Hiding::new(&key, self.bits);
        Chosen { key, hiding }
    }
}

fn key_of(bytes: &[u8]) -> Result<HideKey, Failure> {
    HideKey::of(bytes)
        .map_err(|error| Failure::new(Cause::ArgumentOutOfRange, error.to_string()).hint(KEY_HINT))
}

/// A dropped tag comes back with the permutation it had: another of the same numbers gives ids that may have been issued. Its
/// secret comes back, too, if it is named and was lost.
///
/// # Errors
/// Something else is wanted than the tag had.
pub fn refuse_change(
    tag: &Tag,
    old: &Known,
    request: Option<HideRequest>,
    extension: &Extension,
) -> Result<(), Failure> {
    let refused = |had: &str, hint: String| {
        Err(Failure::new(
            Cause::HideKeyMismatch,
            format!("tag \"{tag}\" was dropped, and {had}"),
        )
        .detail("With anything else ids could come that it has issued.")
        .hint(format!(
            "{hint}; or, if no such id is kept anywhere, say forget_issued => true."
        )))
    };
    match (&old.hidden, request) {
        (None, None) => Ok(()),
        (None, Some(_)) => refused("had no hide_bits", "Leave hide_bits out".to_owned()),
        (Some(hidden), Some(request)) if request.bits == hidden.bits => match request.key {
            None => secrets::hiding(tag.as_str(), old.id, hidden, extension.owner).map(drop),
            Some(key) if hidden.hiding(&key).is_some() => secrets::keep(old.id, &key),
            Some(_) => refused("had another hide_key", "Leave hide_key out".to_owned()),
        },
        (Some(hidden), None | Some(_)) => {
            let bits = hidden.bits.get();
            refused(
                &format!("had hide_bits => {bits}"),
                format!("Say hide_bits => {bits}"),
            )
        }
    }
}

/// The generation of a tag that is made: `least`, or a later one if that shall forget what a transaction that was rolled back
/// issued.
///
/// # Errors
/// It issued with another permutation, and nobody said to forget.
pub fn generation(
    tag: &Tag,
    least: i32,
    chosen: Option<&Chosen>,
    extension: &Extension,
    forget: bool,
) -> Result<i32, Failure> {
    let hiding = chosen.map(|chosen| &chosen.hiding);
    let mut generation = least;
    loop {
        // No sequence yet: which one it is does not matter.
        let life = (generation.cast_unsigned(), pg_sys::InvalidOid);
        let key = TagKey::new(
            process::database(),
            extension.oid,
            life,
            (Source::Native, 0),
            tag,
            hiding,
        );
        match tag_siblings::refuse_if_hidden_otherwise(&key) {
            Err(_) if forget => generation = generation.saturating_add(1),
            outcome => return outcome.map(|()| generation),
        }
    }
}

fn known(tag: &Tag, extension: &Extension) -> Result<Known, Failure> {
    tag_rows::known(tag, extension)?.ok_or_else(|| suggest::unknown_tag(tag))
}

#[pg_extern(sql = false)]
fn keywright_hide_key(tag: Option<&[u8]>) -> Option<Vec<u8>> {
    let show = || {
        let tag = arguments::tag_of(tag)?;
        let extension = cached::extension()?;
        let old = known(&tag, &extension)?;
        let Some(hidden) = old.hidden else {
            return Ok(None);
        };
        secrets::hiding(tag.as_str(), old.id, &hidden, extension.owner)?;
        Ok(secrets::find(old.id, extension.owner).map(|key| key.bytes().to_vec()))
    };
    show().or_raise()
}

#[pg_extern(sql = false)]
fn keywright_set_hide_key(tag: Option<&[u8]>, hide_key: Option<&[u8]>) {
    let set = || {
        guard::may_manage("set_hide_key")?;
        let tag = arguments::tag_of(tag)?;
        let key = key_of(arguments::required(hide_key, "hide_key")?)?;
        let extension = cached::extension()?;
        let old = known(&tag, &extension)?;
        let Some(hidden) = old.hidden else {
            return Err(mismatch(format!(
                "tag \"{tag}\" has no hide_bits, so there is no key to set"
            ))
            .hint("A tag that hides its volume is created as one."));
        };
        if hidden.hiding(&key).is_none() {
            let found = Hidden::of(&Hiding::new(&key, hidden.bits)).fingerprint;
            return Err(mismatch(format!("tag \"{tag}\" was made with another key"))
                .detail(format!(
                    "The fingerprint of the tag is {}, that of this key {found}.",
                    hidden.fingerprint
                ))
                .hint(format!(
                    "Where the tag was made, SELECT keywright.hide_key('{tag}') shows the key."
                )));
        }
        secrets::keep(old.id, &key)?;
        changes::announce(extension.tag_table);
        cache::forget();
        Ok(())
    };
    set().or_raise();
}

fn mismatch(message: String) -> Failure {
    Failure::new(Cause::HideKeyMismatch, message)
}

#[pg_extern(sql = false)]
fn keywright_hidden_number(tag: &[u8], id: i64) -> i64 {
    let number = || {
        let tag = arguments::parse_tag(tag)?;
        let Some(hiding) = permutations::of_tag(&tag)? else {
            return Ok(id);
        };
        let number = u64::try_from(id).ok().and_then(|id| hiding.reveal(id));
        number.map(u64::cast_signed).ok_or_else(|| {
            let largest = hiding.bits().largest();
            Failure::new(Cause::IdForeign, format!("{id} is no id of tag \"{tag}\""))
                .hint(format!("Its ids are from 1 to {largest}."))
        })
    };
    number().or_raise()
}
