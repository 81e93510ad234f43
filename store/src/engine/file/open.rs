//! Opening a store's file: nothing is believed that was not read back.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use super::commits;
use super::error::FileError;
use super::file_system::doubtful;
use super::place::{Inode, Inodes, Place};
use super::shared::{FileSettings, SharedFile};
use crate::engine::facts::ServerFacts;

/// Where the file says that it is.
const NOTE: &str = "SELECT file_id, device, inode, born_ns, machine, boot FROM keywright_file";

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) connection: Connection,
    pub(super) inodes: Inodes,
    pub(super) facts: ServerFacts,
}

/// What a file says of itself.
pub(super) struct Noted {
    pub(super) id: String,
    pub(super) place: Place,
}

/// Opens a file that [`super::create`] has made.
pub(super) fn open(settings: &FileSettings, shared: &SharedFile) -> Result<OpenFile, FileError> {
    if let Some(error) = shared.suspended() {
        return Err(error);
    }
    let path = settings.path.as_path();
    let busy_ms = shared.busy_ms;
    let place = Place::of(path)?;
    let doubtful = check_file_system(path, settings)?;
    let mut connection = connect(path, busy_ms)?;
    let of = |error: &rusqlite::Error| FileError::of(error, busy_ms);
    let noted = note(&connection, busy_ms)?.ok_or(FileError::Empty)?;
    if let Some(difference) = place.difference(&noted.place) {
        return Err(FileError::Moved(difference));
    }
    see_its_commits(&mut connection, busy_ms)?;
    if place != noted.place {
        // The machine has started since.
        let update = "UPDATE keywright_file SET device = ?, boot = ?";
        let values = (place.inode.device.cast_signed(), &place.boot);
        connection
            .execute(update, values)
            .map_err(|error| of(&error))?;
    }
    // The log is there as soon as something was read.
    let inodes = Inodes::at(path).ok();
    let inodes = inodes.filter(|inodes| inodes.file == place.inode);
    let inodes = inodes.ok_or(FileError::Replaced)?;
    let weaknesses = doubtful.map(|kind| {
        format!("its file is on a file system of kind {kind}: it may lose what was committed")
    });
    Ok(OpenFile {
        connection,
        inodes,
        facts: ServerFacts {
            identity: format!("file={}", noted.id),
            weaknesses: weaknesses.into_iter().collect(),
            is_in_group: false,
        },
    })
}

/// That its commits follow one another. A version that did not record them may have made it.
fn see_its_commits(connection: &mut Connection, busy_ms: u64) -> Result<(), FileError> {
    let of = |error: rusqlite::Error| FileError::of(&error, busy_ms);
    if commits::read(connection, busy_ms)?.is_some() {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(of)?;
    if commits::read(&transaction, busy_ms)?.is_none() {
        commits::make(&transaction, busy_ms)?;
    }
    transaction.commit().map_err(of)
}

/// The kind of a file system that is only used because the settings say so.
pub(super) fn check_file_system(
    path: &Path,
    settings: &FileSettings,
) -> Result<Option<String>, FileError> {
    match doubtful(path)? {
        Some(kind) if !settings.any_file_system => Err(FileError::FileSystem(kind)),
        kind => Ok(kind),
    }
}

/// What is written is on the disk when a commit returns.
pub(super) fn connect(path: &Path, busy_ms: u64) -> Result<Connection, FileError> {
    let of = |error: &rusqlite::Error| FileError::of(error, busy_ms);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| of(&error))?;
    let ms = Duration::from_millis(busy_ms);
    connection.busy_timeout(ms).map_err(|error| of(&error))?;
    if connection
        .is_readonly(rusqlite::MAIN_DB)
        .map_err(|error| of(&error))?
    {
        return Err(FileError::ReadOnly);
    }
    set(&connection, busy_ms, ("journal_mode", "WAL"), "wal")?;
    set(&connection, busy_ms, ("synchronous", "FULL"), "2")?;
    set(&connection, busy_ms, ("trusted_schema", "OFF"), "0")?;
    Ok(connection)
}

fn set(
    connection: &Connection,
    busy_ms: u64,
    (name, to): (&'static str, &str),
    wanted: &'static str,
) -> Result<(), FileError> {
    let of = |error: &rusqlite::Error| FileError::of(error, busy_ms);
    let read = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
    let set = format!("PRAGMA {name} = {to}");
    // Some say what they are now, some do not.
    connection
        .query_row(&set, (), read)
        .optional()
        .map_err(|error| of(&error))?;
    let value = connection
        .query_row(&format!("PRAGMA {name}"), (), read)
        .map_err(|error| of(&error))?;
    let value = match value {
        rusqlite::types::Value::Integer(number) => number.to_string(),
        rusqlite::types::Value::Text(text) => text,
        other => format!("{other:?}"),
    };
    match value == wanted {
        true => Ok(()),
        false => Err(FileError::Setting {
            name,
            value,
            wanted,
        }),
    }
}

/// `None`: nobody has made a store in it.
pub(super) fn note(connection: &Connection, busy_ms: u64) -> Result<Option<Noted>, FileError> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Noted {
            id: row.get(0)?,
            place: Place {
                inode: Inode {
                    device: row.get::<_, i64>(1)?.cast_unsigned(),
                    number: row.get::<_, i64>(2)?.cast_unsigned(),
                },
                born_ns: row.get(3)?,
                machine: row.get(4)?,
                boot: row.get(5)?,
            },
        })
    };
    match connection.query_row(NOTE, (), read) {
        Ok(noted) => Ok(Some(noted)),
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
        Err(error) => match FileError::of(&error, busy_ms) {
            error if error.is_missing_table() => Ok(None),
            error => Err(error),
        },
    }
}
