//! Where a file is: a copy, or a file on another machine, is another store, whose original may be in use.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::error::FileError;
use super::file_system::is_mounted;

/// One of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inode {
    pub(crate) device: u64,
    pub(crate) number: u64,
}

impl Inode {
    /// Asks for it by name. The file is never opened for this: closing it again would give up SQLite's locks.
    pub(crate) fn at(path: &Path) -> Result<Self, FileError> {
        let its = fs::metadata(path).map_err(|error| FileError::of_io(&error))?;
        Ok(Self {
            device: its.dev(),
            number: its.ino(),
        })
    }
}

/// Those of an open file and of what lies beside it, and those of whatever these names lead to. Programs with other logs do not see what
/// each other commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inodes {
    pub(crate) file: Inode,
    /// Of the log of commits.
    log: Inode,
    /// Of where programs tell each other how far the log goes, and have its locks.
    shared: Inode,
}

impl Inodes {
    /// Asks for them by name. What lies beside a file lies beside what a link leads to.
    pub(crate) fn at(path: &Path) -> Result<Self, FileError> {
        let path = fs::canonicalize(path).map_err(|error| FileError::of_io(&error))?;
        let beside = |ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            Inode::at(Path::new(&name))
        };
        Ok(Self {
            file: Inode::at(&path)?,
            log: beside("-wal")?,
            shared: beside("-shm")?,
        })
    }
}

/// What a copy does not have of its original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) inode: Inode,
    /// When the file was made, nanoseconds since 1970; 0 where the file system does not say.
    pub(crate) born_ns: i64,
    /// `/etc/machine-id`; empty where there is none.
    pub(crate) machine: String,
    /// Changes whenever the machine starts. Disks may have other numbers then.
    pub(crate) boot: String,
}

impl Place {
    /// Where a file is now.
    pub(crate) fn of(path: &Path) -> Result<Self, FileError> {
        let its = fs::metadata(path).map_err(|error| FileError::of_io(&error))?;
        // By another name SQLite would look for another log of what was committed.
        if !its.is_file() || its.nlink() != 1 {
            return Err(FileError::NotPlain);
        }
        // So it would where the file alone is mounted, into containers for instance.
        let path = fs::canonicalize(path).map_err(|error| FileError::of_io(&error))?;
        let directory = path.parent().map(fs::metadata).transpose();
        let directory = directory.map_err(|error| FileError::of_io(&error))?;
        if is_mounted(&path) || directory.is_none_or(|directory| directory.dev() != its.dev()) {
            return Err(FileError::Mounted);
        }
        let born = its.created().ok();
        let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let born_ns = born.and_then(|born| i64::try_from(born.as_nanos()).ok());
        Ok(Self {
            inode: Inode {
                device: its.dev(),
                number: its.ino(),
            },
            born_ns: born_ns.unwrap_or(0),
            machine: line_of("/etc/machine-id"),
            boot: line_of("/proc/sys/kernel/random/boot_id"),
        })
    }

    /// What is different here from where the file was noted to be; `None`: it is there.
    pub(crate) fn difference(&self, noted: &Self) -> Option<String> {
        let has_started = self.boot != noted.boot;
        if self.machine != noted.machine {
            return Some("it was made on another machine".to_owned());
        }
        if self.inode.number != noted.inode.number || self.born_ns != noted.born_ns {
            return Some("it is another file than the one that was made".to_owned());
        }
        if self.inode.device != noted.inode.device && !has_started {
            return Some("it is on another disk than the one where it was made".to_owned());
        }
        None
    }
}

fn line_of(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Inode, Place};

    #[test]
    fn a_copy_is_told_from_its_original() {
        let original = Place {
            inode: Inode {
                device: 1,
                number: 2,
            },
            born_ns: 3,
            machine: "m".to_owned(),
            boot: "b".to_owned(),
        };
        assert_eq!(original.difference(&original), None);
        let other_inode = |device, number| Place {
            inode: Inode { device, number },
            ..original.clone()
        };
        assert!(other_inode(1, 9).difference(&original).is_some());
        assert!(other_inode(9, 2).difference(&original).is_some());
        let started = Place {
            boot: "c".to_owned(),
            ..other_inode(9, 2)
        };
        assert_eq!(
            started.difference(&original),
            None,
            "disks are numbered anew"
        );
        let restored = Place {
            born_ns: 4,
            ..original.clone()
        };
        assert!(restored.difference(&original).is_some());
        let elsewhere = Place {
            machine: "n".to_owned(),
            ..original.clone()
        };
        assert!(elsewhere.difference(&original).is_some());
    }
}
