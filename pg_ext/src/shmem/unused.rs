//! What native tags have left is kept over a clean stop, in a file of the data directory, and used first after the start. Why no id is
//! issued twice stands at [`keywright_core::unused`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::{offset_of, size_of};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use keywright_core::unused::{self, Place, Unused};
use pgrx::pg_sys;

use crate::server::log;
use crate::shmem::directory;
use crate::shmem::key::{Source, TagKey};
use crate::shmem::slot::Slot;
use crate::shmem::tag_slot::TagSlot;

/// Where the server's own modules keep what they have to keep over a stop. Paths are the data directory's, which the server is in.
const FOLDER: &str = "pg_stat";
const FILE: &str = "pg_stat/keywright.unused_ids";
const NEW_FILE: &str = "pg_stat/keywright.unused_ids.new";
const CONTROL_FILE: &str = "global/pg_control";

/// Longest file that is read, bytes: far above what the server has slots for.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Writes what is left, if the server was stopped in order: its last checkpoint is on disk and no other process is left.
pub fn keep_at_stop() {
    match control_of_a_stopped_server() {
        Ok(Some(control)) => {
            let left = left();
            if left.is_empty() {
                return;
            }
            if let Err(error) = write(&control, &left) {
                log::tell(&format!(
                    "could not keep the unused ids of tags in \"{FILE}\", they are left out: {error}"
                ));
            }
        }
        // Stopped at once, or a standby.
        Ok(None) => {}
        Err(error) => log::tell(&format!("could not read \"{CONTROL_FILE}\": {error}")),
    }
}

/// Takes the file away, durably, and gives each tag what it had left. At the start of the server, before any other process is there.
pub fn take_at_start() {
    match take() {
        Ok(None) => {}
        Ok(Some(Ok(all))) => {
            let given = all.iter().filter(|unused| give(unused));
            let tags = given.filter(|unused| unused.start < unused.end).count();
            if tags > 0 {
                log::tell(&format!(
                    "ids that were left when the server was stopped are issued first, of {tags} tags"
                ));
            }
        }
        Ok(Some(Err(reason))) => log::tell(&format!(
            "the unused ids of tags in \"{FILE}\" are left out: {reason}"
        )),
        Err(error) => log::tell(&format!(
            "the unused ids of tags in \"{FILE}\" are left out: {error}"
        )),
    }
}

/// What the control file holds, if it says that the server was shut down.
fn control_of_a_stopped_server() -> io::Result<Option<Vec<u8>>> {
    let bytes = fs::read(CONTROL_FILE)?;
    let control = bytes.get(..size_of::<pg_sys::ControlFileData>());
    let at = offset_of!(pg_sys::ControlFileData, state);
    let state = control
        .and_then(|control| control.get(at..)?.first_chunk())
        .map(|state| pg_sys::DBState::Type::from_ne_bytes(*state));
    Ok(control
        .filter(|_| state == Some(pg_sys::DBState::DB_SHUTDOWNED))
        .map(<[u8]>::to_vec))
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

fn write(control: &[u8], left: &[Unused]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(NEW_FILE)?;
    file.write_all(unused::write(control, place(&file)?, left).as_bytes())?;
    file.sync_all()?;
    fs::rename(NEW_FILE, FILE)?;
    sync_folder()
}

type Found = Result<Vec<Unused>, unused::NotUsed>;

fn take() -> io::Result<Option<Found>> {
    let opened = File::open(FILE);
    if let Err(error) = &opened
        && error.kind() == io::ErrorKind::NotFound
    {
        return Ok(None);
    }
    // Nobody finds it again, whatever comes now.
    fs::remove_file(FILE)?;
    sync_folder()?;
    let file = opened?;
    let place = place(&file)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(Some(match control_of_a_stopped_server()? {
        Some(control) => unused::read(&text, &control, place),
        None => Err(unused::NotUsed::AnotherStop),
    }))
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

fn sync_folder() -> io::Result<()> {
    File::open(Path::new(FOLDER))?.sync_all()
}
