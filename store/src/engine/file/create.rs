//! Making a store's file, and letting one be used that was copied or moved.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use uuid::Uuid;

use super::commits;
use super::error::FileError;
use super::open::{check_file_system, connect, note};
use super::place::Place;
use super::shared::{FileSettings, SharedFile};

/// Who the file is, and where: one row.
const TABLE: &str = "CREATE TABLE keywright_file (
    id      INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    file_id TEXT    NOT NULL,
    device  INTEGER NOT NULL,
    inode   INTEGER NOT NULL,
    born_ns INTEGER NOT NULL,
    machine TEXT    NOT NULL,
    boot    TEXT    NOT NULL
) STRICT";

/// Readable by the group, so that a backup can be made of it.
const MODE: u32 = 0o640;

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// It was there.
    Nothing,
    New,
    /// It is another store from now on: whoever reserves leaves a gap.
    Accepted,
}

/// Makes the file, or what is missing of it. With `accept` one is taken that was copied or moved here, or overwritten.
pub(super) fn create(
    settings: &FileSettings,
    shared: &SharedFile,
    accept: bool,
) -> Result<Made, FileError> {
    let path = settings.path.as_path();
    let directory = path.parent().ok_or(FileError::Missing)?;
    see_that_it_is_there(directory)?;
    check_file_system(directory, settings)?;
    let is_new = make(path, directory)?;
    let place = Place::of(path)?;
    let mut connection = connect(path, shared.busy_ms)?;
    let made = write(&mut connection, &place, accept, shared.busy_ms)?;
    drop(connection);
    sync(directory)?;
    Ok(if is_new { Made::New } else { made })
}

/// Whoever makes a store is told what is missing, which is no file.
fn see_that_it_is_there(directory: &Path) -> Result<(), FileError> {
    match directory.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(FileError::NoDirectory(directory.display().to_string()))
        }
        Err(error) => Err(FileError::of_io(&error)),
        Ok(_) => Ok(()),
    }
}

/// The name is on the disk, too, before anything is kept in the file.
fn make(path: &Path, directory: &Path) -> Result<bool, FileError> {
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(MODE).open(path) {
        Ok(file) => {
            file.sync_all().map_err(|error| FileError::of_io(&error))?;
            sync(directory)?;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(FileError::of_io(&error)),
    }
}

fn sync(directory: &Path) -> Result<(), FileError> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| FileError::of_io(&error))
}

fn write(
    connection: &mut Connection,
    place: &Place,
    accept: bool,
    busy_ms: u64,
) -> Result<Made, FileError> {
    let of = |error: rusqlite::Error| FileError::of(&error, busy_ms);
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(of)?;
    let found = match commits::read(&transaction, busy_ms) {
        Err(FileError::Overwritten) => None,
        found => Some(found?),
    };
    let made = match note(&transaction, busy_ms)? {
        Some(noted) => {
            let is_one_state = found.is_some();
            match (place.difference(&noted.place), is_one_state, accept) {
                (None, true, _) => return Ok(Made::Nothing),
                (Some(difference), _, false) => return Err(FileError::Moved(difference)),
                (None, false, false) => return Err(FileError::Overwritten),
                (Some(_), _, true) | (None, false, true) => Made::Accepted,
            }
        }
        None => {
            let count = "SELECT COUNT(*) FROM sqlite_schema";
            let tables: i64 = transaction
                .query_row(count, (), |row| row.get(0))
                .map_err(of)?;
            if tables != 0 {
                return Err(FileError::Foreign);
            }
            transaction.execute(TABLE, ()).map_err(of)?;
            Made::New
        }
    };
    let values = (
        Uuid::new_v4().simple().to_string(),
        place.inode.device.cast_signed(),
        place.inode.number.cast_signed(),
        place.born_ns,
        &place.machine,
        &place.boot,
    );
    let write = "INSERT OR REPLACE INTO keywright_file (id, file_id, device, inode, born_ns, machine, boot) \
                 VALUES (1, ?, ?, ?, ?, ?, ?)";
    transaction.execute(write, values).map_err(of)?;
    // A program that has this very file open still goes by what it has seen of them.
    if found.flatten().is_none() {
        commits::make(&transaction, busy_ms)?;
    }
    transaction.commit().map_err(of)?;
    Ok(made)
}
