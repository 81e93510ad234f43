//! The file of kept ranges: locked for as long as it is open, and written in place, as a whole.
//!
//! In place, so that a second name of it shows the same, and no older state under another inode.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::content::{Content, KEPT_BYTES_MAX, PAGE_BYTES, decode, encode, is_one};
use super::judge::{CHANGED_MS_MAX, Unusable};
use crate::engine::file::file_system::doubtful;
use crate::engine::file::place::{Inode, Place};

/// Nobody else has to read it.
const MODE: u32 = 0o600;
/// Of a file that is only looked at, bytes.
const HEAD_BYTES_MAX: u64 = 1_024;
/// How often a file is written again whose write took so long that it looks changed by somebody else.
const TRIES_MAX: u32 = 5;

/// A file that nobody else has.
#[derive(Debug)]
pub(crate) struct KeptFile {
    path: PathBuf,
    file: File,
    len: usize,
}

/// What is read of a file, with what is known of it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) content: Content,
    pub(crate) place: Place,
    pub(crate) changed_ms: i64,
}

fn failed(error: &io::Error) -> Unusable {
    Unusable::Failed(error.to_string())
}

fn changed_ms(file: &File) -> io::Result<i64> {
    let its = file.metadata()?;
    let ms = its.ctime().saturating_mul(1_000);
    Ok(ms.saturating_add(its.ctime_nsec() / 1_000_000))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Whether a file could be had and written, as far as that is seen without having it; nothing is changed.
///
/// # Errors
/// Why not.
pub(crate) fn look(path: &Path, any_file_system: bool) -> Result<(), Unusable> {
    let (place, len) = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(mut file) => {
            Place::of(path).map_err(|error| Unusable::Failed(error.to_string()))?;
            let mut head = Vec::new();
            let read = file.by_ref().take(HEAD_BYTES_MAX).read_to_end(&mut head);
            read.map_err(|error| failed(&error))?;
            if !is_one(&head) {
                return Err(Unusable::Foreign);
            }
            let its = file.metadata().map_err(|error| failed(&error))?;
            (path, Some(its.len()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (path.parent().ok_or_else(|| failed(&error))?, None)
        }
        Err(error) => return Err(failed(&error)),
    };
    let directory = fs::metadata(path.parent().unwrap_or(path));
    directory.map_err(|error| failed(&error))?;
    check_file_system(place, any_file_system)?;
    let page = u64::try_from(PAGE_BYTES).unwrap_or(u64::MAX);
    // It is written in place: a full disk does not matter before it has to grow.
    if len.is_some_and(|len| len >= page) {
        return Ok(());
    }
    match try_room(path) {
        // Nor does it matter who may make files beside one that is there.
        Err(error) if len.is_some() && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        tried => tried.map_err(|error| failed(&error)),
    }
}

/// Whether there is room for the least that is ever written: in a file beside it, whose name is gone before anything is in it.
fn try_room(path: &Path) -> io::Result<()> {
    let beside = path.with_file_name(format!(".keywright-{}", Uuid::new_v4().simple()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(MODE);
    let file = options.open(&beside)?;
    fs::remove_file(&beside)?;
    file.write_all_at(&[b'k'; PAGE_BYTES], 0)?;
    file.sync_all()
}

fn check_file_system(path: &Path, any_file_system: bool) -> Result<(), Unusable> {
    let kind = doubtful(path).map_err(|error| Unusable::Failed(error.to_string()))?;
    match kind.filter(|_| !any_file_system) {
        Some(kind) => Err(Unusable::Failed(format!(
            "it is on a file system of kind {kind}, which may lose what was written or let two programs have it"
        ))),
        None => Ok(()),
    }
}

impl KeptFile {
    /// Opens it, or makes it, with nothing in it, and takes its lock.
    ///
    /// # Errors
    /// Another program has the lock; locks and syncs may not hold there; it is no plain file.
    pub(crate) fn open(path: &Path, any_file_system: bool) -> Result<Self, Unusable> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.mode(MODE).open(path);
        let file = file.map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Unusable::Locked),
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
        check_file_system(path, any_file_system)?;
        let len = file.metadata().map_err(|error| failed(&error))?.len();
        let kept = Self {
            path: path.to_owned(),
            file,
            len: usize::try_from(len).unwrap_or(usize::MAX),
        };
        // Whoever had it before may have removed it meanwhile.
        kept.place()?;
        if !is_one(&kept.bytes()?) {
            return Err(Unusable::Foreign);
        }
        sync_directory(path).map_err(|error| failed(&error))?;
        Ok(kept)
    }

    /// Where it is, if its name still leads to it.
    fn place(&self) -> Result<Place, Unusable> {
        let place = Place::of(&self.path).map_err(|error| Unusable::Failed(error.to_string()))?;
        let its = self.file.metadata().map_err(|error| failed(&error))?;
        let open = Inode {
            device: its.dev(),
            number: its.ino(),
        };
        match place.inode == open {
            true => Ok(place),
            false => Err(Unusable::Failed(
                "its name leads to another file".to_owned(),
            )),
        }
    }

    fn bytes(&self) -> Result<Vec<u8>, Unusable> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(KEPT_BYTES_MAX).unwrap_or(u64::MAX);
        let mut file = &self.file;
        let begin = file.seek(SeekFrom::Start(0));
        let read = begin.and_then(|_| file.take(limit.saturating_add(1)).read_to_end(&mut bytes));
        read.map_err(|error| failed(&error))?;
        Ok(bytes)
    }

    /// What it says; nothing where it was never written.
    ///
    /// # Errors
    /// It is not as it was written.
    pub(crate) fn read(&self) -> Result<Option<Found>, Unusable> {
        let bytes = self.bytes()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some(Found {
            content: decode(&bytes).map_err(Unusable::Damaged)?,
            place: self.place()?,
            changed_ms: changed_ms(&self.file).map_err(|error| failed(&error))?,
        }))
    }

    /// Writes what it is to say from now on, at the moment and the place that it is told. When this returns it is on the disk.
    ///
    /// # Errors
    /// It may say this, or what it said before.
    pub(crate) fn write(
        &mut self,
        now_ms: impl Fn() -> i64,
        content: impl Fn(Place, i64) -> Content,
    ) -> Result<(), Unusable> {
        for _ in 0..TRIES_MAX {
            let place = self.place()?;
            let written_ms = now_ms();
            let bytes = encode(&content(place, written_ms), self.len).ok_or_else(|| {
                Unusable::Failed(format!("it would be longer than {KEPT_BYTES_MAX} bytes"))
            })?;
            let written = self.file.write_all_at(&bytes, 0);
            written.map_err(|error| failed(&error))?;
            self.file.sync_data().map_err(|error| failed(&error))?;
            self.len = bytes.len();
            let changed_ms = changed_ms(&self.file).map_err(|error| failed(&error))?;
            if changed_ms.abs_diff(written_ms) <= CHANGED_MS_MAX {
                return Ok(());
            }
        }
        Err(Unusable::Failed(
            "the kernel's times of the file are not those of the clock".to_owned(),
        ))
    }

    /// Has it say nothing, for good, wherever its name leads by now; where that fails too, takes its name away.
    ///
    /// # Errors
    /// It may say what it said.
    pub(crate) fn erase(self) -> Result<(), Unusable> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.sync_all());
        if emptied.is_ok() {
            return Ok(());
        }
        self.place()?;
        let removed = fs::remove_file(&self.path).and_then(|()| sync_directory(&self.path));
        removed.map_err(|error| failed(&error))
    }
}
