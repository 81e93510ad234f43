//! Whether what a file says may be used: pure.

use thiserror::Error;

use super::content::Content;
use crate::engine::file::place::Place;

/// How much later than its content says a file may have been changed, milliseconds: by the write itself, and by clocks that count in steps.
pub(crate) const CHANGED_MS_MAX: u64 = 100;

/// What is known of a file and of its reader, apart from what it says.
#[derive(Debug, Clone)]
pub(crate) struct Here<'a> {
    /// Where the file is, in which run of the machine.
    pub(crate) place: Place,
    /// The digest of the reader's configuration.
    pub(crate) configuration: &'a str,
    /// When anything about the file was changed last, as the kernel has it, unix milliseconds.
    pub(crate) changed_ms: i64,
    /// `CLOCK_BOOTTIME`, milliseconds; nothing where there is no such clock.
    pub(crate) boot_ms: Option<u64>,
}

/// Why a file is not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Unusable {
    #[error("nothing is kept in it")]
    Nothing,
    #[error("it is not a file of kept ranges, and stays as it is")]
    Foreign,
    #[error("{0}")]
    Damaged(String),
    #[error("it was copied or moved: {0}")]
    Moved(String),
    #[error("the machine has started since it was written")]
    OtherBoot,
    #[error("it was changed after it was written by this program: it may be an older copy")]
    Changed,
    #[error("it is of another configuration than the one that is read now")]
    OtherConfiguration,
    #[error("when it was written tables were being switched")]
    Switching,
    #[error(
        "too long ago the store was last heard of: others need not wait for this program any more (switch_peer_wait_s)"
    )]
    Late,
    #[error("another program has it")]
    Locked,
    #[error("it cannot be used: {0}")]
    Failed(String),
    #[error("the store has answered")]
    Superseded,
}

/// Whether a file that is where it was, unchanged, says something that holds now.
///
/// # Errors
/// The first reason why not.
pub(crate) fn judge(content: &Content, here: &Here<'_>) -> Result<(), Unusable> {
    // First: disks have other numbers after a start.
    if here.place.boot.is_empty() || content.place.boot != here.place.boot {
        return Err(Unusable::OtherBoot);
    }
    if let Some(difference) = here.place.difference(&content.place) {
        return Err(Unusable::Moved(difference));
    }
    if here.changed_ms.abs_diff(content.written_ms) > CHANGED_MS_MAX {
        return Err(Unusable::Changed);
    }
    if content.ranges.is_empty() {
        return Err(Unusable::Nothing);
    }
    if content.configuration != here.configuration {
        return Err(Unusable::OtherConfiguration);
    }
    if content.standing.is_none() {
        return Err(Unusable::Switching);
    }
    match here.boot_ms {
        Some(now) if now < content.until_boot_ms => Ok(()),
        Some(_) | None => Err(Unusable::Late),
    }
}
