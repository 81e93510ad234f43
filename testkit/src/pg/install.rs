//! Private copies of PostgreSQL installations, so that the extension under test never goes into the system's.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::{Context, bail};

use super::wheel;
use crate::machine::account;
use crate::machine::scratch::Scratch;
use crate::{Account, Extension, PgVersion, Result};

/// An installation as it was found. PostgreSQL finds its directories relative to its programs, so a copy that keeps
/// their places below `root` works.
struct Tree {
    root: PathBuf,
    bindir: PathBuf,
    pkglibdir: PathBuf,
    sharedir: PathBuf,
    contents: Contents,
}

/// How files other than programs get into the copy.
#[derive(Clone, Copy)]
enum Contents {
    /// They belong to the system and everybody can read them.
    Linked,
    /// They lie in our target directory, which the server's account may be unable to enter.
    Copied,
}

impl Tree {
    /// The tree that the version comes in, fetched when it is not there yet.
    fn of(version: PgVersion) -> Result<Tree> {
        match version {
            PgVersion::V15 => Tree::debian(version),
            PgVersion::V14 | PgVersion::V16 | PgVersion::V17 | PgVersion::V18 => {
                Tree::wheel(version)
            }
        }
    }

    fn debian(version: PgVersion) -> Result<Tree> {
        let lib = PathBuf::from(format!("/usr/lib/postgresql/{version}"));
        if !lib.join("bin/postgres").exists() {
            bail!("PostgreSQL {version} is missing: install the package `postgresql-{version}`");
        }
        Ok(Tree {
            root: PathBuf::from("/"),
            bindir: lib.join("bin"),
            pkglibdir: lib.join("lib"),
            sharedir: PathBuf::from(format!("/usr/share/postgresql/{version}")),
            contents: Contents::Linked,
        })
    }

    fn wheel(version: PgVersion) -> Result<Tree> {
        let root = wheel::fetch(version)?;
        Ok(Tree {
            bindir: root.join("bin"),
            pkglibdir: root.join("lib"),
            sharedir: root.join("share"),
            root,
            contents: Contents::Copied,
        })
    }
}

/// A private installation with the extension under test in it; removed when the last server that uses it is gone.
#[derive(Debug)]
pub struct PgInstall {
    version: PgVersion,
    bindir: PathBuf,
    pkglibdir: PathBuf,
    sharedir: PathBuf,
    // Dropped last: the directory all of this lies in.
    _scratch: Scratch,
}

/// Servers of one process share an installation per version.
static SHARED: Mutex<BTreeMap<PgVersion, Weak<PgInstall>>> = Mutex::new(BTreeMap::new());

impl PgInstall {
    /// The installation that servers of this process share.
    ///
    /// # Errors
    /// PostgreSQL is missing or cannot be fetched, or the extension does not build.
    pub fn shared(version: PgVersion) -> Result<Arc<PgInstall>> {
        // Under the lock on purpose: the others want the same.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(install) = shared.get(&version).and_then(Weak::upgrade) {
            return Ok(install);
        }
        let install = Arc::new(PgInstall::private(version)?);
        shared.insert(version, Arc::downgrade(&install));
        Ok(install)
    }

    /// An installation of one's own, for a test that changes the installed files.
    ///
    /// # Errors
    /// As [`PgInstall::shared`].
    pub fn private(version: PgVersion) -> Result<PgInstall> {
        let tree = Tree::of(version)?;
        let extension = Extension::built_once(version, &tree.bindir.join("pg_config"))?;
        let account = Account::for_servers(account::POSTGRES)?;
        let scratch = Scratch::new("pg", account)?;
        let place = |dir: &Path| -> Result<PathBuf> {
            Ok(scratch.path().join(dir.strip_prefix(&tree.root)?))
        };
        let (bindir, pkglibdir, sharedir) = (
            place(&tree.bindir)?,
            place(&tree.pkglibdir)?,
            place(&tree.sharedir)?,
        );
        // Programs find the rest relative to where they really are, so they are never linked.
        mirror(&tree.bindir, &bindir, Contents::Copied)?;
        mirror(&tree.pkglibdir, &pkglibdir, tree.contents)?;
        mirror(&tree.sharedir, &sharedir, tree.contents)?;
        let extension_dir = sharedir.join("extension");
        if extension_dir.is_symlink() {
            fs::remove_file(&extension_dir)?;
            mirror(
                &tree.sharedir.join("extension"),
                &extension_dir,
                tree.contents,
            )?;
        }
        extension.install(&pkglibdir, &sharedir)?;
        Ok(PgInstall {
            version,
            bindir,
            pkglibdir,
            sharedir,
            _scratch: scratch,
        })
    }

    /// The major version.
    #[must_use]
    pub fn version(&self) -> PgVersion {
        self.version
    }

    /// One of the installation's programs, such as `pg_dump`.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.bindir.join(name)
    }

    /// Where libraries are loaded from; `keywright.so` lies here.
    #[must_use]
    pub fn pkglibdir(&self) -> &Path {
        &self.pkglibdir
    }

    /// Where control files and install scripts lie.
    #[must_use]
    pub fn extension_dir(&self) -> PathBuf {
        self.sharedir.join("extension")
    }
}

/// Makes `to` a directory with the entries of `from`.
fn mirror(from: &Path, to: &Path, contents: Contents) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("listing {}", from.display()))? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let done = match contents {
            Contents::Linked => symlink(&source, &target),
            Contents::Copied if source.is_dir() => {
                mirror(&source, &target, contents)?;
                Ok(())
            }
            // A copy of what a link points to: links may be absolute.
            Contents::Copied => fs::copy(&source, &target).map(drop),
        };
        done.with_context(|| format!("mirroring {}", source.display()))?;
    }
    Ok(())
}
