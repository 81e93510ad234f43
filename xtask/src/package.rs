//! `cargo xtask package`.

mod debian;
mod extension;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use keywright_testkit::workspace_root;

use crate::install::{PG_CONFIG, Server};
use crate::needs;
use crate::shell::{output, run, step};

/// The version of everything in the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Make Debian packages and tarballs of the extension and the program in target/package.
#[derive(Args)]
pub(crate) struct Package {
    /// The `pg_config` of the installation that the extension's package is for.
    #[arg(long, value_name = "PATH", default_value = PG_CONFIG)]
    pg_config: PathBuf,
}

/// A file, where it goes in a package, and its mode.
struct Staged {
    from: PathBuf,
    to: PathBuf,
    mode: u32,
}

/// What a package is made of.
struct Contents {
    name: String,
    /// What it says of itself in Debian's words: section, dependencies, description.
    control: String,
    files: Vec<Staged>,
    /// Directories that are empty at first, and their modes.
    directories: Vec<(PathBuf, u32)>,
    /// The folder of the scripts that run when it comes and goes.
    scripts: PathBuf,
    /// Those of its files that an administrator changes.
    conffiles: Vec<&'static str>,
    /// Programs and libraries, without debugging symbols, whose libraries it depends on.
    binaries: Vec<PathBuf>,
}

impl Package {
    pub(crate) fn run(self) -> Result<()> {
        needs::install(&needs::to_package())?;
        let server = Server::built_for(&self.pg_config)?;
        let dir = workspace_root().join("target/package");
        fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
        for contents in [extension::contents(&server)?, program::contents(&dir)?] {
            let stage = empty(&dir.join("stage"))?;
            stage_files(&contents, &stage)?;
            let deb = debian::build(&contents, &stage, &dir)?;
            let tarball = tarball(&contents, &stage, &dir)?;
            fs::remove_dir_all(&stage).context("removing what was staged")?;
            step(&format!(
                "looking whether all of {} is there",
                contents.name
            ));
            let listed = output(Command::new("dpkg-deb").arg("--contents").arg(&deb))?;
            show(&deb, &listed, &contents)?;
            let listed = output(Command::new("tar").arg("-tzvf").arg(&tarball))?;
            show(&tarball, &listed, &contents)?;
        }
        Ok(())
    }
}

/// Prints what a package holds, or fails when something is missing in it.
fn show(package: &Path, listed: &str, contents: &Contents) -> Result<()> {
    println!("{}\n{listed}", package.display());
    for file in &contents.files {
        let inside = relative(&file.to).display().to_string();
        if !listed.contains(&inside) {
            bail!("{} lacks {inside}", package.display());
        }
    }
    Ok(())
}

/// Where a file lies below the package's root.
fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn stage_files(contents: &Contents, stage: &Path) -> Result<()> {
    for (dir, mode) in &contents.directories {
        let dir = stage.join(relative(dir));
        fs::create_dir_all(&dir)?;
        set_mode(&dir, *mode)?;
    }
    for Staged { from, to, mode } in &contents.files {
        let to = stage.join(relative(to));
        let parent = to.parent().context("a file without a directory")?;
        fs::create_dir_all(parent)?;
        fs::copy(from, &to)
            .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
        set_mode(&to, *mode)?;
    }
    for binary in &contents.binaries {
        let staged = stage.join(relative(binary));
        run(Command::new("strip").arg("--strip-unneeded").arg(staged))?;
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(path, mode).with_context(|| format!("the mode of {}", path.display()))
}

/// The same files as in the Debian package, to be unpacked over `/`.
fn tarball(contents: &Contents, stage: &Path, dir: &Path) -> Result<PathBuf> {
    let (name, arch) = (&contents.name, std::env::consts::ARCH);
    let file = dir.join(format!("{name}-{VERSION}-{arch}.tar.gz"));
    step(&format!("making {}", file.display()));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--exclude=./DEBIAN", "-czf"]);
    run(tar.arg(&file).arg("-C").arg(stage).arg("."))?;
    Ok(file)
}

fn empty(dir: &Path) -> Result<PathBuf> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("removing {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(dir.to_path_buf())
}
