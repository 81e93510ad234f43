//! Oracle's MySQL server: Debian has it in its unstable suite only. Its packages and the libraries that they need are
//! unpacked below `target/`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::machine::apt::Apt;
use crate::{Flavour, Result, workspace_root};

const PACKAGE: &str = "mysql-server-core";
const SUITE: &str = "unstable";

/// Packages that are taken for installed: the server's scripts are written in Perl, and no test runs them.
const ASSUMED: &str = "Package: perl\nStatus: install ok installed\nArchitecture: all\nMulti-Arch: allowed\n\
    Version: 1:99\nMaintainer: nobody\nDescription: assumed\n\n";

/// The root of the tree that MySQL is unpacked to, with the loader and the libraries that it needs, kept below `target/`; fetched
/// when it is not there yet.
///
/// # Errors
/// It cannot be fetched.
pub fn mysql_tree() -> Result<PathBuf> {
    let cache = workspace_root().join("target/mysql");
    let tree = cache.join("tree");
    if tree.join("usr/sbin/mysqld").exists() {
        return Ok(tree);
    }
    fs::create_dir_all(&cache).with_context(|| format!("making {}", cache.display()))?;
    // Other test processes may want the same now; the lock goes with the file.
    let lock = File::create(cache.join("lock")).context("making the lock of target/mysql")?;
    lock.lock().context("locking target/mysql")?;
    if tree.join("usr/sbin/mysqld").exists() {
        return Ok(tree);
    }
    fetch_into(&cache, &tree).with_context(|| {
        format!(
            "MySQL is wanted and could not be fetched; with {}=mariadb tests run on MariaDB only",
            Flavour::VARIABLE
        )
    })?;
    Ok(tree)
}

fn fetch_into(cache: &Path, tree: &Path) -> Result<()> {
    eprintln!("fetching {PACKAGE} from Debian's {SUITE} suite (lists 20 MB, packages 50 MB)");
    let apt = Apt::new(Some(SUITE), false, ASSUMED)?;
    apt.run(&[
        "install",
        "--yes",
        "--download-only",
        "--no-install-recommends",
        PACKAGE,
    ])?;
    let unpacked = tempfile::tempdir_in(cache).context("making a directory to unpack in")?;
    apt.unpack(unpacked.path())?;
    if !unpacked.path().join("usr/sbin/mysqld").exists() {
        bail!("{PACKAGE} brought no usr/sbin/mysqld");
    }
    // In one step, so that an interrupted unpacking is never taken for a tree.
    fs::rename(unpacked.keep(), tree)
        .with_context(|| format!("putting {} into place", tree.display()))
}
