//! `cargo xtask package`.

mod contents;
mod debian;
mod extension;
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use keywright_testkit::workspace_root;

use self::contents::{Contents, VERSION, empty, relative, stage_files};
use crate::install::{PG_CONFIG, Server};
use crate::needs;
use crate::shell::{output, run, step};

/// Make Debian packages and tarballs of the extension and the program in target/package.
#[derive(Args)]
pub(crate) struct Package {
    /// The `pg_config` of the installation that the extension's package is for.
    #[arg(long, value_name = "PATH", default_value = PG_CONFIG)]
    pg_config: PathBuf,
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
