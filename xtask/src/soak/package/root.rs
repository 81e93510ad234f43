//! A bare Debian in a directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use keywright_testkit::DebianArchive;
use tempfile::TempDir;

use crate::shell::{output, run};

/// What a machine with a service manager has, and debootstrap's smallest variant has not.
const INCLUDED: &str = "systemd-sysv,sudo";

const NAME: &str = "bare";

/// A directory with Debian in it, out of which machines are made.
pub(super) struct Root {
    path: PathBuf,
    // Removed when dropped, unless it is kept.
    _dir: Option<TempDir>,
}

impl Root {
    /// The release of this machine, from where this machine gets its packages.
    pub(super) fn bare(within: &Path) -> Result<Root> {
        let archive = DebianArchive::of_this_machine()?;
        let dir = tempfile::Builder::new()
            .prefix("bare-")
            .tempdir_in(within)
            .context("making a directory for the root")?;
        let mut debootstrap = private_mounts("debootstrap");
        debootstrap.args(["--variant=minbase", &format!("--include={INCLUDED}")]);
        if let Some(keyring) = &archive.keyring {
            debootstrap.arg(format!("--keyring={keyring}"));
        }
        // It tells of each package, which is of interest when it fails.
        output(
            debootstrap
                .arg(&archive.codename)
                .arg(dir.path())
                .arg(&archive.uri),
        )?;
        let root = Root::of(dir);
        root.name_itself()?;
        root.use_sources(&archive)?;
        Ok(root)
    }

    /// The root that an earlier run kept there; else a new one, which is kept from now on.
    pub(super) fn kept(within: &Path, at: &Path, packages: &[&str]) -> Result<Root> {
        if !at.exists() {
            let root = Root::bare(within)?;
            root.fetch(packages)?;
            fs::rename(root.path(), at)
                .with_context(|| format!("keeping the root in {}", at.display()))?;
        }
        Ok(Root {
            path: at.to_owned(),
            _dir: None,
        })
    }

    /// What a machine left.
    pub(super) fn of(dir: TempDir) -> Root {
        Root {
            path: dir.path().to_owned(),
            _dir: Some(dir),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// It has this machine's name, which nobody would find behind it.
    fn name_itself(&self) -> Result<()> {
        let etc = self.path().join("etc");
        fs::write(etc.join("hostname"), format!("{NAME}\n"))?;
        let hosts = format!("127.0.0.1 localhost\n127.0.1.1 {NAME}\n");
        fs::write(etc.join("hosts"), hosts)?;
        // What is thrown away need not be on disk.
        fs::write(etc.join("dpkg/dpkg.cfg.d/walk"), "force-unsafe-io\n")?;
        Ok(())
    }

    /// apt in it uses the sources of this machine, and answers its own questions with yes.
    fn use_sources(&self, archive: &DebianArchive) -> Result<()> {
        let etc = self.path().join("etc/apt");
        fs::remove_file(etc.join("sources.list"))?;
        for file in archive.source_files() {
            let name = file.strip_prefix("/etc/apt")?;
            fs::copy(&file, etc.join(name))
                .with_context(|| format!("copying {}", file.display()))?;
        }
        let acquire = output(Command::new("apt-config").args(["dump", "Acquire"]))?;
        let proxies = acquire.lines().filter(|line| line.contains("::Proxy"));
        let proxies: Vec<&str> = proxies.collect();
        let settings = format!("{}\nAPT::Get::Assume-Yes \"true\";\n", proxies.join("\n"));
        fs::write(etc.join("apt.conf.d/90walk"), settings)?;
        self.run("apt-get", &["--quiet=2", "update"])
    }

    /// Downloads packages and what they need, so that machines, which have no network, can install them.
    pub(super) fn fetch(&self, packages: &[&str]) -> Result<()> {
        let options = ["--quiet=2", "--download-only", "install"];
        self.run("apt-get", &[&options, packages].concat())
    }

    /// Runs a program in it, with the network of this machine.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let mut command = private_mounts("chroot");
        run(command.arg(self.path()).arg(program).args(arguments))
    }
}

/// A command whose mounts are its own, and end with it.
fn private_mounts(program: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", program]);
    command
}
