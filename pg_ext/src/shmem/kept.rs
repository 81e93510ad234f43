//! Files that are kept over a stop of the server, beside those of its own modules.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Where they lie, in the data directory, which the server is in.
const FOLDER: &str = "pg_stat";

/// Puts a file of the folder, durably, into the place of the one before. `text` gets the file that is written.
///
/// # Errors
/// The folder cannot be written; the one before may be there still.
pub fn replace(path: &str, text: impl FnOnce(&File) -> io::Result<String>) -> io::Result<()> {
    let new_path = format!("{path}.new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new_path)?;
    let text = text(&file)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new_path, path)?;
    sync_folder()
}

/// Has files that came or went stay so.
///
/// # Errors
/// The disk fails.
pub fn sync_folder() -> io::Result<()> {
    File::open(Path::new(FOLDER))?.sync_all()
}
