//! Data directories as the servers make them, kept below `target/`: to make one costs seconds of a processor, and most tests want one.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::programs::Programs;
use crate::machine::process::run;
use crate::{Account, Result, workspace_root};

/// Makes a data directory for a server with these options, by a copy if there is one like it.
///
/// # Errors
/// The server cannot make one, or it cannot be kept or copied.
pub(super) fn initialise(
    programs: &Programs,
    account: Account,
    data_dir: &Path,
    tmp_dir: &Path,
    options: &[String],
) -> Result<()> {
    let cache = workspace_root().join("target/mysql");
    let kept = cache.join(name_of(programs, account, options)?);
    if !kept.exists() {
        fs::create_dir_all(&cache).with_context(|| format!("making {}", cache.display()))?;
        // Other test processes may want the same now; the lock goes with the file.
        let lock = File::create(cache.join("initialising"))
            .context("making the lock of data directories")?;
        lock.lock().context("locking data directories")?;
        if !kept.exists() {
            run(&mut programs.initialise(account, data_dir, tmp_dir, options)?)?;
            forget_identity(data_dir)?;
            let copy = tempfile::tempdir_in(&cache).context("making a directory to keep data")?;
            let inside = copy.path().join("data");
            copy_to(data_dir, &inside)?;
            // In one step, so that an interrupted copy is never taken for a whole one.
            return fs::rename(&inside, &kept)
                .with_context(|| format!("putting {} into place", kept.display()));
        }
    }
    copy_to(&kept, data_dir)
}

/// Another server, account or format has another directory.
fn name_of(programs: &Programs, account: Account, options: &[String]) -> Result<String> {
    let server = programs.server_file();
    let metadata =
        fs::metadata(&server).with_context(|| format!("looking at {}", server.display()))?;
    let of = match account {
        Account::Ourselves => "own".to_owned(),
        Account::Other { uid, .. } => uid.to_string(),
    };
    let kept = Programs::kept_option(options).unwrap_or_default();
    let file = server.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!(
        "data-{file}-{}-{}-{of}{kept}",
        metadata.size(),
        metadata.mtime()
    ))
}

/// MySQL draws its UUID when it starts without this file; two servers of one UUID would be one to whoever asks.
fn forget_identity(data_dir: &Path) -> Result<()> {
    match fs::remove_file(data_dir.join("auto.cnf")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context("removing the server's UUID")
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// With its owners, if we may.
fn copy_to(from: &Path, to: &Path) -> Result<()> {
    run(Command::new("cp")
        .args(["--archive", "--"])
        .arg(from)
        .arg(to))
}
