//! Groups of processes that a machine's service manager keeps its services in.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Where the kernel's hierarchies of groups are, unless the one that counts is all there is.
const MOUNT: &str = "/sys/fs/cgroup";

/// A group of our own in each hierarchy that a service manager uses; removed when dropped.
pub(super) struct Groups {
    paths: Vec<PathBuf>,
}

impl Groups {
    /// Below the groups that we are in, so that machines of others keep theirs.
    pub(super) fn make(name: &str) -> Result<Groups> {
        let mut groups = Groups { paths: Vec::new() };
        let ours = fs::read_to_string("/proc/self/cgroup").context("reading our groups")?;
        for line in ours.lines() {
            let Some(within) = within(line) else {
                continue;
            };
            let path = within.join(name);
            fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
            groups.paths.push(path);
        }
        Ok(groups)
    }

    /// A script that moves its shell into them, and becomes the program that follows it.
    pub(super) fn entering(&self) -> String {
        let enter = self
            .paths
            .iter()
            .map(|path| format!("echo $$ >{}/cgroup.procs && ", path.display()));
        enter.collect::<String>() + "exec \"$@\""
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for path in &self.paths {
            remove(path);
        }
    }
}

/// The directory of a line such as `0::/user.slice`, if a service manager uses that hierarchy.
fn within(line: &str) -> Option<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let mounts = match fields.next()? {
        "name=systemd" => ["systemd", "systemd"],
        "" => ["unified", "."],
        _ => return None,
    };
    let mounts = mounts.map(|name| Path::new(MOUNT).join(name));
    let mount = mounts
        .into_iter()
        .find(|mount| mount.join("cgroup.procs").exists())?;
    let below = fields.next()?.trim_start_matches('/');
    Some(mount.join(below))
}

/// With the groups below it. What is left, because somebody is in it, is left.
fn remove(group: &Path) {
    let below = fs::read_dir(group).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.path().is_dir()) {
        remove(&entry.path());
    }
    let _ = fs::remove_dir(group);
}
