//! The extension under test: built here, put into a server's directories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};

use crate::{PgVersion, Result, cargo, workspace_root};

/// A built extension: the library, and the files that `CREATE EXTENSION` reads.
#[derive(Debug, Clone)]
pub struct Extension {
    library: PathBuf,
    sql: Vec<PathBuf>,
}

impl Extension {
    /// Builds the extension for the server that `pg_config` belongs to, in release mode, in a target directory of that
    /// version's own (bindings differ). What is up to date is not built again.
    ///
    /// # Errors
    /// The build failed; cargo has said why.
    pub fn build(version: PgVersion, pg_config: &Path, progress: bool) -> Result<Extension> {
        let root = workspace_root();
        Extension::build_of(&root, &root.join("target"), version, pg_config, progress)
    }

    /// As [`Extension::build`], of the checkout at `root`, below `target`.
    ///
    /// # Errors
    /// The build failed; cargo has said why.
    pub fn build_of(
        root: &Path,
        target: &Path,
        version: PgVersion,
        pg_config: &Path,
        progress: bool,
    ) -> Result<Extension> {
        let target = target.join(format!("pg{version}"));
        let mut command = cargo();
        command
            .current_dir(root)
            .args([
                "build",
                "--release",
                "--package",
                "keywright",
                "--no-default-features",
            ])
            .args(["--features", &format!("pg{version}")])
            .arg("--target-dir")
            .arg(&target)
            .env("PGRX_PG_CONFIG_PATH", pg_config);
        if !progress {
            command.arg("--quiet");
        }
        let status = command.status().context("running cargo")?;
        if !status.success() {
            bail!("the extension could not be built for PostgreSQL {version}: {status}");
        }
        Ok(Extension {
            library: target.join("release/libkeywright.so"),
            sql: sql_files(root)?,
        })
    }

    /// As [`Extension::build`], but once in a process, so that all its servers run the same build while the sources
    /// are being edited.
    ///
    /// # Errors
    /// The build failed; it is tried again by the next who asks.
    pub(crate) fn built_once(version: PgVersion, pg_config: &Path) -> Result<Extension> {
        static BUILT: Mutex<BTreeMap<PgVersion, Extension>> = Mutex::new(BTreeMap::new());
        // Under the lock on purpose: the others want the same.
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(extension) = built.get(&version) {
            return Ok(extension.clone());
        }
        let extension = Extension::build(version, pg_config, false)?;
        built.insert(version, extension.clone());
        Ok(extension)
    }

    /// The built library.
    #[must_use]
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// The control file and the install and update scripts.
    #[must_use]
    pub fn sql(&self) -> &[PathBuf] {
        &self.sql
    }

    /// Puts the extension into these directories of a server, each file at once: one that is running goes on with the
    /// library that it has loaded. Returns what was written.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn install(&self, pkglibdir: &Path, sharedir: &Path) -> Result<Vec<PathBuf>> {
        let mut written = vec![put(&self.library, &pkglibdir.join("keywright.so"))?];
        for file in &self.sql {
            let name = file.file_name().context("a file without a name")?;
            written.push(put(file, &sharedir.join("extension").join(name))?);
        }
        Ok(written)
    }
}

fn sql_files(root: &Path) -> Result<Vec<PathBuf>> {
    let dir = root.join("sql/postgres");
    let mut files = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("listing {}", dir.display()))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "control" || extension == "sql")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Copies beside the target and renames: writing into a mapped library would crash the server that uses it.
fn put(from: &Path, to: &Path) -> Result<PathBuf> {
    let mut beside = to.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    fs::copy(from, &beside)
        .with_context(|| format!("copying {} to {}", from.display(), beside.display()))?;
    fs::rename(&beside, to).with_context(|| format!("putting {} into place", to.display()))?;
    Ok(to.to_path_buf())
}
