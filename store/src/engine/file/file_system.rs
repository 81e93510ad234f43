//! On what a file is kept: file systems whose locks and syncs are known to do what they say.

use std::path::Path;

use nix::sys::statfs::statfs;
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

use super::error::FileError;

/// The kernel's numbers, and names for people.
const LOCAL: [(i64, &str); 9] = [
    (0x0000_ef53, "ext"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
    (0x3153_464a, "jfs"),
    (0x5265_4973, "reiserfs"),
    (0x0000_3434, "nilfs"),
];

/// Those that people meet most often, of the others.
const OTHERS: [(i64, &str); 10] = [
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x794c_7630, "overlayfs"),
    (0x6573_5546, "FUSE"),
    (0x0000_6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
];

/// Whether something is mounted at this very name. Whoever has the file by another name has other files beside it.
pub(super) fn is_mounted(path: &Path) -> bool {
    let asked = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS);
    asked.is_ok_and(|its| its.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// The name of a kind that is not known to be local; `None`: it is local.
pub(crate) fn doubtful(path: &Path) -> Result<Option<String>, FileError> {
    let kind = statfs(path).map_err(|error| FileError::of_io(&error.into()))?;
    let kind = kind.filesystem_type().0 & 0xffff_ffff;
    let is = |(number, _): &&(i64, &str)| *number == kind;
    if LOCAL.iter().any(|known| is(&known)) {
        return Ok(None);
    }
    let name = OTHERS.iter().find(is).map(|(_, name)| (*name).to_owned());
    Ok(Some(name.unwrap_or_else(|| format!("{kind:#x}"))))
}
