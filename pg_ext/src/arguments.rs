//! What callers of SQL functions give, read: texts that name a tag, a layout or a time zone.

use keywright_core::cause::Cause;
use keywright_core::layout::{Layout, Preset};
use keywright_core::tag::Tag;
use keywright_core::zone::{Zone, ZoneError};

use crate::failure::Failure;
use crate::server::backend::BackendCell;
use crate::server::text;

/// The value of an argument that must be given.
///
/// # Errors
/// It is null.
pub fn required<T>(value: Option<T>, what: &str) -> Result<T, Failure> {
    value.ok_or_else(|| {
        Failure::new(Cause::ArgumentNull, format!("{what} must not be null"))
            .hint("Give a value, or leave the argument out if it has a default.")
    })
}

/// The tag that an argument names.
///
/// # Errors
/// It is null or no tag.
pub fn tag_of(text: Option<&[u8]>) -> Result<Tag, Failure> {
    parse_tag(required(text, "the tag")?)
}

/// Reads `text` as a tag.
///
/// # Errors
/// The reason it is none, with what tags look like.
pub fn parse_tag(text: &[u8]) -> Result<Tag, Failure> {
    text::read(text)
        .map_err(|error| invalid_tag(&error.to_string()))
        .and_then(|text| Tag::parse(text).map_err(|error| invalid_tag(&error.to_string())))
}

fn invalid_tag(reason: &str) -> Failure {
    Failure::new(Cause::TagInvalid, format!("not a tag: {reason}")).hint(format!(
        "A tag has 1 to {} ASCII letters, digits or characters of _ - . : / @ # $.",
        Tag::BYTES_MAX
    ))
}

/// Reads a layout given by a user; the last one read is kept, because a query names the same one for every row.
///
/// # Errors
/// All that is wrong with it, and what layouts look like.
pub fn layout(text: &[u8]) -> Result<Layout, Failure> {
    const TEXT_BYTES_KEPT_MAX: usize = 64;
    static LAST: BackendCell<Option<(usize, [u8; TEXT_BYTES_KEPT_MAX], Layout)>> =
        BackendCell::new(None);
    if let Some((bytes, kept, layout)) = LAST.get()
        && kept.get(..bytes) == Some(text)
    {
        return Ok(layout);
    }
    let layout = text::read(text)
        .map_err(|error| no_layout(&format!("not a layout: {error}"), None))
        .and_then(|text| {
            Layout::parse(text).map_err(|error| no_layout(&error.to_string(), error.meant()))
        })?;
    let mut kept = [0; TEXT_BYTES_KEPT_MAX];
    if let Some(place) = kept.get_mut(..text.len()) {
        place.copy_from_slice(text);
        LAST.set(Some((text.len(), kept, layout)));
    }
    Ok(layout)
}

fn no_layout(message: &str, meant: Option<&str>) -> Failure {
    let meant = meant.map_or_else(String::new, |meant| format!("Did you mean \"{meant}\"? "));
    let presets = Preset::ALL.map(Preset::name).join(", ");
    Failure::new(Cause::LayoutInvalid, message).hint(format!(
        "{meant}Name a preset ({presets}) or the fields from high to \
         low, such as 'time=41,datacenter=5,worker=5,sequence=12,epoch=1288834974657,tick=1ms'."
    ))
}

/// What to give as a time zone.
pub const ZONE_HINT: &str = "Give UTC or an offset from it with east of Greenwich positive, such as '+08:00' or '-03:30', between \
                         -14:00 and +14:00.";

/// Reads a time zone given by a user.
///
/// # Errors
/// The reason it is none, with what zones look like.
pub fn zone(text: &[u8]) -> Result<Zone, Failure> {
    let invalid = |message: String| Failure::new(Cause::ZoneInvalid, message).hint(ZONE_HINT);
    let text =
        text::read(text).map_err(|error| invalid(format!("not a time zone of ids: {error}")))?;
    Zone::parse(text).map_err(|error| {
        let failure = invalid(error.to_string());
        match error {
            ZoneError::NoOffset { .. } => failure.detail(
                "In a zone with daylight saving an hour comes twice each autumn, and ids that are written with its time could, too. \
                 The zone of a name can get daylight saving later.",
            ),
            ZoneError::Range { .. } => failure,
        }
    })
}
