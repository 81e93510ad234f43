//! A machine made of a root: Debian with its service manager, in namespaces and on a loopback of its own.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use keywright_testkit::{WAIT_MAX, wait_until};
use tempfile::TempDir;

use super::cgroup::Groups;
use super::root::Root;
use crate::shell::run;

/// The directory that commands are typed in.
const HOME: &str = "root";

/// A running machine; ended, and its directory removed, when dropped.
pub(super) struct Machine {
    // Before the directory: what runs in it ends first.
    container: Container,
    dir: TempDir,
    variables: RefCell<String>,
}

/// What a command said, and how it ended.
pub(super) struct Said {
    pub(super) is_well: bool,
    /// Both of its outputs.
    pub(super) text: String,
    pub(super) took: Duration,
}

impl Machine {
    /// Copies the root, and starts its service manager.
    pub(super) fn boot(root: &Root, within: &Path, name: &str) -> Result<Machine> {
        let dir = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .tempdir_in(within)
            .context("making a directory for a machine")?;
        let mut copy = Command::new("cp");
        copy.args(["--archive", "--reflink=auto", "--no-target-directory"]);
        run(copy.arg(root.path()).arg(dir.path()))?;
        let container = Container::start(dir.path(), name)?;
        let machine = Machine {
            container,
            dir,
            variables: RefCell::default(),
        };
        let booted = wait_until("the service manager of the machine", WAIT_MAX, || {
            // It may have no first process yet.
            let said = machine.run("systemctl is-system-running");
            Ok(said.is_ok_and(|said| ["running", "degraded"].contains(&said.text.trim())))
        });
        booted.with_context(|| fs::read_to_string(machine.container.log()).unwrap_or_default())?;
        Ok(machine)
    }

    /// Switches it off, so that others can be made of what it has become.
    pub(super) fn into_root(self) -> Result<Root> {
        let Machine { container, dir, .. } = self;
        drop(container);
        Ok(Root::of(dir))
    }

    /// Sets a variable for all commands from now on.
    pub(super) fn set(&self, name: &str, value: &str) {
        self.variables
            .borrow_mut()
            .push_str(&format!("{name}={value}\n"));
    }

    /// Carries out a line of a shell as root.
    pub(super) fn run(&self, line: &str) -> Result<Said> {
        let began = Instant::now();
        let output = self
            .container
            .enter()?
            .arg(format!(
                "cd /{HOME}\nexec 2>&1\n{}{line}",
                self.variables.borrow()
            ))
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("running `{line}`"))?;
        Ok(Said {
            is_well: output.status.success(),
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
            took: began.elapsed(),
        })
    }

    /// As [`Machine::run`]; it must go well. Returns what was said.
    pub(super) fn must(&self, line: &str) -> Result<String> {
        let said = self.run(line)?;
        if !said.is_well {
            bail!("`{line}` failed, and said\n{}", said.text);
        }
        Ok(said.text)
    }

    /// Carries out a line in the background, with what it says in a file. Returns its process's number in the machine.
    pub(super) fn start(&self, line: &str, log: &str) -> Result<u32> {
        let said = self.must(&format!("{line} >{log} 2>&1 </dev/null &\necho $!"))?;
        said.trim()
            .parse()
            .with_context(|| format!("the process of `{line}`: {said:?}"))
    }

    /// A file of the machine, from outside; a path that is not absolute is one in the directory that commands are typed in.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        match path.strip_prefix('/') {
            Some(path) => self.dir.path().join(path),
            None => self.dir.path().join(HOME).join(path),
        }
    }

    pub(super) fn write(&self, path: &str, text: &str) -> Result<()> {
        let file = self.path(path);
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
    }

    pub(super) fn read(&self, path: &str) -> Result<String> {
        let file = self.path(path);
        let bytes = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The namespaces that a machine runs in. With their first process all others end, and all mounts.
struct Container {
    nspawn: Child,
    /// What it said.
    log_path: PathBuf,
    // Removed when nobody is in them any more.
    _groups: Groups,
    name: String,
}

impl Container {
    fn start(dir: &Path, name: &str) -> Result<Container> {
        let log_path = dir.with_added_extension("log");
        let log = fs::File::create(&log_path)?;
        let groups = Groups::make(&format!("walk-{name}-{}", std::process::id()))?;
        let mut command = Command::new("sh");
        command.args(["-c", &groups.entering(), "sh"]);
        // It shuts the machine down when we end, however we do.
        command.args([
            "setpriv",
            "--pdeathsig",
            "TERM",
            "systemd-nspawn",
            "--quiet",
        ]);
        // No other service manager is to know of it.
        command.args(["--register=no", "--keep-unit", "--private-network"]);
        command.args(["--console=pipe", "--boot"]);
        command.arg(format!("--machine=walk-{name}"));
        command.arg(format!("--directory={}", dir.display()));
        let nspawn = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("running systemd-nspawn")?;
        Ok(Container {
            nspawn,
            log_path,
            _groups: groups,
            name: name.to_owned(),
        })
    }

    fn log(&self) -> &Path {
        &self.log_path
    }

    /// The command that carries out a script in it.
    fn enter(&self) -> Result<Command> {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.leader()?]);
        command.args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup"]);
        command.args(["env", "--ignore-environment"]);
        command.args(["HOME=/root", "LANG=C.UTF-8"]);
        command.arg("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.args(["bash", "-c"]);
        Ok(command)
    }

    /// The first process in it.
    fn leader(&self) -> Result<String> {
        let id = self.nspawn.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        let first = children.split_whitespace().next().map(str::to_owned);
        first.with_context(|| format!("the machine {} does not run", self.name))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // The first process takes all others with it, and nspawn ends then.
        let killed = self
            .leader()
            .map(|id| Command::new("kill").args(["-9", &id]).status());
        if killed.is_err() {
            let _ = self.nspawn.kill();
        }
        let _ = self.nspawn.wait();
    }
}
