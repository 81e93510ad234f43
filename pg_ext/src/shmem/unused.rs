//! What native tags have left is kept over a clean stop, in a file of the data directory, and used first after the start. Why no id is
//! issued twice stands at [`keywright_core::unused`].

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use keywright_core::unused::{self, NotUsed, Place, Unused};

use crate::server::control::{self, Control};
use crate::server::log;
use crate::shmem::directory;
use crate::shmem::kept;
use crate::shmem::key::{Source, TagKey};
use crate::shmem::slot::Slot;
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

/// Takes the file away, durably, and gives each tag what it had left. At the start of the server, before any other process is there. True
/// where the file shows that the server was stopped in order, and not started with this library since.
pub fn take_at_start() -> bool {
    match take() {
        Ok(None) => false,
        Ok(Some(Ok(all))) => {
            let given = all.iter().filter(|unused| give(unused));
            let tags = given.filter(|unused| unused.start < unused.end).count();
            if tags > 0 {
                log::tell(&format!(
                    "ids that were left when the server was stopped are issued first, of {tags} tags"
                ));
            }
            true
        }
        Ok(Some(Err(reason))) => {
            log::tell(&format!(
                "the unused ids of tags in \"{FILE}\" are left out: {reason}"
            ));
            match reason {
                // It is whole, and where it was written.
                NotUsed::AnotherStop => true,
                NotUsed::Damaged | NotUsed::Copy => false,
            }
        }
        Err(error) => {
            log::tell(&format!(
                "the unused ids of tags in \"{FILE}\" are left out: {error}"
            ));
            false
        }
    }
}

/// What each native tag has left that nobody is dropping.
fn left() -> Vec<Unused> {
    let all = directory::slots::<TagSlot>().into_iter();
    all.filter(|(tag, key)| {
        key.source() == Source::Native && tag.slot.closed_by().load(Ordering::Acquire) == 0
    })
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

type Found = Result<Vec<Unused>, NotUsed>;

fn take() -> io::Result<Option<Found>> {
    let opened = File::open(FILE);
    if let Err(error) = &opened
        && error.kind() == io::ErrorKind::NotFound
    {
        return Ok(None);
    }
    // Nobody finds it again, whatever comes now.
    fs::remove_file(FILE)?;
    kept::sync_folder()?;
    let file = opened?;
    let place = place(&file)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    let control = Control::read()?;
    let read = unused::read(&text, control.bytes(), place);
    Ok(Some(read.and_then(|all| match control.is_shut_down() {
        true => Ok(all),
        false => Err(NotUsed::AnotherStop),
    })))
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
