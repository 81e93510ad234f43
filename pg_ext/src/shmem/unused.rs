//! What native tags have left is kept over a clean stop, in a file of the data directory, and used first after the start. Why no id is
//! issued twice stands at [`keywright_core::unused`].

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use keywright_core::cause::Cause;
use keywright_core::unused::{self, NotUsed, Place, Unused};

use crate::failure::Failure;
use crate::server::control::{self, Control};
use crate::server::log;
use crate::shmem::directory;
use crate::shmem::kept;
use crate::shmem::key::{Source, TagKey};
use crate::shmem::tag_slot::TagSlot;

/// From the data directory, which the server is in.
const FILE: &str = "pg_stat/keywright.unused_ids";

/// Longest file that is read, bytes: far above what the server has slots for.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Writes what is left, if the server was stopped in order: its last checkpoint is on disk and no other process is left. Also where nothing is
/// left: the file tells the start that it was.
pub fn keep_at_stop() {
    match Control::read() {
        Ok(control) if control.is_shut_down() => {
            let left = left();
            let written = kept::replace(FILE, |file| {
                Ok(unused::write(control.bytes(), place(file)?, &left))
            });
            if let Err(error) = written {
                log::tell(&format!(
                    "could not keep the unused ids of tags in \"{FILE}\", they are left out: {error}"
                ));
            }
        }
        // Stopped at once, or a standby.
        Ok(_) => {}
        Err(error) => log::tell(&format!("could not read \"{}\": {error}", control::FILE)),
    }
}

/// What the start finds of the stop before.
pub enum Found {
    /// No file: the server was not stopped in order, or was started with this library since.
    Nothing,
    /// What each tag had left.
    Left(Vec<Unused>),
    /// The file does not count.
    NotUsed {
        /// Why.
        reason: NotUsed,
        /// Whether it says that ids were left.
        has_ids: bool,
    },
    /// The file cannot be read.
    Unreadable(io::Error),
}

impl Found {
    /// Looks for it, and changes nothing: what follows from it is remembered first. At the start of the server, before any other process is
    /// there.
    pub fn at_start() -> Self {
        look().unwrap_or_else(Self::Unreadable)
    }

    /// Whether it shows that the server was stopped in order, and not started with this library since.
    pub fn was_stopped_in_order(&self) -> bool {
        match self {
            Self::Left(_) => true,
            Self::NotUsed { reason, .. } => match reason {
                // It is whole; and the other files of the data directory were copied along with it.
                NotUsed::AnotherStop | NotUsed::Copy => true,
                NotUsed::Damaged => false,
            },
            Self::Nothing | Self::Unreadable(_) => false,
        }
    }

    /// Takes the file away, durably, and gives each tag what it had left.
    ///
    /// # Errors
    /// It stays: a later start would take it for that of the stop before.
    pub fn take(self) -> Result<(), Failure> {
        if let Self::Nothing = self {
            return Ok(());
        }
        // Nobody finds it again, whatever comes now.
        let removed = fs::remove_file(FILE).and_then(|()| kept::sync_folder());
        removed.map_err(|error| {
            Failure::new(
                Cause::BoundDamaged,
                format!("keywright could not remove \"{FILE}\": {error}"),
            )
            .detail("If it stayed, nothing would tell whether pg_resetwal lost bounds later on, and ids would come twice.")
            .hint("Let the server write in that folder, and start it again.")
        })?;
        match self {
            Self::Nothing => {}
            Self::Left(all) => give_all(&all),
            Self::NotUsed { reason, has_ids } => {
                if has_ids || reason == NotUsed::Damaged {
                    tell_left_out(&reason);
                }
            }
            Self::Unreadable(error) => tell_left_out(&error),
        }
        Ok(())
    }
}

fn tell_left_out(reason: &dyn Display) {
    log::tell(&format!(
        "the unused ids of tags in \"{FILE}\" are left out: {reason}"
    ));
}

fn give_all(all: &[Unused]) {
    let given = all.iter().filter(|unused| give(unused));
    let tags = given.filter(|unused| unused.start < unused.end).count();
    if tags > 0 {
        log::tell(&format!(
            "ids that were left when the server was stopped are issued first, of {tags} tags"
        ));
    }
}

/// What each native tag has left that nobody is dropping.
fn left() -> Vec<Unused> {
    let native = directory::slots::<TagSlot>(|slot, key| {
        key.source() == Source::Native && !slot.is_closing()
    });
    native
        .into_iter()
        .filter_map(|(tag, key)| {
            let word = &tag.slot.word;
            let published = (
                word.cursor(),
                word.hi(),
                tag.slot.step.load(Ordering::Relaxed),
            );
            let (start, end, step) = tag.slot.left.get().unwrap_or(published);
            Some(Unused {
                owner: key.owner(),
                tag: key.parsed_tag()?,
                start,
                end,
                step,
            })
        })
        // Those with nothing left too: how far they came shows whether somebody sets their sequences back.
        .filter(|unused| unused.end > 0)
        .collect()
}

fn look() -> io::Result<Found> {
    let file = match File::open(FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let place = place(&file)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    let control = Control::read()?;
    let read = unused::read(&text, control.bytes(), place);
    let used = read.and_then(|all| match control.is_shut_down() {
        true => Ok(all),
        false => Err(NotUsed::AnotherStop),
    });
    Ok(match used {
        Ok(all) => Found::Left(all),
        Err(reason) => Found::NotUsed {
            reason,
            has_ids: unused::names_any(&text),
        },
    })
}

/// Gives a tag what it had left; false where there is no room for it.
fn give(unused: &Unused) -> bool {
    let key = TagKey::of_owner(unused.owner, &unused.tag);
    match directory::attach::<TagSlot>(&key) {
        Some(Ok(found)) => {
            found
                .slot
                .left
                .keep((unused.start, unused.end, unused.step));
            true
        }
        Some(Err(_)) | None => false,
    }
}

fn place(file: &File) -> io::Result<Place> {
    let metadata = file.metadata()?;
    let born = metadata.created().ok();
    let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    Ok(Place {
        device: metadata.dev(),
        inode: metadata.ino(),
        born_ns: born.map_or(0, |born| born.as_nanos()),
    })
}
